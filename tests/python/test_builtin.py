"""`al.read`, `al.write`, `al.copy`: by the engine, in the driver, for every kind of value."""

from __future__ import annotations

import array
import errno
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import alongside as al

LONG = 60


@pytest.fixture(params=["io_uring", "threads"], autouse=True)
def engine(request, monkeypatch):
    if request.param == "threads":
        monkeypatch.setenv("ALONGSIDE_ENGINE", "threads")
    return request.param


@pytest.fixture
def stopped(session):
    """A session none of whose workers can do anything."""
    pids = session.native.worker_pids()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    yield session
    for pid in pids:
        os.kill(pid, signal.SIGCONT)


@al.task
def give(value):
    return value


@al.task
def made(text, *args):
    return eval(text, {"np": np, "array": array, "args": args})


def test_tasks_wait_for_each_other(session):
    assert al.write("one", made("np.arange(200, dtype=np.uint8)")).result(LONG) == 200
    copied = al.copy("one", "two")
    text = al.read("two")
    part = al.read("two", offset=10, size=5)
    again = al.write("three", text)
    assert text.result(LONG) == bytes(range(200))
    assert part.result(LONG) == bytes(range(10, 15))
    assert copied.result(LONG) == again.result(LONG) == 200
    beyond = al.read("three", offset=190, size=100)
    assert beyond.result(LONG) == bytes(range(190, 200))
    assert al.read("three", offset=300).result(LONG) == b""


def test_no_worker_is_needed(stopped):
    data = np.random.default_rng(7).random(300_000)
    assert al.write("one", data).result(LONG) == data.nbytes
    copied = al.copy("one", "a/b/two", durable=True)
    again = al.write("three", al.read("a/b/two"), durable=True)
    stored = stopped.put(data)
    assert al.write("four", stored).result(LONG) == data.nbytes
    assert copied.result(LONG) == again.result(LONG) == data.nbytes
    for name in ("a/b/two", "three", "four"):
        with open(name, "rb") as file:
            assert file.read() == data.tobytes()
    with pytest.raises(FileNotFoundError):
        al.read("missing").result(LONG)


def test_the_death_of_workers_does_not_disturb(session):
    data = os.urandom(9_000_000)
    writes = [al.write(f"file-{i}", data) for i in range(8)]
    for pid in session.native.worker_pids():
        os.kill(pid, signal.SIGKILL)
    reads = [al.read(f"file-{i}") for i in range(8)]
    assert al.wait(writes) == [len(data)] * 8
    assert all(read.result(LONG) == data for read in reads)


def test_many_at_once_need_no_threads(session, engine):
    def threads():
        return [len(os.listdir(f"/proc/{pid}/task")) for pid in session.native.worker_pids()]

    al.write("first", b"first").result(LONG)
    workers, own = threads(), len(os.listdir("/proc/self/task"))
    writes = [al.write(f"file-{i}", bytes([i % 256]) * 5000) for i in range(1000)]
    assert al.wait(writes) == [5000] * 1000
    assert threads() == workers
    # The engine of threads has a pool; a ring a few beside it, and those of the kernel.
    most = 32 if engine == "threads" else 16 + 4 * len(os.sched_getaffinity(0))
    assert len(os.listdir("/proc/self/task")) <= own + most
    for i in range(1000):
        with open(f"file-{i}", "rb") as file:
            assert file.read() == bytes([i % 256]) * 5000


VALUES = {
    "b''": b"",
    "b'x' * 70_000": b"x" * 70_000,
    "bytearray(b'abc')": b"abc",
    "bytearray(70_000)": bytes(70_000),
    "np.arange(6.).reshape(2, 3)": np.arange(6.0).tobytes(),
    "np.arange(70_000, dtype='>u2')": np.arange(70_000, dtype=">u2").tobytes(),
    "np.full((30, 40), 1 + 2j)": np.full((30, 40), 1 + 2j).tobytes(),
    "np.float32(7).reshape(())": np.float32(7).tobytes(),
    "np.ones(3)[:0]": b"",
    # These only Python can look into.
    "np.arange(10)[::2]": np.arange(10)[::2].tobytes(),
    "array.array('d', [1, 2])": array.array("d", [1, 2]).tobytes(),
    "np.float64(3)": np.float64(3).tobytes(),
}


