"""Calls under a session: values, futures, arguments of all kinds."""

import functools
import threading

import numpy as np
import pytest

import alongside as al


@al.task
def add(a, b=2):
    return a + b


@al.task
def total(values):
    return sum(values)


@al.task(returns=2)
def both(a):
    return a, -a


@al.task
def given(*args, **kwargs):
    return args, kwargs


class Account:
    def __init__(self, start):
        self.total = start

    @al.task
    def plus(self, amount):
        return self.total + amount

    @staticmethod
    @al.task
    def double(x):
        return 2 * x


def plain(x, y=1):
    return x * y


def test_a_call_gives_a_future_of_its_value(session):
    future = add(1)
    assert isinstance(future, al.Future)
    assert future.result() == 3
    assert future.result() == 3
    assert future.done()
    assert not future.running()
    assert future.exception() is None
    assert al.wait(add(1, b=5)) == 6


def test_futures_are_arguments_anywhere(session):
    one, two = add(0, 1), add(0, 2)
    assert al.wait(add(one, b=two)) == 3
    assert al.wait(total([one, two, 3])) == 6
    args, kwargs = al.wait(given(one, [one, {"x": (two,)}], k={"y": [two]}))
    assert args == (1, [1, {"x": (2,)}])
    assert kwargs == {"k": {"y": [2]}}


def test_the_same_future_twice_is_the_same_value(session):
    values = al.put([1, 2])

    @al.task
    def same(a, b):
        return a is b

    assert al.wait(same(values, values))


def test_a_long_chain(session):
    value = add(0, 0)
    for _ in range(500):
        value = add(value, 1)
    assert value.result() == 500


def test_a_wide_fan(session):
    assert al.wait(total([add(i, 0) for i in range(1000)])) == sum(range(1000))


def test_several_returns(session):
    futures = both(3)
    assert isinstance(futures, tuple)
    plus, minus = futures
    assert al.wait((plus, minus)) == (3, -3)
    assert al.wait(add(plus, minus)) == 0


def test_wrong_number_of_returns(session):
    @al.task(returns=2)
    def three():
        return 1, 2, 3

    @al.task(returns=2)
    def one():
        return 1

    with pytest.raises(TypeError, match="returns=2, but it returned 3 values"):
        al.wait(three())
    with pytest.raises(TypeError, match="returns=2, but it returned int"):
        al.wait(one())


def test_lambdas_closures_and_methods(session):
    factor = 7
    times = al.task(lambda x: x * factor)
    assert al.wait(times(3)) == 21

    @al.task
    def closure(x):
        return x + factor

    assert al.wait(closure(1)) == 8
    assert al.wait(Account(3).plus(4)) == 7
    assert al.wait(Account.double(4)) == 8
    assert al.wait(al.task(functools.partial(plain, y=3))(2)) == 6
    assert al.wait(al.task(len)([1, 2])) == 2


def test_functions_are_arguments_and_results(session):
    @al.task
    def call(function, x):
        return function(x)

    @al.task
    def make(n):
        return lambda x: x + n

    assert al.wait(call(lambda x: x + 1, 1)) == 2
    assert al.wait(make(5))(1) == 6
    assert al.wait(call(make(3), 4)) == 7


def test_a_task_that_calls_a_task_runs_it_inline(session):
    @al.task
    def outer(x):
        return add(x, 1)

    assert al.wait(outer(1)) == 2


def test_recursion_runs_inline(session):
    @al.task
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    assert al.wait(factorial(6)) == 720


def test_wrong_arguments_are_refused_at_the_call(session):
    with pytest.raises(TypeError, match=r"add\(\): missing a required argument: 'a'"):
        add()
    with pytest.raises(TypeError, match=r"add\(\): too many"):
        add(1, 2, 3)
    with pytest.raises(TypeError, match=r"add\(\): .*unexpected keyword argument 'c'"):
        add(1, c=2)


