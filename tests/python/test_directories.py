"""Directories as data: made, read and changed whole, in parts, on layers, and after a kill."""

import os
import shutil
import signal
import stat
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

import alongside as al

LONG = 60
LAYERS = """
[[layer]]
name = "fast"
path = "fast"
bandwidth = "1GB/s"
capacity = "10MB"

[[layer]]
name = "slow"
path = "slow"
bandwidth = "100MB/s"
{more}
"""


def describe(folder, more=""):
    for name in ("fast", "slow"):
        (folder / name).mkdir()
    (folder / "storage.toml").write_text(LAYERS.format(more=more))
    return folder / "storage.toml"


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return describe(tmp_path)


@pytest.fixture(params=["layers", "plain"])
def session(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    layers = describe(tmp_path) if request.param == "layers" else None
    with al.Session(workers=1, storage=layers) as session:
        yield session


@al.io(bandwidth="1MB/s")
def make(path: al.DirOut, files: dict):
    assert os.listdir(path) == []
    for name, text in files.items():
        one = Path(path, name)
        one.parent.mkdir(parents=True, exist_ok=True)
        one.write_text(text)
    return path


@al.io
def extend(path: al.DirInOut, name, text):
    with Path(path, name).open("a") as file:
        file.write(text)


@al.io
def contents(path: al.DirIn):
    return tree(path)


@al.io
def part(path: al.FileIn):
    return Path(path).read_text()


def tree(path):
    files = (one for one in Path(path).rglob("*") if one.is_file())
    return {str(one.relative_to(path)): one.read_text() for one in files}


def left_in(folder):
    return [str(path) for path in folder.rglob("*") if ".alongside" in path.parts]


def test_a_directory_is_made_on_the_fast_layer_and_comes_home_as_it_is(storage, tmp_path):
    @al.io(bandwidth="1MB/s", durable=True)
    def odd(path: al.DirOut):
        Path(path, "run").write_text("#!/bin/sh\n")
        Path(path, "run").chmod(0o750)
        Path(path, "link").symlink_to("run")
        Path(path, "nowhere").symlink_to("/no/such/file")
        Path(path, "empty").mkdir(mode=0o700)
        return path

    with al.Session(workers=1, storage=storage):
        place = odd("slow/new/tree").result(LONG)
        assert place.startswith(str(tmp_path / "fast")) and not (tmp_path / "slow/new").exists()
    home = tmp_path / "slow/new/tree"
    assert stat.S_IMODE((home / "run").stat().st_mode) == 0o750
    assert os.readlink(home / "link") == "run" and os.readlink(home / "nowhere") == "/no/such/file"
    assert stat.S_IMODE((home / "empty").stat().st_mode) == 0o700
    assert not left_in(tmp_path)


def test_order_is_that_of_the_program_in_whole_and_in_parts(session, tmp_path):
    make("results", {"a": "1", "below/b": "2"})
    first = contents("results")
    one = part("results/below/b")
    extend("results", "a", "+")
    raw = al.read("results/a")
    copied = al.copy("./results/below/b", "copy-of-b")
    second = contents(str(tmp_path / "results"))
    make("results", {"c": "3"})
    third = contents("results")
    assert first.result(LONG) == {"a": "1", "below/b": "2"}
    assert one.result(LONG) == "2" and raw.result(LONG) == b"1+" and copied.result(LONG) == 1
    assert second.result(LONG) == {"a": "1+", "below/b": "2"}
    assert third.result(LONG) == {"c": "3"}
    with al.open("results/c") as file:
        assert file.read() == "3"
    with pytest.raises(FileNotFoundError):
        al.open("results/a")
    al.persist("results").result(LONG)
    assert tree(tmp_path / "results") == {"c": "3"}
    make("results", {"d": "4"})
    session.close()
    assert tree(tmp_path / "results") == {"d": "4"}
    assert (tmp_path / "copy-of-b").read_text() == "2"
    assert not left_in(tmp_path)


def test_what_the_user_had_there_is_changed_but_never_replaced(session, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/precious").write_text("old")
    with pytest.raises(FileExistsError, match=r"make\(\): parameter 'path' is DirOut.*DirInOut"):
        make("mine", {"a": "1"})
    extend("mine", "a", "1")
    assert contents("mine").result(LONG) == {"precious": "old", "a": "1"}
    with pytest.raises(FileExistsError):
        make("mine", {})
    session.close()
    assert tree(tmp_path / "mine") == {"precious": "old", "a": "1"}


def test_files_that_somebody_put_in_the_way_are_kept_and_told(storage, tmp_path):
    def in_the_way():
        with al.Session(workers=1, storage=storage):
            make("slow/results", {"a": "1"}).result(LONG)
            (tmp_path / "slow/results").mkdir()
            (tmp_path / "slow/results/notes").write_text("mine")

    with pytest.raises(al.StorageError, match="not made by this session"):
        in_the_way()
    assert tree(tmp_path / "slow/results") == {"notes": "mine"}
    (tmp_path / "slow/results").rename(tmp_path / "aside")
    (left,) = (tmp_path / ".alongside").iterdir()
    assert "brought to its own path" in recover(left, tmp_path)
    assert tree(tmp_path / "slow/results") == {"a": "1"}
    assert tree(tmp_path / "aside") == {"notes": "mine"}
    assert not left_in(tmp_path)


def test_one_path_is_one_kind_of_thing(session, tmp_path):
    @al.io
    def single(path: al.FileOut):
        Path(path).write_text("x")

    (tmp_path / "file").write_text("")
    (tmp_path / "folder").mkdir()
    with pytest.raises(NotADirectoryError, match="is a file, and the task takes a directory"):
        contents("file")
    with pytest.raises(IsADirectoryError, match="is a directory, and the task takes a file"):
        part("folder")
    make("tree", {"a": "1"})
    with pytest.raises(IsADirectoryError):
        single("tree")
    with pytest.raises(al.DirectionError, match=r"single\(\).*written as a part of it"):
        single("tree/b")
    with pytest.raises(al.DirectionError, match="lie in one another"):
        make("tree/below", {})
    single("other/b")
    with pytest.raises(al.DirectionError, match="lie in one another"):
        make("other", {})
    with pytest.raises(FileNotFoundError, match="direction DirOut"):
        contents("nothing")


def test_bodies_that_do_not_do_what_they_say_fail(session):
    @al.io(on_failure="cancel_dependents")
    def changes(path: al.DirIn):
        Path(path, "a").write_text("changed")

    @al.io(on_failure="cancel_dependents")
    def unmakes(path: al.DirOut):
        shutil.rmtree(path)

    @al.io(on_failure="cancel_dependents")
    def makes_a_file(path: al.DirOut):
        Path(path).rmdir()
        Path(path).write_text("")

    @al.io(on_failure="cancel_dependents")
    def makes_a_directory(path: al.FileOut):
        Path(path).mkdir()

    make("tree", {"a": "1"})
    with pytest.raises(al.DirectionError, match="DirInOut"):
        changes("tree").result(LONG)
    with pytest.raises(FileNotFoundError, match="without making its directory"):
        unmakes("gone").result(LONG)
    with pytest.raises(al.DirectionError, match="a file; make that parameter FileOut"):
        makes_a_file("odd").result(LONG)
    with pytest.raises(al.DirectionError, match="a directory; make that parameter DirOut"):
        makes_a_directory("even").result(LONG)


def test_a_task_that_fails_leaves_what_was_there(storage, tmp_path):
    @al.io(on_failure="cancel_dependents")
    def half(path: al.DirOut):
        Path(path, "half").write_text("")
        raise ValueError("in the middle")

    with al.Session(workers=1, storage=storage):
        make("slow/tree", {"a": "1"})
        with pytest.raises(ValueError, match="in the middle"):
            half("slow/tree").result(LONG)
    assert tree(tmp_path / "slow/tree") == {"a": "1"}
    assert not left_in(tmp_path)


def test_a_directory_can_be_released_before_its_task_ends(session):
    @al.io
    def early(path: al.DirOut, gate):
        Path(path, "a").write_text("1")
        al.release(path)
        while not os.path.exists(gate):
            time.sleep(0.01)

    made = early("tree", os.path.abspath("gate"))
    assert contents("tree").result(LONG) == {"a": "1"} and not made.done()
    Path("gate").touch()
    made.result(LONG)


def test_files_in_it_keep_to_the_emulated_bandwidth_of_its_layer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = describe(tmp_path, 'limit = "1GB/s"')

    @al.io(bandwidth="50MB/s", size="20MB")
    def limited(path: al.DirOut):
        with al.open(os.path.join(path, "a"), "wb") as file:
            return file.write(b"x" * 1000), type(file.raw).__name__

    with al.Session(workers=1, storage=storage):
        assert limited("slow/tree").result(LONG) == (1000, "_Limited")
    assert (tmp_path / "slow/tree/a").stat().st_size == 1000


def test_without_a_session_a_task_makes_its_directory_too(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make("new/tree", {"a": "1"})
    assert make("new/tree", {"b": "2"}) == "new/tree"
    extend("new/tree", "b", "+")
    assert contents("new/tree") == {"b": "2+"}
    Path("mine").mkdir()
    Path("mine/precious").touch()
    with pytest.raises(FileExistsError, match="DirInOut"):
        make("mine", {})
    assert contents("mine") == {"precious": ""}


def recover(folder, cwd):
    words = [sys.executable, "-m", "alongside", "recover", str(folder)]
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True, timeout=LONG, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_after_a_kill_a_later_version_replaces_the_one_that_had_come_home(storage, tmp_path):
    program = """
        import sys
        from pathlib import Path
        import alongside as al

        @al.io(bandwidth="1MB/s")
        def make(path: al.DirOut, text):
            Path(path, text).write_text(text)

        with al.Session(workers=1, storage="storage.toml"):
            make("slow/tree", "first").result()
            al.persist("slow/tree").result()
            make("slow/tree", "second").result()
            make("slow/other", "only").result()
            print("ready", flush=True)
            sys.stdin.read()
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
    ) as process:  # fmt: skip
        assert process.stdout.readline() == b"ready\n"
        os.killpg(process.pid, signal.SIGKILL)
    assert tree(tmp_path / "slow/tree") == {"first": "first"}
    (left,) = (tmp_path / ".alongside").iterdir()
    said = recover(left, tmp_path)
    assert said.count("brought to its own path") == 2
    assert tree(tmp_path / "slow/tree") == {"second": "second"}
    assert tree(tmp_path / "slow/other") == {"only": "only"}
    assert not left_in(tmp_path)
