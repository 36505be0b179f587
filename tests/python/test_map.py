"""`Stream.map`: who calls the task for each value, when, and with what."""

import asyncio
import os
import random
import signal

import pytest

import alongside as al


@al.task(returns=al.Stream, buffer=3)
def numbers(count):
    yield from range(count)


@al.task(returns=al.Stream)
def many(count):
    yield from range(count)


@al.task
def plus(value, other=0):
    return value + other


@al.task
def nothing():
    return None


@al.task
def tells(value, mailbox):
    mailbox.send(str(value))
    return value


@pytest.fixture
def narrow(tmp_path, monkeypatch):
    """A session with one processor, which runs tasks in the order of their calls."""
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=1) as session:
        yield session


def test_the_task_is_called_without_the_program_for_as_many_values_as_buffer_says(narrow, mailbox):
    results = numbers(10).map(tells, mailbox)
    assert [mailbox.receive() for _ in range(3)] == ["0", "1", "2"]
    nothing().result()
    assert mailbox.empty()
    assert [next(results).result() for _ in range(2)] == [0, 1]
    assert mailbox.receive() == "3", "the first one was given back when the second was asked for"
    nothing().result()
    assert mailbox.empty()
    assert [future.result() for future in results] == list(range(2, 10))
    assert [mailbox.receive() for _ in range(6)] == [str(number) for number in range(4, 10)]


@al.task
def of_size(value, size, log):
    with open(log, "a") as file:
        file.write("x")
    return bytes(size)


@pytest.mark.parametrize(("size", "ahead"), [(10, 64), (1 << 18, 63), (1 << 20, 16), (8 << 20, 16)])
def test_without_buffer_it_is_ahead_by_16_results_and_by_more_while_they_are_small(
    narrow, tmp_path, until, size, ahead
):
    log = tmp_path / "log"
    results = many(200).map(of_size, size, str(log))
    until(lambda: log.exists() and log.stat().st_size == 16)
    nothing().result()
    assert log.stat().st_size == 16, "nobody has looked at one"
    # The scheduler hears of eight at once.
    taken = [len(next(results).result()) for _ in range(9)]
    until(lambda: log.stat().st_size == 8 + ahead)
    nothing().result()
    assert log.stat().st_size == 8 + ahead
    assert [*taken, *(len(future.result()) for future in results)] == [size] * 200


def test_the_other_arguments_are_as_they_were_when_map_was_called(narrow):
    other = [10]
    results = numbers(5).map(plus_all, other)
    other.append(1000)
    assert [future.result() for future in results] == [10, 11, 12, 13, 14]


@al.task
def plus_all(value, other):
    return value + sum(other)


def test_other_arguments_may_be_futures_objects_and_paths(narrow, tmp_path):
    @al.task
    def appends(value, to: al.InOut, path: al.FileInOut):
        to.append(value)
        with open(path, "a") as file:
            file.write(f"{value}\n")
        return len(to)

    assert [future.result() for future in numbers(5).map(plus, plus(10))] == [10, 11, 12, 13, 14]
    path, box = tmp_path / "lines", ["first"]
    path.write_text("")
    assert [f.result() for f in numbers(4).map(appends, box, str(path))] == [2, 3, 4, 5]
    assert al.wait(box) == ["first", 0, 1, 2, 3]
    assert al.wait(path).read_text() == "0\n1\n2\n3\n"


def test_a_method_is_called_too(narrow):
    class Adds:
        def __init__(self, number):
            self.number = number

        @al.task
        def to(self, value):
            return self.number + value

    assert [future.result() for future in numbers(4).map(Adds(10).to)] == [10, 11, 12, 13]


def test_values_that_were_taken_before_are_not_mapped(narrow):
    stream = numbers(6)
    assert [next(stream).result() for _ in range(2)] == [0, 1]
    assert [future.result() for future in stream.map(plus, 10)] == [12, 13, 14, 15]


def test_a_stream_that_was_mapped_gives_its_values_to_nobody_else(narrow):
    stream = numbers(6)
    results = stream.map(plus, 10)
    for other in (lambda: next(stream), lambda: stream.next(1), lambda: stream.map(plus)):
        with pytest.raises(RuntimeError, match=r"'numbers' go to the task .* map\(\) gave"):
            other()
    assert [future.result() for future in results] == list(range(10, 16))


