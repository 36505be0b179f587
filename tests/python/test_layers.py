"""Files on the layer of the grant: where they are, how they come home, what a crash leaves."""

import errno
import json
import os
import signal
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import alongside as al
from alongside import summary

LAYERS = """
[[layer]]
name = "fast"
path = "{fast}"
bandwidth = "1GB/s"
capacity = "{capacity}"

[[layer]]
name = "slow"
path = "{slow}"
bandwidth = "100MB/s"
"""
LONG = 60


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return describe(tmp_path)


def describe(folder, capacity="10MB", fast=None):
    fast = fast or folder / "fast"
    for path in (fast, folder / "slow"):
        path.mkdir(exist_ok=True)
    file = folder / "storage.toml"
    file.write_text(LAYERS.format(fast=fast, slow=folder / "slow", capacity=capacity))
    return file


def left_in(folder):
    return [str(path) for path in folder.rglob("*") if ".alongside" in path.parts]


@al.io(bandwidth="1MB/s", size="1kB")
def save(path: al.FileOut, text):
    with open(path, "w") as file:
        file.write(text)
    return path


@al.io
def load(path: al.FileIn):
    return Path(path).read_text(), path


@al.io
def extend(path: al.FileInOut, text):
    with open(path, "a") as file:
        file.write(text)
    return path


@al.io(bandwidth="1MB/s", size="1kB")
def fill(path: al.DirOut):
    (Path(path) / "part").write_text("of it")


def test_a_file_is_on_the_fast_layer_and_comes_home(storage, tmp_path, until):
    with al.Session(workers=1, storage=storage):
        place = save("slow/deep/er/a.txt", "one").result(LONG)
        assert place.startswith(str(tmp_path / "fast")) and place.endswith("-a.txt")
        assert not (tmp_path / "slow/deep").exists()
        assert load(str(tmp_path / "slow/deep/er/a.txt")).result(LONG) == ("one", place)
        with al.open("slow/deep/er/a.txt") as file:
            assert file.read() == "one"
        assert extend("slow/deep/er/a.txt", " two").result(LONG) == place
        again = save("slow/b.txt", "x")
        assert save("slow/b.txt", "newer").result(LONG) != again.result(LONG)
        until(lambda: not os.path.exists(again.result(LONG)))  # an older version is deleted
    assert (tmp_path / "slow/deep/er/a.txt").read_text() == "one two"
    assert (tmp_path / "slow/b.txt").read_text() == "newer"
    assert not left_in(tmp_path)


def test_a_replaced_file_keeps_its_mode_and_a_link_its_target(storage, tmp_path):
    home = tmp_path / "slow/real"
    home.write_text("before")
    home.chmod(0o640)
    (tmp_path / "slow/link").symlink_to("real")
    with al.Session(workers=1, storage=storage):
        save("slow/link", "after")
        assert load("slow/real").result(LONG)[0] == "after"
        assert home.read_text() == "before", "until the session ends"
    assert home.read_text() == "after" and stat.S_IMODE(home.stat().st_mode) == 0o640
    assert (tmp_path / "slow/link").is_symlink()


def test_a_relative_path_outside_all_layers_comes_home_and_an_absolute_one_stays(storage, tmp_path):
    with al.Session(workers=1, storage=storage):
        assert save("here.txt", "1").result(LONG).startswith(str(tmp_path / "fast"))
        outside = str(tmp_path / "outside.txt")
        assert save(outside, "2").result(LONG) == outside
    assert (tmp_path / "here.txt").read_text() == "1"


def test_io_tasks_run_on_the_processors_of_their_layer(storage, tmp_path):
    mine = sorted(os.sched_getaffinity(0))
    one, none = mine[-1], mine[-1] + 1
    text = storage.read_text().replace("\n\n", f'\nprocessors = "{one}"\n\n', 1)
    storage.write_text(text + f"processors = [{none}]\n")

    @al.io(bandwidth="1MB/s")
    def where(path: al.FileOut):
        Path(path).touch()
        return sorted(os.sched_getaffinity(0)), Path(path).is_relative_to(tmp_path / "fast")

    @al.io
    def anywhere():
        return sorted(os.sched_getaffinity(0))

    with al.Session(workers=1, io_executors=1, storage=storage):
        assert where("slow/a").result(LONG) == ([one], True)
        assert anywhere().result(LONG) == [one], "its layer is the first"
    with al.Session(workers=1, io_executors=1):
        assert anywhere().result(LONG) == mine


