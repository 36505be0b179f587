"""`returns=al.Stream`: values that come one by one, in a number that nobody knew."""

import asyncio
import contextlib
import os
import pickle
import random
import signal

import numpy as np
import pytest

import alongside as al


@al.task(returns=al.Stream, buffer=3)
def numbers(count):
    yield from range(count)


@al.task
def double(value, plus=0):
    return 2 * value + plus


@al.task
def nothing():
    return None


@pytest.fixture
def narrow(tmp_path, monkeypatch):
    """A session with one processor: a producer that waits must not hold it."""
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=1, io_executors=2) as session:
        yield session


@pytest.mark.parametrize("workers", [1, 2])
def test_values_come_in_order_and_their_number_is_known_at_the_end(tmp_path, monkeypatch, workers):
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=workers):
        assert [future.result() for future in numbers(50)] == list(range(50))
        assert al.wait([double(future) for future in numbers(50)]) == list(range(0, 100, 2))
        assert list(numbers(0)) == []


def test_an_ended_stream_stays_ended(session):
    stream = numbers(1)
    assert next(stream).result() == 0
    for _ in range(2):
        with pytest.raises(StopIteration):
            next(stream)


def test_the_futures_may_all_be_kept(session):
    futures = list(numbers(100))
    assert al.wait_all(futures) == list(range(100))
    assert al.wait_all(map(double, futures)) == list(range(0, 200, 2))


def test_two_streams_of_one_worker_take_turns(narrow):
    pairs = zip(numbers(20), numbers(20), strict=True)
    assert [al.wait([one, two]) for one, two in pairs] == [[at, at] for at in range(20)]


@pytest.mark.parametrize("kind", [al.task, al.io])
def test_more_streams_wait_than_a_worker_takes_other_tasks(narrow, kind):
    @kind(returns=al.Stream, buffer=1)
    def two(first):
        yield first
        yield first + 1

    # Each makes its first value, and waits.
    streams = [two(first) for first in range(4200)]
    for number in range(2):
        futures = [next(stream) for stream in reversed(streams)]
        assert al.wait_all(map(double, futures)) == [
            2 * (first + number) for first in reversed(range(4200))
        ]
    assert all(next(stream, None) is None for stream in streams)


# How far a producer goes ahead.


@al.task(returns=al.Stream, buffer=3)
def counted(file, count):
    for number in range(count):
        with open(file, "a") as log:
            log.write("x")
        yield number


def made(file):
    return os.path.getsize(file)


def let_it_stall(session):
    """On one processor another task only runs when the producer has stalled."""
    al.wait(nothing(), timeout=30)


def test_a_producer_waits_when_nobody_takes_its_values(narrow, tmp_path):
    log = str(tmp_path / "log")
    stream = counted(log, 100)
    let_it_stall(narrow)
    assert made(log) == 3
    first = next(stream)
    let_it_stall(narrow)
    assert made(log) == 3, "the first value may still be given to a task"
    second = next(stream)
    let_it_stall(narrow)
    assert made(log) == 4
    del second
    let_it_stall(narrow)
    assert made(log) == 5, "nobody can use the second one any more"
    assert first.result() == 0
    assert al.wait_all(stream) == list(range(2, 100))


def test_a_producer_that_waits_for_its_consumers_is_not_active(narrow, tmp_path):
    log = str(tmp_path / "log")
    stream = counted(log, 10)
    let_it_stall(narrow)
    assert made(log) == 3
    active = [narrow.statistics().compute_active_ns for _ in range(3)]
    assert active[0] == active[-1] > 0
    assert al.wait_all(stream) == list(range(10))
    assert narrow.statistics().compute_active_ns > active[0]
    let_it_stall(narrow)
    active = [narrow.statistics().compute_active_ns for _ in range(3)]
    assert active[0] == active[-1]


@al.task(returns=al.Stream, on_failure="ignore", retries=1)
def of_sizes(file, sizes, fails_at=None):
    with open(file, "a") as log:
        started = log.tell() > 0
        for number, size in enumerate(sizes):
            if number == fails_at and not started:
                raise OSError("once")
            log.write("x")
            log.flush()
            yield bytes(size)