def test_what_cannot_be_pickled_is_named(session):
    with pytest.raises(al.SerializationError, match=r"add\(\): argument 'b' \(a lock\)"):
        add(1, threading.Lock())
    with pytest.raises(al.SerializationError, match=r"given\(\): argument 'key' \(a list\)"):
        given(1, key=[threading.Lock()])
    with pytest.raises(al.SerializationError, match=r"given\(\): argument 'args\[1\]'"):
        given(1, threading.Lock())

    @al.task
    def lock():
        return threading.Lock()

    with pytest.raises(al.SerializationError, match=r"lock\(\): its result \(a lock\)"):
        al.wait(lock())
    held = threading.Lock()
    with pytest.raises(al.SerializationError, match=r"locked\(\) cannot be sent"):
        al.task(name="locked")(lambda: held)()


def test_arrays_are_seen_without_a_copy_and_read_only(session):
    array = np.arange(100_000, dtype=np.float64)

    @al.task
    def look(a):
        return float(a.sum()), a.flags.writeable, a.flags.owndata

    assert al.wait(look(array)) == (array.sum(), False, False)
    assert al.wait(look(array[:10])) == (45.0, False, False)

    @al.task
    def change(a):
        a[0] = 1

    with pytest.raises(ValueError, match="read-only"):
        al.wait(change(array))


def test_arrays_come_back_read_only(session):
    @al.task
    def make(n):
        return np.arange(n)

    for n in (10, 1_000_000):
        array = al.wait(make(n))
        assert array.sum() == n * (n - 1) // 2
        assert not array.flags.writeable


def test_arrays_of_all_kinds(session):
    @al.task
    def back(a):
        return a

    block = np.arange(60_000.0).reshape(300, 200)
    for array in (
        block,
        block.T,
        block[::2, ::3],
        np.asfortranarray(block),
        np.array(3),
        np.zeros((0, 3)),
        np.array(["a", "bc"]),
        np.array([{}, None], dtype=object),
        np.zeros(5, dtype=[("x", "i4"), ("y", "f8")]),
        np.datetime64("2020-01-01"),
    ):
        result = al.wait(back(array))
        assert np.array_equal(result, array)
        assert result.dtype == np.asarray(array).dtype


def test_big_plain_values(session):
    @al.task
    def back(x):
        return x

    for value in (b"x" * 3_000_000, "y" * 200_000, list(range(100_000)), bytearray(50_000)):
        assert al.wait(back(value)) == value


def test_put_once_for_many(session):
    array = np.ones(1_000_000)
    stored = al.put(array)
    assert stored.done()
    assert [al.wait(add(stored, i)).sum() for i in range(3)] == [1e6, 2e6, 3e6]
    del stored


def test_results_outlive_their_session(tmp_path):
    @al.task
    def make():
        return np.arange(100_000)

    with al.Session(workers=1):
        future = make()
        other = make()
    assert future.result().sum() == other.result().sum()


def test_wait_takes_everything_apart(session):
    nested = al.wait([add(1), {"a": (add(2), 5)}, "text"])
    assert nested == [3, {"a": (4, 5)}, "text"]
    assert al.wait_all([add(1), 2, [add(3)]]) == [3, 2, [5]]
    assert al.wait_all([]) == []


def test_twenty_threads_submit(session):
    totals = []

    def work(start):
        totals.append(sum(al.wait_all([add(start, i) for i in range(100)])))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(totals) == [100 * n + 4950 for n in range(20)]


def test_priority_and_names(session, gate, mailbox):
    @al.task
    def block(gate, mailbox):
        mailbox.send("in")
        gate.pass_through()

    @al.task
    def low(mailbox):
        mailbox.send("low")

    @al.task(priority=5, name="important")
    def high(mailbox):
        mailbox.send("high")

    blocked = [block(gate, mailbox) for _ in range(2)]
    assert [mailbox.receive() for _ in blocked] == ["in", "in"]
    futures = [low(mailbox) for _ in range(300)] + [high(mailbox)]
    assert "important" in repr(futures[-1])
    gate.open()
    al.wait_all(futures)
    # Some were sent to the workers ahead of time; it overtakes the others.
    assert "high" in [mailbox.receive() for _ in range(150)]


def test_more_processors_than_there_are(session):
    @al.task(cpus=3)
    def wide(): ...

    with pytest.raises(al.ConstraintError, match=r"wide\(\): cpus=3.*at most 2"):
        wide()


def test_a_task_that_takes_all_processors(session):
    @al.task(cpus=2)
    def wide():
        return 1

    assert al.wait_all([wide(), add(1), wide()]) == [1, 3, 1]
