"""`al.release` and generator tasks: outputs that are there before their task ends."""

import os
import signal
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alongside as al


@al.task
def passes(value):
    return value


@al.task(returns=3)
def in_steps(gate):
    al.release(0, "first")
    al.release(1, "second")
    gate.pass_through()
    return None, None, "third"


@al.task(returns=3)
def yields(gate):
    yield "first"
    yield "second"
    gate.pass_through()
    yield "third"


@pytest.mark.parametrize("function", [in_steps, yields])
def test_consumers_of_what_was_released_run_before_the_end(session, gate, function):
    first, second, third = function(gate)
    assert al.wait([passes(first), passes(second)], timeout=30) == ["first", "second"]
    assert not third.done()
    gate.open()
    assert al.wait(third, timeout=30) == "third"


@al.io(returns=2)
def an_io_task(gate):
    al.release(1, "early")
    gate.pass_through()
    return "late", None


@al.io(returns=2)
async def a_coroutine(gate):
    import asyncio

    al.release(1, "early")
    await asyncio.get_running_loop().run_in_executor(None, gate.pass_through)
    return "late", None


@al.io(returns=2)
def an_io_generator(gate):
    yield "late"
    gate.pass_through()
    yield "early"


@pytest.mark.parametrize("function", [an_io_task, a_coroutine])
def test_io_tasks_release_too(session, gate, function):
    late, early = function(gate)
    assert al.wait(early, timeout=30) == "early"
    assert not late.done()
    gate.open()
    assert al.wait(late, timeout=30) == "late"


def test_io_tasks_may_be_generators(session, gate):
    first, second = an_io_generator(gate)
    assert al.wait(first, timeout=30) == "late"
    assert not second.done()
    gate.open()
    assert al.wait(second, timeout=30) == "early"


@al.task
def one(gate):
    al.release(0, "early")
    gate.pass_through()


def test_the_only_value_can_be_released(session, gate):
    future = one(gate)
    assert al.wait(future, timeout=30) == "early"
    gate.open()


def test_a_released_array_is_a_copy_and_lies_in_shared_memory(session):
    @al.task(returns=2)
    def reuses():
        buffer = np.zeros(100_000)
        al.release(0, buffer)
        buffer += 1
        al.release(1, buffer)

    zeros, ones = reuses()
    assert al.wait(zeros).sum() == 0
    assert al.wait(ones).sum() == 100_000


@al.task(returns=2)
def ignored():
    al.release(0, "released")
    return lambda: None, "returned"  # the lambda would be sent, were it looked at


@pytest.mark.parametrize("returned", [None, ("x", "y")])
def test_nobody_looks_at_what_stands_in_place_of_a_released_value(session, returned):
    @al.task(returns=2)
    def all_released():
        al.release(1, "b")
        al.release(0, "a")
        return returned

    assert al.wait(list(all_released())) == ["a", "b"]
    assert al.wait(list(ignored())) == ["released", "returned"]


def test_threads_of_a_compute_task_release_for_it(session):
    @al.task(returns=2)
    def threaded():
        threads = [threading.Thread(target=al.release, args=[at, at * 10]) for at in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert al.wait(list(threaded())) == [0, 10]


def test_many_outputs_at_the_end_and_early(session):
    @al.task(returns=3_000)
    def many(early):
        for at in range(3_000 if early else 0):
            al.release(at, at)
        return None if early else range(3_000)

    assert al.wait_all(many(True)) == al.wait_all(many(False)) == list(range(3_000))


@al.task(returns=130)
def in_any_order(order):
    refused = 0
    for index in order:
        try:
            al.release(index, ("early", index))
        except al.ReleaseError:
            refused += 1
    assert refused == len(order) - len(set(order))
    return None if len(set(order)) == 130 else [("late", index) for index in range(130)]


def test_outputs_released_in_any_order_again_and_not_at_all(session):
    @settings(deadline=None, max_examples=60)
    @given(st.permutations(range(130)), st.integers(0, 130), st.lists(st.integers(0, 129)))
    def check(order, count, again):
        early = order[:count] + again
        values = al.wait_all(in_any_order(early))
        assert values == [("early" if at in early else "late", at) for at in range(130)]

    check()


# What the program did wrong.


@pytest.mark.parametrize(
    ("calls", "message"),
    [
        ([(2, "x")], r"bad\(\) has returns=2, so it can release 0 to 1, not 2"),
        ([(-1, "x")], r"bad\(\) has returns=2, so it can release 0 to 1, not -1"),
        ([("0", "x")], r"bad\(\): release\(\) takes the number of an output .* not a str"),
        ([(0, "x"), (0, "y")], r"bad\(\) released output 0 twice"),
    ],
)
@pytest.mark.parametrize("under_a_session", [True, False])
def test_wrong_releases(tmp_path, monkeypatch, calls, message, under_a_session):
    @al.task(returns=2, on_failure="cancel_dependents")
    def bad():
        for index, value in calls:
            al.release(index, value)
        return 1, 2

    with pytest.raises(al.ReleaseError, match=message):
        if not under_a_session:
            bad()
        monkeypatch.chdir(tmp_path)
        with al.Session(workers=1):
            al.wait(bad()[1])


def test_release_outside_of_a_task():
    with pytest.raises(al.ReleaseError, match="outside of a task"):
        al.release(0, 1)


def test_release_outside_of_a_task_in_a_worker_thread_that_outlives_it(session):
    @al.task
    def leaves_a_thread(gate, mailbox):
        def later():
            gate.pass_through()
            try:
                al.release(0, 1)
            except al.ReleaseError as error:
                mailbox.send(error)

        threading.Thread(target=later).start()

    from alongside.testing import Gate, Mailbox

    gate, mailbox = Gate("thread-gate"), Mailbox("thread-mailbox")
    al.wait(leaves_a_thread(gate, mailbox))
    gate.open()
    assert "outside of a task" in mailbox.receive()


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            lambda: None,
            r"returns=3, but it returned NoneType; return 3 values .*or release 1, 2 too",
        ),
        (lambda: (1, 2), r"returns=3, but it returned 2 values; .* the 1 that it released"),
    ],
)
def test_missing_values(session, body, message):
    @al.task(returns=3, on_failure="cancel_dependents")
    def short():
        al.release(0, "a")
        return body()

    first, second, _ = short()
    with pytest.raises(TypeError, match=message):
        al.wait(second)
    assert al.wait(first) == "a"


