"""The session as a `concurrent.futures.Executor`, and futures as those of the standard library."""

import asyncio
import concurrent.futures
import functools
import re
import threading

import pytest

import alongside as al


def square(x):
    return x * x


@pytest.fixture
def executor():
    with al.Session(workers=2) as executor:
        yield executor


def test_submit(executor):
    assert executor.submit(square, 3).result() == 9
    assert executor.submit(pow, 2, 3).result() == 8
    assert executor.submit(lambda x, *, y: x + y, 1, y=2).result() == 3
    assert executor.submit(al.task(square), executor.submit(square, 2)).result() == 16


def test_many_functions_do_not_pile_up(executor):
    futures = [executor.submit(lambda n=n: n) for n in range(600)]
    assert al.wait_all(futures) == list(range(600))
    assert len(executor._numbers) <= 257  # noqa: SLF001


def test_a_session_that_nobody_keeps():
    assert al.Session(workers=1).submit(square, 3).result() == 9


def test_map(executor):
    assert list(executor.map(square, range(10))) == [n * n for n in range(10)]
    assert list(executor.map(pow, [2, 3], [3, 2, 5])) == [8, 9]
    assert list(executor.map(square, range(10), chunksize=3)) == [n * n for n in range(10)]
    with pytest.raises(ValueError, match="chunksize"):
        executor.map(square, [1], chunksize=0)


def test_map_raises_in_order(executor):
    results = executor.map(lambda x: 1 / x, [1, 0, 2])
    assert next(results) == 1
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_the_standard_wait(executor, gate):
    @al.task
    def block(gate):
        gate.pass_through()

    blocked = block(gate)
    quick = executor.submit(square, 2)
    done, left = concurrent.futures.wait([blocked, quick], return_when="FIRST_COMPLETED")
    assert (done, left) == ({quick}, {blocked})
    done, left = concurrent.futures.wait([blocked], timeout=0.01)
    assert (done, left) == (set(), {blocked})
    gate.open()
    done, left = concurrent.futures.wait([blocked, quick], timeout=60)
    assert (done, left) == ({blocked, quick}, set())


def test_the_standard_as_completed(executor):
    futures = {executor.submit(square, n) for n in range(20)}
    seen = list(concurrent.futures.as_completed(futures, timeout=60))
    assert set(seen) == futures
    assert all(isinstance(one, concurrent.futures.Future) for one in seen)


def test_our_as_completed(executor, gate):
    @al.task
    def block(gate):
        gate.pass_through()
        return "late"

    late = block(gate)
    order = al.as_completed([late, executor.submit(square, 2)])
    assert next(order).result() == 4
    gate.open()
    assert next(order).result() == "late"
    with pytest.raises(StopIteration):
        next(order)


def test_callbacks(executor, gate):
    @al.task
    def block(gate):
        gate.pass_through()
        return 5

    came = threading.Event()
    seen = []

    def callback(future):
        seen.append(future.result())
        came.set()

    future = block(gate)
    future.add_done_callback(lambda _: 1 / 0)  # logged, and no more
    future.add_done_callback(callback)
    gate.open()
    assert came.wait(60)
    future.add_done_callback(callback)
    assert seen == [5, 5]


def test_only_the_runtime_fills_futures(executor):
    future = executor.submit(square, 1)
    for refused in (
        lambda: future.set_result(1),
        lambda: future.set_exception(ValueError()),
        future.set_running_or_notify_cancel,
    ):
        with pytest.raises(al.SessionError, match="only the runtime"):
            refused()
    assert future.result() == 1


def test_await(executor):
    async def main():
        one, two = executor.submit(square, 2), executor.submit(square, 3)
        assert await one + await two == 13
        assert await one == 4
        assert sum(await asyncio.gather(*map(wrapped, [one, two]))) == 13
        assert await asyncio.wrap_future(executor.submit(square, 4)) == 16
        with pytest.raises(ZeroDivisionError):
            await executor.submit(lambda: 1 / 0)
        loop = asyncio.get_running_loop()
        assert await loop.run_in_executor(executor, square, 5) == 25

    async def wrapped(future):
        return await future

    asyncio.run(main())


def test_await_lets_others_run(executor, gate):
    @al.task
    def block(gate):
        gate.pass_through()
        return 1

    async def main():
        async def opener():
            gate.open()

        future = block(gate)
        task = asyncio.create_task(opener())
        assert await future == 1
        await task

    asyncio.run(main())