def test_a_task_that_fails_leaves_what_was_there(storage, tmp_path):
    @al.io(on_failure="cancel_dependents")
    def half(path: al.FileOut):
        Path(path).write_text("half")
        raise ValueError("in the middle")

    with al.Session(workers=1, storage=storage):
        save("slow/a", "whole").result(LONG)
        failed = half("slow/a")
        with pytest.raises(ValueError, match="in the middle"):
            failed.result(LONG)
    assert (tmp_path / "slow/a").read_text() == "whole"
    assert not left_in(tmp_path)


def test_a_task_that_does_not_write_its_file_is_told(storage, tmp_path):
    @al.io(on_failure="cancel_dependents")
    def forgets(path: al.FileOut): ...

    with al.Session(workers=1, storage=storage), pytest.raises(FileNotFoundError, match="forgets"):
        forgets("slow/never").result(LONG)
    assert not left_in(tmp_path)


def test_cold_files_move_to_their_own_paths_while_nothing_is_written(storage, tmp_path, until):
    trace = tmp_path / "trace.json"
    with al.Session(workers=1, storage=storage, flush=True, trace=trace) as session:
        al.wait([save(f"slow/{n}", str(n)) for n in range(20)])
        until(lambda: session.statistics().files_moved == 20)
        assert [(tmp_path / f"slow/{n}").read_text() for n in range(20)] == list(
            map(str, range(20))
        )
        until(lambda: not any(path.is_file() for path in (tmp_path / "fast").rglob("*")))
        assert load("slow/7").result(LONG) == ("7", str(tmp_path / "slow/7"))
        assert session.statistics().bytes_moved == 30
    words = "\n".join(summary.lines(session.statistics()))
    assert "20 files (30 B) moved between layers" in words
    moves = [e for e in json.loads(trace.read_text())["traceEvents"] if e.get("cat") == "move"]
    assert len(moves) == 20 and {move["name"] for move in moves} == {"fast to slow"}


@al.task
def hold(gate):
    with open(gate):  # until somebody writes to it
        pass


@al.task
def look(path: al.FileIn, _after):
    with open(path) as file:
        return path, file.read()


@pytest.mark.parametrize("flushed", [False, True])
def test_an_input_is_copied_up_while_the_task_before_its_reader_runs(
    storage, tmp_path, flushed, until
):
    gate, own = tmp_path / "gate", tmp_path / "slow/input"
    os.mkfifo(gate)
    own.write_text("the input")
    with al.Session(workers=1, storage=storage, flush=flushed, prefetch=True) as session:
        if flushed:
            save("slow/input", "the input").result(LONG)
            until(lambda: session.statistics().files_moved == 1)
        last = look("slow/input", hold(str(gate)))
        until(lambda: session.statistics().files_moved == 1 + flushed)
        gate.write_text("")
        place, text = last.result(LONG)
        assert place.startswith(str(tmp_path / "fast")) and text == "the input"
        until(lambda: not any(path.is_file() for path in (tmp_path / "fast").rglob("*")))
    assert own.read_text() == "the input" and not left_in(tmp_path)


@pytest.mark.parametrize("flush", [False, True])
def test_a_file_comes_home_when_the_program_asks(storage, tmp_path, flush):
    with al.Session(workers=1, storage=storage, flush=flush):
        for n in range(30):
            save("slow/a", f"version {n}")
            moved = al.persist("slow/a")
            assert load("slow/a").result(LONG)[0] == f"version {n}"
            assert moved.result(LONG) in (0, len(f"version {n}"))
            assert (tmp_path / "slow/a").read_text() == f"version {n}"
        assert al.persist("slow/a").result(LONG) == 0
        with pytest.raises(FileNotFoundError):
            al.persist("slow/never")
    assert al.wait(al.persist("slow/a")) == 0, "without a session it is there"
    assert not left_in(tmp_path)


def test_full_layers_change_no_byte(storage, tmp_path):
    describe(tmp_path, capacity="40kB")

    @al.io(size="10kB")
    def write(path: al.FileOut, n):
        with open(path, "wb") as file:
            file.write(bytes([n]) * 10_000)
        return path

    for policy in ("fcfs", "priority", "backfilling"):
        for flush in (False, True):
            with al.Session(workers=1, storage=storage, io_policy=policy, flush=flush):
                places = al.wait([write(f"slow/{n}", n) for n in range(30)])
            on_fast = sum(place.startswith(str(tmp_path / "fast")) for place in places)
            assert 4 <= on_fast <= 30 if flush else on_fast == 4, (policy, flush, on_fast)
            for n in range(30):
                assert (tmp_path / f"slow/{n}").read_bytes() == bytes([n]) * 10_000
                (tmp_path / f"slow/{n}").unlink()
            assert not left_in(tmp_path)


def test_doubtful_layers_are_told(storage, tmp_path):
    with pytest.warns(RuntimeWarning, match="are on one device, and both claim its bandwidth"):
        al.Session(workers=1, storage=storage).close()