@pytest.mark.parametrize(
    ("sizes", "ahead"),
    [
        ([10] * 2000, 1024),
        ([2 << 20] * 50, 16),
        ([1 << 19] * 50, 32),
        # Room for many small ones is no room for as many large ones.
        ([10] * 200 + [2 << 20] * 50, 200 + 13),
    ],
)
def test_without_a_buffer_a_producer_is_ahead_by_more_while_values_are_small(
    narrow, tmp_path, sizes, ahead
):
    log = str(tmp_path / "log")
    stream = of_sizes(log, sizes)
    let_it_stall(narrow)
    assert made(log) == ahead
    assert [len(future.result()) for future in stream] == sizes


def test_what_a_failed_run_handed_over_counts_for_the_next_one(narrow, tmp_path):
    log, sizes = str(tmp_path / "log"), [2 << 20] * 40
    stream = of_sizes(log, sizes, 10)
    let_it_stall(narrow)
    assert made(log) == 10 + 16, "ten that are handed over, then all over again"
    assert [len(future.result()) for future in stream] == sizes


@al.io
def waits(value, gate):
    gate.pass_through()
    return value


def test_a_value_counts_until_the_last_task_has_read_it(narrow, tmp_path, gate):
    log = str(tmp_path / "log")
    stream = counted(log, 100)
    results = [waits(next(stream), gate), waits(next(stream), gate)]
    for _ in range(2):
        stream_value = next(stream)
    let_it_stall(narrow)
    # Two are read by tasks, the third is used up, the fourth is in the program's hands.
    assert (made(log), stream_value.result()) == (4, 3)
    gate.open()
    assert al.wait(results, timeout=30) == [0, 1]
    assert [future.result() for future in stream] == list(range(4, 100))


def test_values_behind_one_that_is_still_read_are_used_up(narrow, gate):
    stream = numbers(50)
    first = waits(next(stream), gate)
    later = [al.wait(double(next(stream)), timeout=30) for _ in range(49)]
    assert (first.done(), later) == (False, list(range(2, 100, 2)))
    gate.open()
    assert first.result() == 0


@al.task
def sum_of(*values):
    return sum(values)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("buffer", [1, 2, 16])
def test_tasks_that_read_as_many_values_as_there_may_be(tmp_path, monkeypatch, workers, buffer):
    @al.task(returns=al.Stream, buffer=buffer)
    def produce(count):
        yield from range(count)

    monkeypatch.chdir(tmp_path)
    with al.Session(workers=workers):
        stream, results = produce(60), []
        window = [next(stream) for _ in range(buffer)]
        for value in stream:
            results.append(sum_of(*window))
            window = [*window[1:], value]
        sums = [sum(range(at, at + buffer)) for at in range(60 - buffer)]
        assert al.wait(results, timeout=30) == sums


@al.task(returns=al.Stream, buffer=4)
def arrays(count):
    for number in range(count):
        yield np.full(1_000_000, number % 100, np.uint8)


@al.task
def total(array):
    return int(array.sum())


def test_memory_of_values_that_are_used_up_is_given_back_at_once(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=2, memory="32MB") as session:
        sums = [total(array) for array in arrays(200)]
        assert al.wait_all(sums) == [number % 100 * 1_000_000 for number in range(200)]
        peak = session.statistics().store_bytes_peak
        assert peak < 16_000_000, "four values, and what workers have not let go of yet"


# Failures.


@al.task(returns=al.Stream, buffer=3, on_failure="cancel_dependents")
def breaks(count):
    yield from range(count)
    raise ValueError("no more")


def test_what_was_handed_over_before_a_failure_is_good(session):
    stream = breaks(5)
    results = [double(next(stream)) for _ in range(5)]
    with pytest.raises(ValueError, match="task 'breaks' failed: ValueError: no more"):
        next(stream)
    assert al.wait(results) == [0, 2, 4, 6, 8]
    with pytest.raises(StopIteration):
        next(stream)


def test_a_failure_that_nobody_looked_at_is_raised_at_the_end(tmp_path, monkeypatch):
    @al.task(returns=al.Stream)
    def breaks_at_once():
        yield 1
        raise ValueError("no more")

    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="no more"), al.Session(workers=1):
        stream = breaks_at_once()
        next(stream)
        nothing().result()
        stream.awaited().wait(30)


