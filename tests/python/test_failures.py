"""Failures: tracebacks, chains, modes, retries, timeouts, cancellation, lost workers."""

import os
import signal
import time
from pathlib import Path

import pytest

import alongside as al


class SpecialError(Exception):
    """Cannot be made again from its arguments."""

    def __init__(self, code, *, extra):
        super().__init__(f"special {code}")
        self.code = code


def inner_helper(x):
    raise ValueError(f"bad {x}")


@al.task(on_failure="cancel_dependents")
def fails(x):
    return inner_helper(x)


@al.task(on_failure="cancel_dependents")
def passes(x, *more):
    return x


def test_the_own_exception_comes_with_its_remote_traceback(session):
    future = fails(3)
    with pytest.raises(ValueError, match="task 'fails' failed: ValueError: bad 3") as caught:
        future.result()
    error = caught.value
    assert isinstance(error, al.TaskError)
    assert error.chain == ("fails",)
    assert isinstance(error.cause, ValueError)
    assert error.__cause__ is error.cause
    remote = str(error.cause.__cause__)
    assert "inner_helper" in remote
    assert "test_failures.py" in remote
    assert "_worker.py" not in remote
    assert future.exception() is error
    assert future.done()
    assert not future.cancelled()


def test_the_chain_of_tasks(session):
    last = passes(passes(fails(1)), [passes(2)])
    with pytest.raises(ValueError) as caught:
        last.result()
    assert caught.value.chain == ("fails", "passes", "passes")
    assert "was not run: task 'fails' failed" in str(caught.value)
    assert "fails -> passes -> passes" in str(caught.value)


def test_attributes_of_exceptions_are_kept(session):
    @al.task(on_failure="cancel_dependents")
    def missing():
        Path("/nowhere/at/all").read_text()

    with pytest.raises(FileNotFoundError) as caught:
        missing().result()
    assert caught.value.errno == 2
    assert caught.value.filename == "/nowhere/at/all"
    assert caught.value.cause.strerror == "No such file or directory"


@pytest.mark.parametrize("kind", ["special", "unpicklable", "exit", "base", "text"])
def test_strange_exceptions(session, kind):
    @al.task(on_failure="cancel_dependents")
    def strange(kind):
        if kind == "special":
            raise SpecialError(3, extra=1)
        if kind == "unpicklable":
            error = ValueError("with a lock")
            import threading

            error.lock = threading.Lock()
            raise error
        if kind == "exit":
            raise SystemExit(3)
        if kind == "text":

            class MuteError(Exception):
                def __str__(self):
                    raise RuntimeError("no text")

            raise MuteError
        raise KeyboardInterrupt

    with pytest.raises(al.TaskError, match=r"task '.*strange' failed: ") as caught:
        strange(kind).result()
    assert "strange" in str(caught.value.cause.__cause__)


def test_leaving_the_block_raises_the_first_unseen_failure():
    @al.task
    def bad():
        raise ValueError("unseen")

    with pytest.raises(ValueError, match="unseen"), al.Session(workers=1):
        bad()
    with al.Session(workers=1):
        assert isinstance(bad().exception(), ValueError)
    with pytest.raises(KeyError), al.Session(workers=1):
        bad()
        raise KeyError("mine goes first")


def test_ignore_gives_none_to_dependents(session):
    @al.task(on_failure="ignore")
    def bad():
        raise ValueError

    @al.task
    def see(x):
        return x is None

    future = bad()
    assert al.wait(see(future)) is True


def test_retries(session, tmp_path):
    marks = tmp_path / "marks"

    @al.task(retries=2, on_failure="cancel_dependents")
    def flaky(marks, good_at):
        with open(marks, "a") as file:
            file.write("x")
        if Path(marks).stat().st_size < good_at:
            raise ValueError("not yet")
        return "good"

    assert flaky(marks, 3).result() == "good"
    marks.unlink()
    with pytest.raises(ValueError):
        flaky(marks, 9).result()
    assert marks.stat().st_size == 3


def test_a_killed_worker(session):
    @al.task(on_failure="cancel_dependents")
    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    future = die()
    with pytest.raises(al.WorkerLostError, match=r"task '.*die' failed: .*SIGKILL") as caught:
        future.result()
    assert caught.value.signal == signal.SIGKILL
    assert al.wait(passes(4)) == 4
    assert session.statistics().workers_lost == 1


def test_a_worker_that_exits(session):
    @al.io(on_failure="cancel_dependents")
    def leave():
        os._exit(3)

    with pytest.raises(al.WorkerLostError, match="exited with code 3") as caught:
        leave().result()
    assert caught.value.signal is None
    assert al.wait(passes(4)) == 4


def test_a_killed_worker_and_a_retry(session, tmp_path):
    @al.task(retries=1)
    def once(mark):
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return "second"
        return os.kill(os.getpid(), signal.SIGSEGV)

    assert once(tmp_path / "mark").result() == "second"