def test_shutdown_without_waiting(mailbox):
    executor = al.Session(workers=1)
    future = executor.submit(square, 3)
    executor.shutdown(wait=False)
    assert future.result() == 9
    executor.shutdown()


def test_shutdown_cancels(gate, mailbox):
    @al.task
    def block(gate, mailbox):
        mailbox.send("in")
        gate.pass_through()

    executor = al.Session(workers=1)
    running = executor.submit(block, gate, mailbox)
    mailbox.receive()
    waiting = [executor.submit(square, n) for n in range(5)]
    opener = threading.Thread(target=gate.open)
    opener.start()
    executor.shutdown(cancel_futures=True)
    opener.join()
    assert running.result() is None
    assert all(future.done() for future in waiting)


def test_nested_sessions():
    with al.Session(workers=1) as outer:
        double = al.task(lambda x: 2 * x)
        assert double(1).session == outer.number
        with al.Session(workers=1) as inner:
            assert double(1).session == inner.number
        assert al.wait(double(2)) == 4


def test_bad_arguments_of_a_session():
    for arguments, part in (
        ({"workers": 0}, "workers=0"),
        ({"workers": "2"}, "workers='2'"),
        ({"io_executors": -1}, "io_executors=-1"),
        ({"io_policy": "luck"}, "io_policy='luck'"),
        ({"memory": "much"}, "memory='much'"),
    ):
        with pytest.raises(al.ConstraintError, match=part):
            al.Session(**arguments)


def test_statistics(executor):
    al.wait_all([executor.submit(square, n) for n in range(5)])
    executor.submit(lambda: 1 / 0).exception()
    now = executor.statistics()
    assert (now.submitted, now.done, now.failed, now.cancelled) == (6, 5, 1, 0)
    assert now.elapsed_ns > 0
    assert {one.name for one in now.functions} >= {"square"}
    head, *_ = str(now).splitlines()
    assert head.startswith("alongside: 6 tasks in ")
    assert head.endswith("(1 failed)")
    assert re.search(r"^  square +compute +5 +0 ", str(now), re.MULTILINE)


class Counter:  # noqa: PLW1641 - what has no hash is part of the test
    """Changes at each call; equal by value, so it has no hash."""

    def __init__(self, start):
        self.value = start

    def __eq__(self, other):
        return self.value == other.value

    def add(self, x):
        self.value += 1
        return self.value + x

    def __call__(self, x):
        return self.add(x)


def test_what_a_callable_holds_is_sent_at_each_call():
    counter, letters = Counter(1), ["b", "a"]
    with al.Session(workers=1) as executor:
        for callable_ in (counter.add, counter, functools.partial(counter.add)):
            counter.value = 1
            # The worker changes what it was sent, as a process of a pool does.
            assert [executor.submit(callable_, 0).result() for _ in range(3)] == [2, 2, 2]
            counter.value = 100
            assert executor.submit(callable_, 1).result() == 102
            assert list(executor.map(callable_, [0, 0])) == [101, 101]
        assert executor.submit(letters.index, "a").result() == 1
        letters.insert(0, "a")
        assert executor.submit(letters.index, "a").result() == 0
        assert executor.submit(dict.fromkeys, "ab").result() == {"a": None, "b": None}
        assert executor.submit(functools.partial(pow, 2, mod=5), 3).result() == 3
        assert executor.submit(int, "7").result() == 7


def test_after_shutdown_nothing_is_taken_while_tasks_go_on(gate):
    executor = al.Session(workers=1)
    blocked = executor.submit(gate.pass_through)
    executor.shutdown(wait=False)
    with pytest.raises(al.SessionError, match=r"shutdown\(\) was called"):
        executor.submit(square, 2)
    gate.open()
    assert blocked.result() is None
    executor.shutdown()


def test_a_stream_that_the_shutdown_ends_is_not_taken_for_complete():
    @al.task(returns=al.Stream, buffer=2)
    def numbers():
        yield from range(1000)

    executor = al.Session(workers=1)
    stream = executor.submit(numbers)
    assert next(stream).result() == 0
    executor.shutdown(wait=False)
    with pytest.raises((al.CancelledError, al.SessionError)):
        list(stream)
    executor.shutdown()


def test_blocks_of_sessions_may_end_in_any_order():
    name = al.task(square)
    first, second = al.Session(workers=1), al.Session(workers=1)
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    future = name(3)
    assert isinstance(future, al.Future)
    assert future.session == second.number
    second.__exit__(None, None, None)
    assert name(3) == 9