@al.task(returns=al.Stream, buffer=3, retries=1, on_failure="cancel_dependents")
def runs_twice(runs, mailbox, fewer):
    with open(runs, "a") as file:
        file.write("x")
    first = os.path.getsize(runs) == 1
    for number in range(6):
        if first and number == 2:
            mailbox.send(os.getpid())
        if fewer and not first:
            return
        yield f"{number} of run {1 if first else 2}"


def kill_after_three(stream, mailbox):
    """The producer has handed over three values, and waits or is about to."""
    taken = [stream.next(30) for _ in range(1)]
    os.kill(int(mailbox.receive()), signal.SIGKILL)
    return taken


def test_a_retry_goes_on_after_the_values_that_were_handed_over(narrow, tmp_path, mailbox):
    stream = runs_twice(str(tmp_path / "runs"), mailbox, False)
    values = [future.result() for future in [*kill_after_three(stream, mailbox), *stream]]
    assert [value.split()[0] for value in values] == ["0", "1", "2", "3", "4", "5"]
    runs = [value.split()[-1] for value in values]
    assert runs == sorted(runs)
    assert (runs[0], runs[-1]) == ("1", "2")


def test_a_retry_that_yields_fewer_values_is_an_error(narrow, tmp_path, mailbox):
    stream = runs_twice(str(tmp_path / "runs"), mailbox, True)
    next(stream)
    os.kill(int(mailbox.receive()), signal.SIGKILL)
    with pytest.raises(RuntimeError, match="has to yield the same values each time"):
        list(stream)


@al.task(returns=al.Stream, buffer=2, on_failure="cancel_dependents")
def tells_its_pid(mailbox):
    mailbox.send(os.getpid())
    yield from range(10)


def test_a_producer_that_is_killed_while_it_waits(narrow, mailbox):
    stream = tells_its_pid(mailbox)
    pid = int(mailbox.receive())
    let_it_stall(narrow)
    result = double(next(stream))
    al.wait(result)
    os.kill(pid, signal.SIGKILL)
    seen = []
    with pytest.raises(al.WorkerLostError) as caught:
        seen.extend(future.result() for future in iter(lambda: stream.next(30), None))
    assert caught.value.signal == signal.SIGKILL
    assert seen in ([1], [1, 2]), "what was handed over before"
    assert result.result() == 0


def test_a_value_that_cannot_be_sent(session):
    @al.task(returns=al.Stream, on_failure="cancel_dependents")
    def sends_a_generator():
        yield 1
        yield (_ for _ in ())

    stream = sends_a_generator()
    assert next(stream).result() == 1
    with pytest.raises(al.SerializationError, match=r"value 1 of its stream \(a generator\)"):
        next(stream)


@al.task(returns=al.Stream, buffer=1, timeout=1.0, on_failure="cancel_dependents")
def too_slow(gate):
    yield 1
    gate.pass_through()
    yield 2


def test_a_timeout_is_for_the_whole_run(narrow, gate):
    nothing().result()  # the worker has loaded this file: that is not what takes long
    stream = too_slow(gate)
    assert next(stream).result() == 1
    with pytest.raises(al.TaskTimeoutError):
        stream.next(60)


def test_a_wait_can_have_an_end(session, gate):
    @al.task(returns=al.Stream)
    def is_late(gate):
        gate.pass_through()
        yield 1

    stream = is_late(gate)
    with pytest.raises(al.TimeoutError, match=r"gave nothing for 0\.01 s"):
        stream.next(0.01)
    gate.open()
    assert stream.next(30).result() == 1


# Ends that the program wants.


@al.task(returns=al.Stream, buffer=2)
def says_goodbye(mailbox):
    try:
        yield from range(1_000_000)
    finally:
        mailbox.send("closed")


def test_a_cancelled_stream_ends_its_producer(session, mailbox):
    stream = says_goodbye(mailbox)
    next(stream)
    stream.cancel()
    assert mailbox.receive() == "closed"
    for _ in range(2):
        with pytest.raises(al.CancelledError, match="'says_goodbye' was cancelled"):
            next(stream)
    assert stream.cancelled()


def test_a_stream_that_was_cancelled_says_so_after_its_session_too():
    with al.Session(1):
        stream = numbers(50)
        first = next(stream)
        al.wait([double(first)])
        stream.cancel()
    with pytest.raises(al.CancelledError, match="'numbers' was cancelled"):
        next(stream)