@al.task(returns=2)
def yields_values(count):
    yield from range(count)


@al.task(returns=2)
def yields_and_returns():
    yield 0
    yield 1
    return 2


@pytest.mark.parametrize("under_a_session", [True, False])
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: yields_values(1), r"yields_values\(\) has returns=2, but it yielded 1 values"),
        (lambda: yields_values(3), r"returns=2, but it yielded one value more"),
        (yields_and_returns, r"what it returns \(a int\) would be lost; yield it"),
    ],
)
def test_generators_that_yield_too_few_or_too_many(
    tmp_path, monkeypatch, call, message, under_a_session
):
    monkeypatch.chdir(tmp_path)
    if not under_a_session:
        with pytest.raises(TypeError, match=message):
            call()
        return
    with pytest.raises(TypeError, match=message), al.Session(workers=1):
        assert al.wait(call()[0]) == 0  # what was yielded is good, and the session raises


@al.task(returns=6)
def yields_all_kinds():
    yield 1
    yield lambda number: number + 1  # by value, which the plain pickler cannot
    changes = np.zeros(300_000)
    yield changes
    changes += 1
    yield changes, changes
    yield None
    yield b"x" * 3


def test_generators_yield_what_the_plain_pickler_can_take_and_what_not(session):
    one, function, zeros, (ones, again), nothing, data = al.wait(yields_all_kinds())
    assert (one, function(1), nothing, data) == (1, 2, None, b"xxx")
    assert not zeros.any() and ones.all() and again.all() and zeros.shape == (300_000,)


@al.task(returns=3)
def yields_a_lock():
    yield "good"
    yield threading.Lock()
    yield "never"


def test_a_yielded_value_that_cannot_be_sent_is_told_by_its_number():
    with pytest.raises(al.SerializationError, match="released output 1 "), al.Session(1):
        assert al.wait(yields_a_lock()[0]) == "good"


class InterruptsOnce:
    sent = False

    def __reduce__(self):
        if not self.sent:
            self.sent = True
            raise KeyboardInterrupt("while it is sent")
        return (str, ())


@al.task(returns=2)
def yields_an_interrupt():
    yield "good"
    yield InterruptsOnce()


def test_an_interrupt_while_a_yielded_value_is_sent_ends_the_task():
    with pytest.raises(al.TaskError, match="KeyboardInterrupt: while it is sent"), al.Session(1):
        assert al.wait(yields_an_interrupt()[0]) == "good"


@al.task(returns=2)
def yields_what_it_released():
    al.release(1, "first")
    yield "good"
    yield "second"


def test_an_output_that_was_released_is_not_yielded_again():
    with pytest.raises(al.ReleaseError, match="released output 1 twice"), al.Session(1):
        assert al.wait(list(yields_what_it_released())) == ["good", "first"]


def test_what_a_generator_task_cannot_be():
    with pytest.raises(TypeError, match="say how many values it yields"):

        @al.task
        def without_a_number():
            yield 1


# Failures.


@al.task(returns=2, on_failure="cancel_dependents")
def fails_after(gate):
    al.release(0, "good")
    gate.pass_through()
    raise ValueError("too late")


def test_what_a_failed_task_released_stays_good(session, gate):
    good, bad = fails_after(gate)
    doomed = passes(passes(bad))
    assert al.wait(passes(good), timeout=30) == "good"
    gate.open()
    with pytest.raises(ValueError, match="too late") as caught:
        al.wait(doomed)
    assert caught.value.chain == ("fails_after", "passes", "passes")
    assert al.wait(passes(good)) == "good"