def test_what_is_refused_is_refused_with_its_reason(narrow):
    @al.task(cpus=2)
    def wide(value):
        return value

    with pytest.raises(TypeError, match=r"plus\(\): too many positional arguments"):
        numbers(1).map(plus, 1, 2)
    with pytest.raises(al.SerializationError, match=r"plus\(\): argument 'other' \(a generator\)"):
        numbers(1).map(plus, (number for number in range(2)))
    results = numbers(3).map(wide)
    for _ in range(2):
        with pytest.raises(al.ConstraintError, match=r"wide\(\): cpus=2, but this session has 1"):
            next(results)


def test_results_of_a_call_that_failed_are_given_with_the_others(narrow):
    @al.task(on_failure="cancel_dependents")
    def picky(value):
        if value == 2:
            raise KeyError(value)
        return value

    futures = list(numbers(5).map(picky))
    assert [f.result() for f in futures if f is not futures[2]] == [0, 1, 3, 4]
    with pytest.raises(KeyError):
        futures[2].result()


def test_what_was_called_when_the_program_stops_looking_runs(narrow, mailbox):
    results = numbers(1000).map(tells, mailbox)
    assert next(results).result() == 0
    del results
    assert [mailbox.receive() for _ in range(3)] == ["0", "1", "2"]


def test_cancelling_keeps_calls_from_running_that_the_program_has_not_seen(narrow, gate, mailbox):
    @al.task
    def passes(value, gate, mailbox):
        mailbox.send(str(value))
        gate.pass_through()

    results = numbers(1000).map(passes, gate, mailbox)
    assert mailbox.receive() == "0"
    results.cancel()
    gate.open()
    nothing().result()
    assert mailbox.empty()
    with pytest.raises(al.CancelledError):
        [future.result() for future in results]


def test_leaving_the_block_ends_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=1):
        results = numbers(1_000_000).map(plus)
        assert next(results).result() == 0
    with pytest.raises((al.SessionError, al.CancelledError)):
        list(results)


def test_a_producer_that_runs_again_has_each_value_called_once(narrow, tmp_path, mailbox):
    @al.task(returns=al.Stream, retries=1)
    def twice(mark):
        yield from range(4)
        if not os.path.exists(mark):
            open(mark, "w").close()
            raise OSError("once")
        yield 4

    results = twice(str(tmp_path / "mark")).map(tells, mailbox)
    assert [future.result() for future in results] == list(range(5))
    assert [mailbox.receive() for _ in range(5)] == list("01234")
    nothing().result()
    assert mailbox.empty()


def test_a_worker_that_is_killed_loses_no_result_and_doubles_none(session, tmp_path):
    @al.task(returns=al.Stream, retries=3)
    def again(count):
        yield from range(count)

    @al.task(retries=3)
    def kills(value, folder):
        mark = os.path.join(folder, f"mark-{value}")
        if value in (7, 150) and not os.path.exists(mark):
            open(mark, "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        return value

    results = [future.result() for future in again(300).map(kills, str(tmp_path))]
    assert results == list(range(300))
    assert {"mark-7", "mark-150"} <= set(os.listdir(tmp_path))


@al.task(on_failure="cancel_dependents")
def mapped(value, bad, pad):
    if value in bad:
        raise ValueError(value)
    return value, b"x" * pad


def outcome(future):
    try:
        return future.result()[0]
    except ValueError as error:
        return str(error).rpartition(" ")[2]


async def in_a_loop(results, most):
    found = []
    async for future in results:
        found.append(outcome(future))
        if len(found) == most:
            break
    return found


def in_turn(results, most):
    found = []
    for future in results:
        found.append(outcome(future))
        if len(found) == most:
            break
    return found


@pytest.mark.parametrize("seed", range(30))
def test_results_are_those_of_the_sequential_program(tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    chance = random.Random(seed)
    with al.Session(workers=chance.choice([1, 2])):
        for _ in range(6):
            count, most = chance.randrange(150), chance.choice([1000, chance.randrange(1, 50)])
            buffer, ordered = chance.choice([None, None, 1, 2, 7]), chance.random() < 0.6

            @al.task(returns=al.Stream, buffer=buffer)
            def values(count):
                yield from range(count)

            bad = chance.sample(range(150), chance.choice([0, 0, 3]))
            pad = plus(3) if chance.random() < 0.3 else chance.choice([3, 300_000])
            results = values(count).map(mapped, bad, pad, ordered=ordered)
            if chance.random() < 0.5:
                found = in_turn(results, most)
            else:
                found = asyncio.run(in_a_loop(results, most))
            expected = [str(number) if number in bad else number for number in range(count)]
            if ordered:
                assert found == expected[:most]
            else:
                assert len(found) == min(most, count)
                assert len(set(found)) == len(found)
                assert set(found) <= set(expected)