def test_a_task_that_writes_to_its_input_is_told(storage, tmp_path):
    @al.io(on_failure="cancel_dependents")
    def wrong(path: al.FileIn):
        Path(path).write_text("changed")

    with al.Session(workers=1, storage=storage):
        save("slow/a", "x")
        with pytest.raises(al.DirectionError, match=r"wrong.* FileIn"):
            wrong("slow/a").result(LONG)


def test_a_size_that_is_far_too_small_is_corrected(storage, tmp_path):
    @al.io(size="1kB")
    def write(path: al.FileOut, n):
        Path(path).write_bytes(bytes([n]) * 3_000_000)
        return path

    with (
        pytest.warns(RuntimeWarning, match=r"write\(\) says size=1000 bytes, and wrote 3000000"),
        al.Session(workers=1, io_executors=1, storage=storage),
    ):
        places = [write(f"slow/{n}", n).result(LONG) for n in range(8)]
    on_fast = sum(place.startswith(str(tmp_path / "fast")) for place in places)
    assert on_fast == 4, "10 MB hold three, and a fourth that said it was small"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_layer_that_is_full_sends_the_task_to_the_next(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", small], check=True)
    try:
        storage = describe(tmp_path, capacity="1GB", fast=small)

        @al.io
        def write(path: al.FileOut, n):
            Path(path).write_bytes(bytes([n]) * 3_000_000)
            return path

        with al.Session(workers=1, io_executors=2, storage=storage) as session:
            places = al.wait([write(f"slow/{n}", n) for n in range(6)])
            al.write("slow/built-in", bytes(3_000_000)).result(LONG)
            assert session.statistics().displaced >= 1
        assert all(place.startswith(str(tmp_path / "slow")) for place in places)
        assert [(tmp_path / f"slow/{n}").stat().st_size for n in range(6)] == [3_000_000] * 6
        assert (tmp_path / "slow/built-in").stat().st_size == 3_000_000
        assert not left_in(tmp_path)
    finally:
        subprocess.run(["umount", small], check=True)


@pytest.mark.parametrize("named", [False, True])
def test_an_input_that_cannot_be_read_takes_no_layer_down(storage, tmp_path, named):
    Path("slow/bad").touch()

    @al.io(on_failure="cancel_dependents")
    def convert(source: al.FileIn, target: al.FileOut):
        Path(target).touch()
        raise OSError(errno.EIO, "bad sector", source if named else None)

    with al.Session(workers=1, io_executors=1, storage=storage) as session:
        failed = convert("slow/bad", "slow/converted")
        with pytest.raises(OSError, match="bad sector"):
            failed.result(LONG)
        assert session.statistics().displaced == (0 if named else 2), "reads give no name"
        assert save("slow/other", "1").result(LONG).startswith(str(tmp_path / "fast"))
    assert (tmp_path / "slow/other").read_text() == "1"


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a small file system")
def test_a_layer_that_takes_no_files_is_down_until_it_does(tmp_path, monkeypatch, until):
    monkeypatch.chdir(tmp_path)
    fast = tmp_path / "frail"
    fast.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", fast], check=True)
    try:
        storage = describe(tmp_path, fast=fast)
        with al.Session(workers=1, io_executors=1, storage=storage) as session:

            def saved_on():
                return Path(save("slow/x", "1").result(LONG)).relative_to(tmp_path).parts[0]

            def is_passed_by():
                before = session.statistics().displaced
                return saved_on() == "slow" and session.statistics().displaced == before

            assert saved_on() == "frail"
            subprocess.run(["mount", "-o", "remount,ro", fast], check=True)
            until(is_passed_by)
            subprocess.run(["mount", "-o", "remount,rw", fast], check=True)
            until(lambda: saved_on() == "frail")
        assert not left_in(tmp_path)
    finally:
        subprocess.run(["umount", fast], check=True)


def command(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "alongside", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=LONG, check=False,
    )  # fmt: skip


KILLED = """
    import os, signal
    import alongside as al

    @al.io
    def save(path: al.FileOut, text):
        with open(path, "w") as file:
            file.write(text)

    @al.io
    def stuck(path: al.FileOut):
        with open(path, "w") as file:
            file.write("half")
            file.flush()
            print("stuck", flush=True)
            signal.pause()

    with al.Session(workers=1, storage="storage.toml"):
        al.wait([save(f"slow/new/{n}", str(n)) for n in range(5)])
        save("slow/old", "newer").result()
        stuck("slow/other")
"""


@pytest.fixture
def killed(storage, tmp_path):
    """A session that was killed; its folder."""
    return kill_session(tmp_path)


def kill_session(tmp_path):
    for name in ("old", "other"):
        (tmp_path / "slow" / name).write_text("older")
    program = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED)],
        cwd=tmp_path, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert program.stdout.readline() == "stuck\n"
    [folder] = (tmp_path / ".alongside").iterdir()
    refused = command("recover", folder, cwd=tmp_path)
    assert refused.returncode == 2 and "still running" in refused.stderr
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()
    return folder