def test_the_bytes_of_a_future_are_written(session):
    for text, data in VALUES.items():
        assert al.write("file", made(text)).result(LONG) == len(data), text
        assert al.read("file").result(LONG) == data, text


def test_the_bytes_of_a_value_are_written_as_they_are_at_the_call(session):
    for text, data in VALUES.items():
        value = eval(text, {"np": np, "array": array})
        if text == "np.arange(10)[::2]":
            value = np.ascontiguousarray(value)
        written = al.write("file", value)
        if isinstance(value, np.ndarray):
            value[...] = 0
        assert written.result(LONG) == len(data), text
        assert al.read("file").result(LONG) == data, text


def test_a_view_of_memory_is_written(session):
    memory = memoryview(bytearray(b"0123456789"))
    assert al.write("file", memory[2:5]).result(LONG) == 3
    assert al.read("file").result(LONG) == b"234"


def test_an_object_that_tasks_change_is_written_as_they_left_it(session):
    @al.task
    def double(values: al.InOut):
        values *= 2

    values = np.arange(100_000)
    double(values)
    written = al.write("file", values)
    double(values)
    beside = al.write("other", np.ones(50_000))
    assert written.result(LONG) == values.nbytes
    assert beside.result(LONG) == 400_000
    assert al.read("file").result(LONG) == (np.arange(100_000) * 2).tobytes()


def test_what_has_no_bytes_in_order_is_refused(session):
    for value in ("text", 7, None, ["a", "list"], np.asfortranarray(np.eye(3))):
        for data in (value, give(value)):
            with pytest.raises(TypeError):
                al.write("file", data).result(LONG)


def test_errors_are_those_of_the_system(session, tmp_path):
    (tmp_path / "folder").mkdir()
    for call, kind, number, name in [
        (lambda: al.read(tmp_path / "none"), FileNotFoundError, errno.ENOENT, "none"),
        (lambda: al.read(tmp_path / "folder"), IsADirectoryError, errno.EISDIR, "folder"),
        (lambda: al.write("folder", b"x"), IsADirectoryError, errno.EISDIR, "folder"),
        (lambda: al.write("/dev/full", b"x"), OSError, errno.ENOSPC, "full"),
        (lambda: al.copy("/dev/zero", tmp_path / "folder"), OSError, errno.EISDIR, "folder"),
    ]:
        with pytest.raises(kind) as raised:
            call().result(LONG)
        assert raised.value.errno == number
        assert os.fspath(raised.value.filename).endswith(name)
        assert name in str(raised.value)


