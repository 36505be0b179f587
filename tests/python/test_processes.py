"""What is left behind: nothing. Start, end, orphans, forks, memory."""

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import alongside as al


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds=20):
    """Whether these processes end. There is nothing to wait on for those of others."""
    end = time.monotonic() + seconds
    while any(alive(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_a_session_leaves_no_process():
    with al.Session(workers=2) as session:
        assert al.wait(al.task(abs)(-1)) == 1
        pids = session.native.worker_pids()
        assert len(pids) == 3
    assert gone(pids)


def test_an_exception_in_the_block_ends_the_workers(gate, mailbox):
    @al.task
    def block(gate, mailbox):
        mailbox.send("in")
        gate.pass_through()

    try:
        with al.Session(workers=1) as session:
            future = block(gate, mailbox)
            waiting = [block(gate, mailbox) for _ in range(3)]
            mailbox.receive()
            pids = session.native.worker_pids()
            raise KeyError
    except KeyError:
        pass
    assert gone(pids)
    assert future.done()
    assert isinstance(future.exception(), al.SessionError)
    assert all(one.cancelled() for one in waiting)


ORPHANS = r"""
import os, sys
import alongside as al

with al.Session(workers=2) as session:
    if len(sys.argv) > 1:
        @al.task
        def spin():
            os.write(1, b"%d\n" % os.getpid())
            while True:
                pass
        spin()
        spin()
    else:
        al.wait(al.task(abs)(-1))
        for pid in session.native.worker_pids():
            print(pid, flush=True)
    sys.stdin.read()
"""


def orphans(tmp_path, *arguments, count):
    file = tmp_path / "orphans.py"
    file.write_text(ORPHANS)
    command = [sys.executable, str(file), *arguments]
    driver = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with driver:
        try:
            pids = [int(driver.stdout.readline()) for _ in range(count)]
            assert all(alive(pid) for pid in pids)
        finally:
            driver.kill()
        driver.wait()
        assert gone(pids)


def test_idle_workers_end_with_a_killed_driver(tmp_path):
    orphans(tmp_path, count=3)


def test_busy_workers_end_with_a_killed_driver(tmp_path):
    orphans(tmp_path, "busy", count=2)


def test_an_empty_program_is_quick(program):
    """Below 0.5 s; on a machine that does other things, below what it makes of Python's own."""

    def seconds(text):
        started = time.monotonic()
        program(text, check=0)
        return time.monotonic() - started

    text = "import alongside as al\nwith al.Session():\n    pass\n"
    seconds(text)
    ours, pythons = zip(*((seconds(text), seconds("pass")) for _ in range(5)), strict=True)
    assert min(ours) < max(0.5, 15 * min(pythons))


def test_the_end_of_the_program_waits_for_an_open_session(program):
    done = program(
        """
        import alongside as al
        session = al.Session(workers=1)
        session.submit(print, "was run")
        """,
        check=0,
    )
    assert done.stdout == "was run\n"


def test_a_failure_is_told_by_the_exit_code(program):
    text = """
        import alongside as al
        @al.task
        def bad():
            raise ValueError("told")
        with al.Session(workers=1):
            bad()
        """
    done = program(text, check=1)
    assert "ValueError: task 'bad' failed: ValueError: told" in done.stderr
    assert "in bad" in done.stderr


def test_a_forked_child_leaves_the_session_alone():
    with al.Session(workers=1):
        double = al.task(lambda x: 2 * x)
        assert al.wait(double(1)) == 2
        child = os.fork()
        if child == 0:
            code = 1
            try:
                double(2)
            except al.SessionError:
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        assert al.wait(double(3)) == 6


def test_a_child_that_a_task_forked_does_not_come_back_to_the_worker(capfd):
    def forks(n):
        child = os.fork()
        if child == 0:
            if n < 0:
                raise ValueError(n)
            return np.ones(n)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    with al.Session(workers=1):
        for kind in (al.task, al.io):
            results = [kind(forks)(n) for n in (1, 1_000_000, -1) * 30]
            assert al.wait_all(results) == [127] * 90
    said = [line for line in capfd.readouterr().err.splitlines() if "a child that a task" in line]
    assert len(said) == 180
    whole = re.compile(r"alongside worker \d+: a child that a task forked .*; it ends")
    assert all(whole.fullmatch(line) for line in said)


def test_memory_is_given_back():
    @al.task
    def make(n):
        return np.ones(n)

    @al.task
    def total(a):
        return float(a.sum())

    with al.Session(workers=1, memory="100MB") as session:
        for _ in range(30):
            array = make(1_000_000)
            assert al.wait(total(array)) == 1e6
            del array
        result = make(1_000_000).result()
        view = result[10:20]
        del result
        assert session.statistics().store_bytes >= 8_000_000
        assert view.sum() == 10
        del view
        al.wait(make(1))
        assert session.statistics().store_bytes < 1_000_000
        assert session.statistics().store_bytes_peak < 40_000_000


def test_finished_tasks_leave_nothing_in_memory():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @al.task
    def add(a, b):
        return a + b

    with al.Session(workers=2):

        def work():
            value = add(0, 0)
            for _ in range(20):
                al.wait_all([add(value, n) for n in range(500)])
            return value.result()

        work()
        before = resident()
        work()
        work()
        assert resident() - before < 8_000_000


def test_interrupt_in_a_wait(program, tmp_path):
    text = """
        import os, signal, threading
        import alongside as al
        from alongside.testing import Gate, Mailbox
        gate, box = Gate("gate"), Mailbox("box")
        @al.task
        def block(gate, box):
            box.send("in")
            gate.pass_through()
        try:
            with al.Session(workers=1):
                future = block(gate, box)
                box.receive()
                threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
                future.result()
        except KeyboardInterrupt:
            print("interrupted")
        """
    assert program(text, check=0).stdout == "interrupted\n"


def test_libraries_in_a_worker_keep_to_its_processor(program, monkeypatch):
    text = """
        import os
        import alongside as al

        names = ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"]
        with al.Session(workers=1):
            print(al.wait(al.task(lambda: [os.environ[name] for name in names])()))
    """
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    assert program(text, check=0).stdout == "['1', '1']\n"
    assert program(text, check=0, env={"OMP_NUM_THREADS": "3"}).stdout == "['3', '1']\n"


@pytest.mark.parametrize("by", ["python", "alongside run"])
@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_standard_streams_may_be_closed(tmp_path, closed, by):
    """As a daemon has them. What bodies print there leads nowhere, not into our memory."""
    (tmp_path / "app.py").write_text(
        textwrap.dedent("""
        import os
        from pathlib import Path
        import alongside as al

        @al.task
        def prints(number):
            print("x" * 4096, flush=True)
            for stream in (1, 2):
                os.write(stream, b"x" * 4096)
            return number * 2

        @al.io
        def write(path: al.FileOut, value):
            print("x" * 4096, flush=True)
            Path(path).write_text(str(value))

        with al.Session(workers=2) as session:
            write("out", sum(al.wait_all([prints(number) for number in range(10)])))
        """)
    )
    run = ["-m", "alongside", "run"] if by == "alongside run" else []

    def close():
        for stream in closed:
            os.close(stream)

    command = [sys.executable, *run, "app.py"]
    streams = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
    done = subprocess.run(
        command, preexec_fn=close, cwd=tmp_path, timeout=90, check=False, **streams
    )
    assert done.returncode == 0
    assert (tmp_path / "out").read_text() == "90"


@pytest.fixture
def freezer(until):
    """A control group whose processes do not even end when they are killed, until it is thawed."""
    group = Path("/sys/fs/cgroup/freezer") / f"alongside-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no freezer here: {error}")
    yield group
    (group / "freezer.state").write_text("THAWED")
    until(lambda: not (group / "tasks").read_text())
    group.rmdir()


def test_a_session_ends_although_a_killed_worker_does_not(freezer, mailbox, gate):
    """As one that waits for storage that does not answer."""

    @al.task
    def tells_and_waits(mailbox, gate):
        mailbox.send(os.getpid())
        gate.pass_through()

    with al.Session(workers=1) as session:
        future = tells_and_waits(mailbox, gate)
        worker = mailbox.receive()
        (freezer / "cgroup.procs").write_text(worker)
        (freezer / "freezer.state").write_text("FROZEN")
        said = f"worker process {worker} was killed and does not end"
        with pytest.warns(RuntimeWarning, match=said):
            session.close(cancel=True)
    with pytest.raises(al.SessionError):
        future.result()
    assert Path(f"/proc/{worker}").exists()