def test_a_dropped_stream_ends_its_producer(session, mailbox):
    for future in says_goodbye(mailbox):
        if future.result() == 5:
            break
    assert mailbox.receive() == "closed"


def test_a_consumer_that_fails_ends_the_producer(session, mailbox):
    @al.task(on_failure="cancel_dependents")
    def picky(value):
        if value == 3:
            raise KeyError(value)

    def consume():
        for result in says_goodbye(mailbox).map(picky):
            result.result()

    with pytest.raises(KeyError):
        consume()
    assert mailbox.receive() == "closed"


def test_leaving_the_block_ends_producers_whose_values_nobody_takes(tmp_path, mailbox):
    with al.Session(workers=1):
        stream = says_goodbye(mailbox)
        next(stream)
    assert mailbox.receive() == "closed"
    with pytest.raises((al.SessionError, al.CancelledError)):
        while True:
            next(stream)


def test_a_producer_that_has_not_begun_does_not_run(narrow, gate, mailbox):
    @al.task
    def holds_the_processor(gate, mailbox):
        mailbox.send("begun")
        gate.pass_through()

    @al.task(returns=al.Stream)
    def never(mailbox):
        mailbox.send("never")
        yield 1

    first = holds_the_processor(gate, mailbox)
    assert mailbox.receive() == "begun"
    stream = never(mailbox)
    stream.cancel()
    with pytest.raises(al.CancelledError):
        next(stream)
    gate.open()
    al.wait([first, nothing()], timeout=30)
    assert mailbox.empty()


# Tasks over streams.


@pytest.mark.parametrize("ordered", [True, False])
def test_map_calls_a_task_for_each_value(narrow, ordered):
    results = numbers(20).map(double, plus=1, ordered=ordered)
    values = [future.result() for future in results]
    assert (values if ordered else sorted(values)) == list(range(1, 41, 2))


@al.io
def first_last(value, gates):
    gates[value].pass_through()
    return value


def test_results_as_completed(session, tmp_path):
    from alongside.testing import Gate

    gates = [Gate(tmp_path / f"gate-{number}") for number in range(3)]
    results = numbers(3).map(first_last, gates, ordered=False)
    gates[2].open()
    assert next(results).result() == 2
    gates[0].open()
    assert next(results).result() == 0
    gates[1].open()
    assert [future.result() for future in results] == [1]


def test_the_failure_of_a_producer_comes_after_the_results(session):
    results = breaks(4).map(double)
    assert [next(results).result() for _ in range(4)] == [0, 2, 4, 6]
    with pytest.raises(ValueError, match="no more"):
        next(results)


def test_cancelled_results_cancel_the_stream(session, mailbox):
    results = says_goodbye(mailbox).map(double)
    assert next(results).result() == 0
    results.cancel()
    assert mailbox.receive() == "closed"


def test_streams_in_an_event_loop(session):
    async def program():
        values = [await future async for future in numbers(20)]
        results = [await future async for future in numbers(20).map(double)]
        mixed = [await future async for future in numbers(20).map(double, ordered=False)]
        return values, results, sorted(mixed)

    doubled = list(range(0, 40, 2))
    assert asyncio.run(program()) == (list(range(20)), doubled, doubled)


def test_a_failing_stream_in_an_event_loop(session):
    async def program():
        return [await future async for future in breaks(2)]

    with pytest.raises(ValueError, match="no more"):
        asyncio.run(program())


# I/O tasks.


@al.io(returns=al.Stream, buffer=2, bandwidth="10MB/s")
def lines(path: al.FileIn):
    with open(path) as file:
        yield from file


@al.io(bandwidth="10MB/s")
def write_line(path: al.FileOut, line):
    with open(path, "w") as file:
        file.write(line)


def test_io_streams_give_their_slot_and_their_bandwidth_to_their_consumers(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "storage.toml").write_text(
        f'[[layer]]\nname = "disk"\npath = "{tmp_path}"\nbandwidth = "10MB/s"\n'
    )
    (tmp_path / "text").write_text("".join(f"{number}\n" for number in range(20)))
    with al.Session(workers=1, io_executors=1, storage=tmp_path / "storage.toml") as session:
        for number, line in enumerate(lines("text")):
            write_line(f"line-{number}", line)
        statistics = session.statistics()
    assert [(tmp_path / f"line-{number}").read_text() for number in range(20)] == [
        f"{number}\n" for number in range(20)
    ]
    assert statistics.failed == 0