def test_what_a_killed_session_wrote_is_recovered(killed, tmp_path):
    listed = command("files", cwd=tmp_path)
    assert listed.returncode == 1 and "6 files" in listed.stdout and "recover" in listed.stdout
    assert (tmp_path / "slow/old").read_text() == "older"
    recovered = command("recover", killed, cwd=tmp_path)
    assert recovered.returncode == 0, recovered
    assert "6 of 6 files are settled" in recovered.stdout
    assert [(tmp_path / f"slow/new/{n}").read_text() for n in range(5)] == list("01234")
    assert (tmp_path / "slow/old").read_text() == "newer"
    assert (tmp_path / "slow/other").read_text() == "older", (
        "the task that was killed wrote nothing"
    )
    assert not left_in(tmp_path)
    again = command("recover", killed, cwd=tmp_path)
    assert again.returncode == 2 and "no catalog" in again.stderr
    assert command("files", cwd=tmp_path).returncode == 0


def test_what_is_lost_is_told_and_the_rest_recovered(killed, tmp_path):
    [lost] = (tmp_path / "fast").rglob("*-3")
    lost.unlink()
    recovered = command("recover", killed, cwd=tmp_path)
    assert recovered.returncode == 1 and "slow/new/3: lost" in recovered.stdout
    assert killed.exists() and not (tmp_path / "slow/new/3").exists()
    assert (tmp_path / "slow/new/4").read_text() == "4"
    assert command("recover", "--discard", killed, cwd=tmp_path).returncode == 1
    assert not left_in(tmp_path)


FORKED = """
    import os, signal
    import alongside as al

    @al.io
    def save(path: al.FileOut):
        with open(path, "w") as file:
            file.write("kept")

    with al.Session(workers=1, storage="storage.toml"):
        save("slow/a").result()
        if os.fork() == 0:
            print("forked", flush=True)
            os.read(0, 1)
            os._exit(0)
        signal.pause()
"""


def test_a_killed_session_is_over_while_a_process_that_it_forked_lives(storage, tmp_path):
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(FORKED)],
        cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as program:  # fmt: skip
        assert program.stdout.readline() == "forked\n"
        program.kill()
        program.wait()
        [folder] = (tmp_path / ".alongside").iterdir()
        recovered = command("recover", folder, cwd=tmp_path)
    assert recovered.returncode == 0, recovered
    assert (tmp_path / "slow/a").read_text() == "kept"
    assert not left_in(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts folders")
def test_files_come_home_between_two_mounts_of_one_file_system(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = describe(tmp_path)
    for name in ("fast", "slow"):
        (tmp_path / "disk" / name).mkdir(parents=True)
        subprocess.run(["mount", "--bind", f"disk/{name}", name], check=True)
    try:
        assert Path("fast").stat().st_dev == Path("slow").stat().st_dev
        with al.Session(workers=1, storage=storage):
            save("slow/a", "1").result(LONG)
            fill("slow/deep/folder").result(LONG)
        assert (tmp_path / "slow/a").read_text() == "1"
        assert (tmp_path / "slow/deep/folder/part").read_text() == "of it"
        assert not left_in(tmp_path)
        recovered = command("recover", kill_session(tmp_path), cwd=tmp_path)
        assert recovered.returncode == 0, recovered
        assert (tmp_path / "slow/old").read_text() == "newer"
        assert not left_in(tmp_path)
    finally:
        subprocess.run(["umount", "fast", "slow"], check=True)


def test_a_file_that_cannot_come_home_is_kept(storage, tmp_path):
    session = al.Session(workers=1, storage=storage)
    with (
        pytest.raises(al.StorageError, match="could not be brought to their own p") as raised,
        session,
    ):
        save("slow/taken/a", "kept").result(LONG)
        save("slow/b", "home").result(LONG)
        (tmp_path / "slow/taken").write_text("a file in the way")
    assert "slow/taken" in str(raised.value) and "alongside recover" in str(raised.value)
    assert (tmp_path / "slow/b").read_text() == "home"
    (tmp_path / "slow/taken").unlink()
    [folder] = (tmp_path / ".alongside").iterdir()
    assert command("recover", folder, cwd=tmp_path).returncode == 0
    assert (tmp_path / "slow/taken/a").read_text() == "kept"
    assert not left_in(tmp_path)