@al.task(returns=2, on_failure="ignore")
def is_ignored():
    al.release(0, "good")
    raise ValueError


def test_an_ignored_failure_keeps_what_was_released(session):
    assert al.wait(list(is_ignored())) == ["good", None]


@al.task(returns=2, on_failure="cancel_dependents")
def tells_its_pid(mailbox, gate):
    al.release(0, "good")
    mailbox.send(os.getpid())
    gate.pass_through()
    return None, "end"


def test_what_a_killed_worker_released_stays_good(session, mailbox, gate):
    good, bad = tells_its_pid(mailbox, gate)
    os.kill(int(mailbox.receive()), signal.SIGKILL)
    with pytest.raises(al.WorkerLostError) as caught:
        al.wait(passes(bad), timeout=30)
    assert caught.value.chain == ("tells_its_pid", "passes")
    assert al.wait(passes(good), timeout=30) == "good"


@al.task(returns=3, retries=1)
def differs_each_time(attempts, mailbox, gate):
    with open(attempts, "a") as file:
        file.write("x")
    with open(attempts) as file:
        number = len(file.read())
    al.release(0, f"attempt {number}")
    mailbox.send(os.getpid())
    if number == 1:
        gate.pass_through()
    al.release(1, f"attempt {number}")
    return None, None, f"attempt {number}"


@pytest.mark.parametrize("kill", [True, False])
def test_a_retry_does_not_replace_what_was_released(session, mailbox, gate, tmp_path, kill):
    outputs = differs_each_time(str(tmp_path / "attempts"), mailbox, gate)
    seen = passes(outputs[0])
    assert al.wait(seen, timeout=30) == "attempt 1"
    pid = int(mailbox.receive())
    if kill:
        os.kill(pid, signal.SIGKILL)
        mailbox.receive()
    gate.open()
    again = ["attempt 1", "attempt 2" if kill else "attempt 1"]
    assert al.wait([passes(output) for output in outputs[:2]]) == again
    assert al.wait(outputs[2]) == again[1]


@al.task(returns=2, timeout=1.0, on_failure="cancel_dependents")
def too_slow(gate):
    al.release(0, "good")
    gate.pass_through()


def test_what_was_released_before_a_timeout_stays_good(gate):
    with al.Session(workers=1):
        assert al.wait(passes(1)) == 1  # the worker has loaded this file: that may take long
        good, late = too_slow(gate)
        with pytest.raises(al.TaskTimeoutError):
            al.wait(late, timeout=60)
        assert al.wait(good) == "good"


def test_a_value_that_cannot_be_sent(session):
    @al.task(returns=2, on_failure="cancel_dependents")
    def sends_a_lock():
        al.release(1, threading.Lock())

    with pytest.raises(al.SerializationError, match=r"sends_a_lock\(\): released output 1"):
        al.wait(sends_a_lock()[1])


def test_memory_asked_for_ahead_is_not_in_the_way_of_a_longer_value():
    mib = 1 << 20

    @al.task(returns=4)
    def growing():
        for size in (16, 16, 20, 1):
            yield np.full(size * mib, size, np.uint8)

    with al.Session(workers=1, memory=64 * mib):
        values = growing()  # 53 MiB; with the 16 that were asked for there is no room for the 20
        assert [len(value.result()) // mib for value in values] == [16, 16, 20, 1]


def test_a_task_that_releases_its_value_has_still_changed_a_shared_array(session):
    @al.task
    def counting(counts: al.Concurrent, at):
        counts[at] += 1
        al.release(0, at)

    counts = np.zeros(50_000, np.int64)
    assert al.wait([counting(counts, at) for at in range(20)]) == list(range(20))
    assert al.wait(counts).sum() == 20


def test_memory_of_what_was_released_and_used_is_given_back_before_the_end(gate, tmp_path):
    @al.task(returns=40)
    def large(gate):
        for at in range(39):
            al.release(at, np.zeros(1_000_000, np.uint8))
        gate.pass_through()
        al.release(39, None)

    @al.task
    def length(array):
        return len(array)

    with al.Session(workers=2, memory="200MB") as session:
        outputs = large(gate)
        last = outputs[-1]
        lengths = [length(array) for array in outputs[:-1]]
        del outputs
        assert al.wait(lengths, timeout=30) == [1_000_000] * 39
        # The last readers may still be telling that they let go.
        assert session.statistics().store_bytes < 5_000_000
        assert not last.done()
        gate.open()


def test_the_sequential_program_gives_the_same(tmp_path):
    from alongside.testing import Gate

    gate = Gate(tmp_path / "open", closed=False)
    (tmp_path / "open").touch()
    assert in_steps(gate) == yields(gate) == ("first", "second", "third")
    assert one(gate) == "early"
    assert an_io_generator(gate) == a_coroutine(gate) == ("late", "early")
