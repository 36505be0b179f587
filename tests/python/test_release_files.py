"""`al.release(path)`: files that are whole before their task ends."""

import os
import signal
from pathlib import Path

import pytest

import alongside as al


@al.io(returns=1)
def write_two(first: al.FileOut, second: al.FileOut, gate):
    Path(first).write_text("first")
    al.release(first)
    gate.pass_through()
    Path(second).write_text("second")


@al.io
def read(path: al.FileIn):
    return Path(path).read_text()


@al.io
def append(path: al.FileInOut, text):
    with open(path, "a") as file:
        file.write(text)


LAYERS = """
[[layer]]
name = "fast"
path = "{0}/fast"
bandwidth = "1GB/s"
capacity = "10MB"
[[layer]]
name = "slow"
path = "{0}/slow"
bandwidth = "100MB/s"
"""


@pytest.fixture(params=["own paths", "layers"])
def files(request, tmp_path, monkeypatch):
    """A session whose files are at their own paths, or first on a faster layer."""
    monkeypatch.chdir(tmp_path)
    storage = None
    if request.param == "layers":
        for name in ("fast", "slow"):
            (tmp_path / name).mkdir()
        storage = tmp_path / "storage.toml"
        storage.write_text(LAYERS.format(tmp_path))
    with al.Session(workers=2, io_executors=4, storage=storage) as session:
        yield session


def home(files, name):
    """A name on the slower layer, so that files on layers are placed elsewhere first."""
    return f"slow/{name}" if len(files.native.layers()) > 1 else name


def test_readers_of_a_released_file_run_before_the_end(files, gate):
    first, second = home(files, "one"), home(files, "two")
    end = write_two(first, second, gate)
    assert al.wait(read(first), timeout=30) == "first"
    with al.open(first) as file:
        assert file.read() == "first"
    assert not end.done()
    is_placed = len(files.native.layers()) > 1
    assert Path(first).exists() != is_placed, "on the faster layer until the session ends"
    gate.open()
    assert al.wait(read(second), timeout=30) == "second"
    files.close()
    assert (Path(first).read_text(), Path(second).read_text()) == ("first", "second")


def test_writers_of_a_released_file_wait_for_the_end(files, gate, mailbox):
    @al.io
    def tells(path: al.FileInOut, mailbox):
        mailbox.send(Path(path).read_text())
        Path(path).write_text("third")

    first, second = home(files, "one"), home(files, "two")
    write_two(first, second, gate)
    before = read(first)
    tells(first, mailbox)
    after = read(first)
    assert al.wait(before, timeout=30) == "first"
    assert mailbox.empty()
    gate.open()
    assert mailbox.receive() == "first"
    assert al.wait(after, timeout=30) == "third"


@al.io
def change_and_wait(path: al.FileInOut, gate):
    with open(path, "a") as file:
        file.write(" changed")
    al.release(path)
    gate.pass_through()


def test_a_file_that_is_changed_in_place_can_be_released(files, gate):
    name = home(files, "one")
    Path(name).write_text("old")
    end = change_and_wait(name, gate)
    assert al.wait(read(name), timeout=30) == "old changed"
    assert not end.done()
    gate.open()
    al.wait(end, timeout=30)
    append(name, " again")
    assert al.wait(read(name), timeout=30) == "old changed again"


@al.io(retries=3, on_failure="cancel_dependents")
def fails_after(first: al.FileOut, second: al.FileOut, runs, gate):
    with open(runs, "a") as file:
        file.write("x")
    Path(first).write_text("good")
    al.release(first)
    gate.pass_through()
    raise ValueError("too late")


def test_a_file_that_a_failed_task_released_stays_and_the_task_does_not_run_again(
    files, gate, tmp_path
):
    first, second, runs = home(files, "one"), home(files, "two"), tmp_path / "runs"
    fails_after(first, second, str(runs), gate)
    good, bad = read(first), read(second)
    assert al.wait(good, timeout=30) == "good"
    gate.open()
    with pytest.raises(ValueError, match="too late") as caught:
        al.wait(bad, timeout=30)
    assert caught.value.chain == ("fails_after", "read")
    assert runs.read_text() == "x"
    assert al.wait(read(first), timeout=30) == "good"
    files.close()
    assert Path(first).read_text() == "good"


@al.io(on_failure="cancel_dependents")
def tells_its_pid(first: al.FileOut, second: al.FileOut, mailbox, gate):
    Path(first).write_text("good")
    al.release(first)
    mailbox.send(os.getpid())
    gate.pass_through()


def test_a_file_that_a_killed_task_released_stays(files, gate, mailbox):
    first, second = home(files, "one"), home(files, "two")
    tells_its_pid(first, second, mailbox, gate)
    good, bad = read(first), read(second)
    assert al.wait(good, timeout=30) == "good"
    os.kill(int(mailbox.receive()), signal.SIGKILL)
    with pytest.raises(al.WorkerLostError):
        al.wait(bad, timeout=30)
    assert al.wait(read(first), timeout=30) == "good"


def test_an_end_right_after_a_release(files):
    @al.io(durable=True)
    def writes(path: al.FileOut, number):
        Path(path).write_text(str(number))
        al.release(path)

    names = [home(files, f"file-{number}") for number in range(50)]
    for number, name in enumerate(names):
        writes(name, number)
    assert al.wait_all([read(name) for name in names]) == [str(number) for number in range(50)]


@al.io(on_failure="cancel_dependents")
def misuses(path: al.FileOut, source: al.FileIn, way):
    if way == "not written":
        al.release(path)
    Path(path).write_text("x")
    if way == "not ours":
        al.release("elsewhere")
    if way == "only read":
        al.release(source)
    if way == "no path":
        al.release(3)
    al.release(path)
    if way == "twice":
        al.release(path)
    if way == "written again":
        Path(path).write_text("xyz")


@pytest.mark.parametrize(
    ("way", "error", "message"),
    [
        ("not written", FileNotFoundError, "ended without writing its file"),
        ("not ours", al.ReleaseError, r'misuses\(\) writes no file "elsewhere"'),
        ("only read", al.ReleaseError, r'misuses\(\) writes no file ".*source"'),
        ("no path", al.ReleaseError, "or the path of a file, not only a int"),
        ("twice", al.ReleaseError, r'misuses\(\) released the file ".*file" twice'),
        ("written again", al.ReleaseError, "after it had released it"),
    ],
)
def test_wrong_releases_of_files(session, way, error, message):
    Path("source").write_text("source")
    with pytest.raises(error, match=message):
        al.wait(misuses("file", "source", way), timeout=30)


def test_the_sequential_program(tmp_path, monkeypatch):
    from alongside.testing import Gate

    monkeypatch.chdir(tmp_path)
    (tmp_path / "open").touch()
    write_two("one", "two", Gate("open", closed=False))
    assert Path("one").read_text() == "first"
    Path("source").touch()
    for way in ("not ours", "only read", "no path", "twice"):
        with pytest.raises(al.ReleaseError):
            misuses("file", "source", way)