@al.io(returns=al.Stream, buffer=2)
def writes_while_it_yields(path: al.FileOut):
    with open(path, "w") as file:
        for number in range(5):
            file.write(str(number))
            yield number


def test_files_of_a_producer_are_there_at_its_end(session, tmp_path):
    assert al.wait_all(writes_while_it_yields("numbers")) == [0, 1, 2, 3, 4]
    with al.open("numbers") as file:
        assert file.read() == "01234"


def test_a_file_of_a_producer_that_was_ended_early_is_not_there(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def program():
        with al.Session(workers=1):
            stream = writes_while_it_yields("numbers")
            next(stream)
            stream.cancel()
            with al.open("numbers"):
                pass

    with pytest.raises(al.CancelledError, match="what it writes is not whole"):
        program()


# What the program did wrong.


def test_a_stream_cannot_be_sent(session):
    stream = numbers(3)
    with pytest.raises(al.SerializationError, match=r"argument 'value' .*a stream stays"):
        double(stream)
    with pytest.raises(TypeError, match="a stream stays in the program"):
        pickle.dumps(stream)


def test_options_of_streams():
    with pytest.raises(TypeError, match="returns=Stream, so it has to be a generator"):
        al.task(returns=al.Stream)(double.function)
    with pytest.raises(al.ConstraintError, match="buffer=3 is for streams"):
        al.task(buffer=3)(double.function)
    with pytest.raises(al.ConstraintError, match=r"buffer=0 has to be from 1 to 1000"):
        al.task(returns=al.Stream, buffer=0)(numbers.function)


@al.task(returns=al.Stream, on_failure="cancel_dependents")
def releases():
    al.release(0, "x")
    yield 1


def test_a_stream_yields_and_does_not_release(session):
    with pytest.raises(al.ReleaseError, match=r"releases\(\) is a stream"):
        next(releases())


def test_a_stream_that_returns_something(session):
    @al.task(returns=al.Stream, on_failure="cancel_dependents")
    def returns_too():
        yield 1
        return 2

    stream = returns_too()
    next(stream)
    with pytest.raises(TypeError, match="would be lost; yield it"):
        next(stream)


# The sequential program.


def test_without_a_session_a_stream_gives_values():
    assert list(numbers(5)) == [0, 1, 2, 3, 4]
    assert al.wait([double(value) for value in numbers(3)]) == [0, 2, 4]
    assert list(numbers(3).map(double, plus=1)) == [1, 3, 5]
    with pytest.raises(ValueError, match="no more"):
        list(breaks(2))
    with pytest.raises(al.ReleaseError, match=r"releases\(\) is a stream"):
        next(releases())
    stream = numbers(3)
    next(stream)
    stream.cancel()
    with pytest.raises(al.CancelledError):
        next(stream)


def test_without_a_session_in_an_event_loop():
    async def program():
        return [v async for v in numbers(3)], [v async for v in numbers(3).map(double)]

    assert asyncio.run(program()) == ([0, 1, 2], [0, 2, 4])


# Everything at once.


@al.task(returns=al.Stream, buffer=3, retries=1000)
def again(count):
    yield from range(count)


@al.io(returns=al.Stream, buffer=3, retries=1000)
def again_io(count):
    yield from range(count)


@al.task(retries=1000)
def double_again(pair):
    return [2 * value for value in pair]


def test_workers_that_are_killed_at_any_time_change_no_result(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(20)

    def kill_sometimes(session):
        if chance.random() < 0.04:
            with contextlib.suppress(ProcessLookupError, IndexError):
                os.kill(chance.choice(session.native.worker_pids()), signal.SIGKILL)

    with al.Session(workers=2, io_executors=3) as session:
        for _ in range(40):
            results = []
            for pair in zip(again(40), again_io(40), strict=True):
                results.append(double_again(list(pair)))
                kill_sometimes(session)
            assert al.wait_all(results, timeout=60) == [[2 * at] * 2 for at in range(40)]
            del results, pair
            dropped = again_io(1000)
            next(dropped)
        assert session.statistics().workers_lost > 5