@pytest.mark.parametrize("inside", [True, False], ids=["session", "alone"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_copy_onto_the_same_file_is_refused_and_destroys_nothing(request, tmp_path, link, inside):
    if inside:
        request.getfixturevalue("session")
    data, name = tmp_path / "data", tmp_path / "name"
    data.write_bytes(b"what is kept")
    link(data, name)
    if inside and link is os.symlink:  # they are one datum
        with pytest.raises(al.DirectionError, match="the same object or file is given twice"):
            al.copy(name, data)
    else:
        with pytest.raises(OSError, match="source and target are the same file") as raised:
            al.wait(al.copy(name, data))
        assert raised.value.errno == errno.EINVAL
        assert os.fspath(raised.value.filename) == os.fspath(data)
    assert data.read_bytes() == b"what is kept"
    (tmp_path / "other").write_bytes(b"longer than what is kept")
    assert al.wait(al.copy(name, tmp_path / "other")) == 12
    assert (tmp_path / "other").read_bytes() == b"what is kept"


@pytest.mark.parametrize("inside", [True, False], ids=["session", "alone"])
def test_a_size_that_is_far_too_large_takes_no_memory(request, tmp_path, inside):
    if inside:
        request.getfixturevalue("session")
    (tmp_path / "empty").touch()
    (tmp_path / "short").write_bytes(b"0123456789")
    assert al.wait(al.read(tmp_path / "empty", size=10**12)) == b""
    assert al.wait(al.read(tmp_path / "short", offset=7, size=10**12)) == b"789"
    with open("/proc/version", "rb") as file:
        assert al.wait(al.read("/proc/version", size=10**12)) == file.read()


@pytest.mark.parametrize("inside", [True, False], ids=["session", "alone"])
def test_a_file_that_does_not_tell_its_size_is_read_and_copied_to_its_end(
    request, tmp_path, inside
):
    if inside:
        request.getfixturevalue("session")
    command = [sys.executable, "-c", "input(0)", "argument" * 15_000]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.read(1) == b"0", "exec has set its arguments"
        name = f"/proc/{process.pid}/cmdline"
        data = b"".join(part.encode() + b"\0" for part in command)
        assert os.stat(name).st_size == 0 and len(data) > 100_000, "more than the first room"
        assert al.wait(al.read(name)) == data
        assert al.wait(al.read(name, offset=90_000)) == data[90_000:]
        assert al.wait(al.copy(name, tmp_path / "copy")) == len(data)
        process.communicate(b"\n")
    assert (tmp_path / "copy").read_bytes() == data
    (tmp_path / "empty").touch()
    assert al.wait(al.read(tmp_path / "empty")) == b""
    assert al.wait(al.copy(tmp_path / "empty", tmp_path / "copy")) == 0
    assert (tmp_path / "copy").read_bytes() == b""


def test_a_file_that_goes_before_its_turn_fails_the_task_and_what_needs_it(session, gate):
    @al.io
    def remove(path: al.FileInOut, gate):
        gate.pass_through()
        os.remove(path)

    open("file", "w").close()
    remove("file", gate)
    text = al.read("file")
    needs = give(text)
    gate.open()
    with pytest.raises(FileNotFoundError) as raised:
        needs.result(LONG)
    assert isinstance(raised.value, al.TaskError)
    assert raised.value.chain == ("read", "give")
    assert isinstance(raised.value.__cause__, FileNotFoundError)
    with pytest.raises(FileNotFoundError, match=r"task 'read' failed: FileNotFoundError: .*file"):
        text.result(LONG)


def test_it_is_tried_again_and_failure_may_be_ignored(session):
    @al.task
    def is_none(value):
        return value is None

    failed = al.write("/dev/full", b"x", retries=2, on_failure="ignore")
    assert is_none(failed).result(LONG)
    with pytest.raises(TypeError):
        al.write("file", failed).result(LONG)
    [figures] = [one for one in session.statistics().functions if one.name == "write"]
    assert (figures.runs, figures.failed, figures.io) == (4, 2, True)


def test_a_task_that_waits_can_be_cancelled(session, gate):
    @al.task
    def wait(gate):
        gate.pass_through()
        return b"late"

    late = wait(gate)
    written = al.write("file", late)
    assert written.cancel()
    gate.open()
    with pytest.raises(al.CancelledError):
        written.result(LONG)
    assert late.result(LONG) == b"late"
    assert not os.path.exists("file")


def test_a_pipe_is_refused_at_once(session):
    os.mkfifo("pipe")
    for call in (lambda: al.read("pipe"), lambda: al.read("pipe", size=5)):
        with pytest.raises(OSError) as raised:
            call().result(LONG)
        assert raised.value.errno == errno.ESPIPE


def test_the_time_of_a_task_can_be_up(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    storage = tmp_path / "storage.toml"
    storage.write_text(f'[[layer]]\nname = "disk"\npath = "{tmp_path}/disk"\nlimit = "1MB/s"\n')
    with al.Session(workers=1, storage=storage):
        slow = al.write("slow", bytes(50_000_000), timeout=0.01, on_failure="cancel_dependents")
        with pytest.raises(al.TaskTimeoutError):
            slow.result(LONG)
        with pytest.raises(al.TaskTimeoutError, match="was not run"):
            al.read("slow").result(LONG)


def test_arguments_that_only_python_understands(session, tmp_path):
    (tmp_path / "file").write_bytes(b"0123456789")
    assert al.read("file", offset=give(3)).result(LONG) == b"3456789"
    assert al.read("file", size=np.int64(2)).result(LONG) == b"01"
    with pytest.raises(ValueError):
        al.read("file", size=-1).result(LONG)
    with pytest.raises(TypeError):
        al.read(None).result(LONG)
    with pytest.raises(TypeError, match="returns=2"):
        al.read("file", returns=2)[0].result(LONG)


def test_an_engine_that_cannot_be_opened_fails_the_task(session, monkeypatch):
    monkeypatch.setenv("ALONGSIDE_ENGINE", "steam")
    with pytest.raises(al.TaskError, match="ALONGSIDE_ENGINE"):
        al.read("/dev/null").result(LONG)
    monkeypatch.delenv("ALONGSIDE_ENGINE")
    assert al.read("/dev/null").result(LONG) == b""


def test_constraints_place_and_hold_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = tmp_path / "storage.toml"
    (tmp_path / "disk").mkdir()
    storage.write_text(
        f'[[layer]]\nname = "disk"\npath = "{tmp_path}/disk"\nbandwidth = "100MB/s"\n'
    )
    with al.Session(workers=1, storage=storage):
        with pytest.raises(al.ConstraintError):
            al.write("too-much", b"x", bandwidth="200MB/s")
        done = [al.write(f"file-{i}", b"x" * 1000, bandwidth="60MB/s") for i in range(4)]
        assert [future.result(LONG) for future in done] == [1000] * 4
    assert (tmp_path / "file-3").read_bytes() == b"x" * 1000


def test_the_emulated_limit_is_shared_with_other_tasks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @al.io
    def by_hand(path: al.FileOut):
        with al.open(path, "wb") as file:
            file.write(b"x" * 1_000_000)

    (tmp_path / "disk").mkdir()
    storage = tmp_path / "storage.toml"
    storage.write_text(f'[[layer]]\nname = "disk"\npath = "{tmp_path}/disk"\nlimit = "10MB/s"\n')
    with al.Session(workers=1, storage=storage):
        began = time.monotonic()
        written = [al.write(name, bytes(1_000_000)) for name in ("one", "two")]
        al.wait([*written, by_hand("three")])
        assert time.monotonic() - began >= 0.29
        began = time.monotonic()
        assert al.copy("one", "four").result(LONG) == 1_000_000
        assert time.monotonic() - began >= 0.19, "its bytes pass twice"


def test_they_are_shown_as_io_tasks(session, tmp_path):
    al.copy("/dev/null", "file").result(LONG)
    al.read("file", name="the file").result(LONG)
    functions = {one.name: one for one in session.statistics().functions}
    assert functions["copy"].io
    assert functions["the file"].io
    session.native.export_trace(str(tmp_path / "trace.json"))
    text = (tmp_path / "trace.json").read_text()
    assert '"name":"copy","cat":"io"' in text


def test_the_interpreter_ends_with_tasks_under_way(program):
    done = program(
        """
        import alongside as al

        session = al.Session(workers=1)
        with session:
            first = al.write("first", b"x")
            first.result(60)
            al.read("/dev/zero", size=400_000_000)
            raise SystemExit(3)
        """,
        check=3,
    )
    assert "Traceback" not in done.stderr


def test_without_a_session_they_simply_run(tmp_path):
    path = str(tmp_path / "file")
    assert al.wait(al.write(path, b"hello")) == 5
    assert al.wait(al.read(path)) == b"hello"
    assert al.wait(al.copy(path, path + ".copy")) == 5
    assert al.wait(al.write(path, np.full(2, 1j))) == 32
    with pytest.raises(TypeError):
        al.write(path, np.asfortranarray(np.eye(3)))


def test_calls_from_many_threads(session):
    def calls(number):
        for i in range(20):
            al.write(f"{number}-{i}", b"%d" % i).result(LONG)

    threads = [threading.Thread(target=calls, args=[number]) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    reads = [al.read(f"{number}-{i}") for number in range(4) for i in range(20)]
    assert al.wait(reads) == [b"%d" % i for _ in range(4) for i in range(20)]