def test_timeout_of_a_task(session, gate):
    @al.task(timeout=0.2, on_failure="cancel_dependents")
    def stuck(gate):
        gate.pass_through()

    @al.io(timeout=0.2, on_failure="cancel_dependents")
    def stuck_io(gate):
        gate.pass_through()

    for function in (stuck, stuck_io):
        future = function(gate)
        with pytest.raises(al.TaskTimeoutError, match=r"longer than its timeout of 0\.2 s"):
            future.result()
        with pytest.raises(TimeoutError):
            future.result()
    assert al.wait(passes(4)) == 4


def test_timeout_of_a_wait(session, gate):
    @al.task
    def slow(gate):
        gate.pass_through()
        return 1

    future = slow(gate)
    for wait in (
        lambda: future.result(0.01),
        lambda: future.exception(timeout=0),
        lambda: al.wait(future, timeout=0.01),
        lambda: al.wait_all([future], timeout=0.01),
        lambda: list(al.as_completed([future], timeout=0.01)),
    ):
        started = time.monotonic()
        with pytest.raises(TimeoutError, match="not done after"):
            wait()
        assert time.monotonic() - started < 5
    gate.open()
    assert future.result(30) == 1


def test_cancel(session, gate, mailbox):
    @al.task
    def block(gate, mailbox):
        mailbox.send("in")
        gate.pass_through()
        return 1

    blocked = [block(gate, mailbox) for _ in range(2)]
    assert [mailbox.receive() for _ in blocked] == ["in", "in"]
    waiting = passes(1)
    dependent = passes(waiting)
    assert waiting.cancel()
    assert waiting.cancelled()
    assert waiting.cancel()
    assert waiting.done()
    with pytest.raises(al.CancelledError, match="task 'passes' was cancelled"):
        waiting.result()
    with pytest.raises(al.CancelledError, match="not run") as caught:
        dependent.result()
    assert caught.value.chain == ("passes", "passes")
    assert not blocked[0].cancel()
    assert blocked[0].running()
    gate.open()
    assert al.wait_all(blocked) == [1, 1]
    assert not blocked[0].cancel()


def test_a_future_of_another_session():
    with al.Session(workers=1):
        old = passes(1)
    with al.Session(workers=1):
        with pytest.raises(al.SessionError, match=r"passes\(\): an argument contains a future of"):
            passes(old)
        with pytest.raises(al.SessionError):
            passes([{"x": old}])
        assert al.wait(passes(old.result())) == 1


def test_a_closed_session():
    session = al.Session(workers=1)
    assert session.submit(abs, -1).result() == 1
    session.shutdown()
    session.shutdown()
    with pytest.raises(al.SessionError, match="the session is closed"):
        session.submit(abs, -1)
    with pytest.raises(al.SessionError, match="closed"), session:
        pass


def test_futures_are_not_pickled_elsewhere(session):
    import pickle

    with pytest.raises(TypeError, match="argument of a task"):
        pickle.dumps(passes(1))
    with pytest.raises(TypeError, match="calling a task"):
        al.Future()


def test_the_store_is_full(tmp_path):
    import numpy as np

    with al.Session(workers=1, memory="20MB"):
        with pytest.raises(al.StoreFullError, match="object store"):
            passes(np.zeros(4_000_000))

        @al.task(on_failure="cancel_dependents")
        def large():
            return np.zeros(4_000_000)

        with pytest.raises(MemoryError, match="object store"):
            al.wait(large())
        assert al.wait(passes(1)) == 1


@pytest.mark.parametrize("end", [StopIteration, StopAsyncIteration])
def test_an_error_that_ends_loops_does_not_end_the_loop_of_who_waits(session, end):
    @al.task(on_failure="cancel_dependents")
    def first(values):
        if not values:
            raise end
        return values[0]

    @al.task(returns=al.Stream, on_failure="cancel_dependents")
    def produce(count):
        yield from range(count)

    with pytest.raises(al.TaskError, match=end.__name__) as caught:
        list(map(al.Future.result, [first([1]), first([])]))
    assert isinstance(caught.value.cause, end)
    with pytest.raises(al.TaskError, match="first' failed"):
        list(produce(first([])))
    with pytest.raises(al.TaskError, match="first' failed"):
        list(produce(first([])).map(passes))


def test_an_error_that_is_its_own_cause(session, tmp_path):
    @al.io(on_failure="cancel_dependents")
    def save(path: al.FileOut):
        try:
            raise ValueError("the reason")
        except ValueError as error:
            raise error from error

    with pytest.raises(ValueError, match="the reason"):
        save(tmp_path / "file").result(60)


def test_what_goes_wrong_at_the_end_does_not_hide_what_did_before(tmp_path):
    nowhere = tmp_path / "missing" / "trace.json"
    with pytest.raises(ValueError, match="bad 1") as caught, al.Session(1, trace=nowhere):
        al.task(inner_helper)(1)
    assert ["while the session ended" in note for note in caught.value.__notes__] == [True]
    assert str(nowhere) in caught.value.__notes__[0]
    with pytest.raises(KeyboardInterrupt) as interrupted, al.Session(1, trace=nowhere):
        raise KeyboardInterrupt
    assert str(nowhere) in interrupted.value.__notes__[0]
    with pytest.raises(OSError, match="missing"), al.Session(1, trace=nowhere):
        pass
