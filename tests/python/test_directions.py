"""`InOut`, `Out`, `Concurrent`, `Commutative` on objects of the program."""

import numpy as np
import pytest

import alongside as al
from alongside import tracking


@al.task
def push(stack: al.InOut, value):
    stack.append(value)


@al.task
def size(stack):
    return len(stack)


@al.task
def plus(array: al.InOut, value):
    array += value


@al.task
def fill(array: al.Out, value):
    array[:] = value


@al.task
def part(array: al.Concurrent, index):
    array[index] = index


@al.task
def count(table: al.Commutative, key):
    table[key] = table.get(key, 0) + 1


def test_inout_on_a_list(session):
    stack = []
    push(stack, 1)
    push(stack, 2)
    length = size(stack)
    push(stack, 3)
    assert al.wait(stack) == [1, 2, 3]
    assert length.result() == 2
    assert stack == []  # the program's own object is as it was


def test_inout_is_seen_anywhere_in_later_arguments(session):
    stack = []
    push(stack, 1)

    @al.task
    def look(nested, *, key=None):
        return nested["x"][0], key

    assert al.wait(look({"x": [stack]}, key=stack)) == ([1], [1])
    assert al.wait([stack, {"s": stack}]) == [[1], {"s": [1]}]


def test_inout_and_equal_objects(session):
    first, second = [], []
    push(first, 1)
    push(second, 2)
    assert al.wait((first, second)) == ([1], [2])


def test_inout_on_arrays(session):
    small, large = np.zeros(4), np.zeros(200_000)
    for array in (small, large):
        before = al.task(lambda a: float(a.sum()))(array)
        plus(array, 1)
        plus(array, 2)
        assert al.wait(array).sum() == 3 * array.size
        assert before.result() == 0
        assert array.sum() == 0


def test_inout_on_read_only_arrays(session):
    for n in (5, 50_000):
        array = al.wait(al.task(np.zeros)(n))
        assert not array.flags.writeable
        plus(array, 1)
        assert al.wait(array).sum() == n
        other = al.wait(array)
        fill(other, 3)
        part(other, 0)
        assert al.wait(other)[:2].tolist() == [0, 3]
        mixed = [array, {"x": array}, "FRAME"]
        push(mixed, 1)
        assert al.wait(mixed)[2:] == ["FRAME", 1]


def test_inout_on_a_future(session):
    @al.task
    def make():
        return [0]

    future = make()
    push(future, 1)
    push(future, 2)
    assert al.wait(future) == [0, 1, 2]
    assert al.wait(size(future)) == 3
    assert future.result() == [0]  # what its own task returned


def test_inout_returns_too(session):
    @al.task(returns=2)
    def pop(stack: al.InOut):
        return stack.pop(), len(stack)

    stack = [1, 2, 3]
    value, left = pop(stack)
    assert al.wait((value, left, stack)) == (3, 2, [1, 2])


def test_inout_by_name_and_two_of_them(session):
    @al.task
    def swap(a: al.InOut, b: al.InOut):
        a[0], b[0] = b[0], a[0]

    x, y = [1], [2]
    swap(b=y, a=x)
    assert al.wait((x, y)) == ([2], [1])


def test_out_needs_no_earlier_value(session, gate):
    @al.task
    def slow(array: al.InOut, gate):
        gate.pass_through()

    array = np.zeros(5)
    slow(array, gate)
    fill(array, 7)
    assert al.wait(array).tolist() == [7] * 5  # before the slow one is over
    gate.open()


def test_concurrent_parts_of_an_array(session):
    for n in (8, 50_000):
        array = np.zeros(n)
        for index in range(8):
            part(array, index)
        plus(array, 1)
        assert al.wait(array)[:8].tolist() == [i + 1 for i in range(8)]
        assert array.sum() == 0


def test_concurrent_tasks_run_at_the_same_time(session, tmp_path):
    from alongside.testing import Mailbox

    first, second = Mailbox(tmp_path / "first"), Mailbox(tmp_path / "second")

    @al.task
    def meet(array: al.Concurrent, index, mine, other):
        other.send("here")
        with open(mine.path) as file:
            array[index] = len(file.readline())

    array = np.zeros(2)
    meet(array, 0, first, second)
    meet(array, 1, second, first)
    assert al.wait(array, timeout=60).tolist() == [5, 5]


def test_concurrent_needs_a_buffer(session):
    with pytest.raises(TypeError, match=r"part\(\): a Concurrent argument has to lie in one"):
        al.wait(part([0, 0], 1))


def test_commutative_in_any_order(session):
    table = {}
    for index in range(30):
        count(table, index % 3)
    assert al.wait(table) == {0: 10, 1: 10, 2: 10}
    count(table, 0)
    assert al.wait(size(table)) == 3
    assert al.wait(table)[0] == 11


def test_what_cannot_be_changed_in_place(session):
    for value in (3, "text", (1, 2), None, b"x"):
        with pytest.raises(al.DirectionError, match=r"push\(\): parameter 'stack' is InOut"):
            push(value, 1)


def test_a_cycle_through_inout(session):
    @al.task
    def two(a: al.InOut, b: al.InOut): ...

    @al.task
    def use(a: al.InOut, b): ...

    stack = [1]
    with pytest.raises(al.DirectionError, match=r"two\(\): the same .*'a' \(InOut\), 'b'"):
        two(stack, stack)
    with pytest.raises(al.DirectionError, match=r"use\(\): the same"):
        use(stack, [stack])
    assert al.wait(stack) == [1]


def test_inout_on_an_object_with_futures_inside(session):
    holder = [size([1])]
    with pytest.raises(al.DirectionError, match=r"push\(\): parameter 'stack'.*contains futures"):
        push(holder, 1)


def test_the_last_version_after_the_session():
    stack, array = [], np.zeros(3)
    with al.Session(workers=1):
        push(stack, 5)
        plus(array, 2)
    assert al.wait(stack) == [5]
    assert al.wait(array).tolist() == [2, 2, 2]


def test_forget_an_object(session):
    stack = [1]
    push(stack, 2)
    assert al.wait(stack) == [1, 2]
    assert session.forget(stack)
    assert not session.forget(stack)
    assert al.wait(stack) is stack
    assert al.wait(size(stack)) == 1


def test_a_failed_writer_fails_later_readers(session):
    @al.task(on_failure="cancel_dependents")
    def broken(stack: al.InOut):
        stack.append(1)
        raise ValueError("no")

    stack = []
    broken(stack)
    with pytest.raises(ValueError, match="broken"):
        al.wait(stack)


def test_methods_change_their_object(session):
    class Counter:
        def __init__(self):
            self.count = 0

        @al.task
        def up(self: al.InOut, by):
            self.count += by

    counter = Counter()
    counter.up(2)
    counter.up(by=3)
    assert al.wait(counter).count == 5


def test_objects_of_several_sessions_keep_their_newest_values():
    first, second, array = [], [], np.zeros(2)
    with al.Session(workers=1):
        push(first, 1)
        plus(array, 1)
    assert al.wait(first) == [1]
    with al.Session(workers=1):
        push(second, 2)
    assert al.wait((first, second)) == ([1], [2])
    assert al.wait_all([first, array])[1].tolist() == [1, 1]
    with al.Session(workers=1) as session:
        assert size(first).result() == 1
        push(second, 3)
        plus(array, 1)
        assert al.wait((first, second)) == ([1], [2, 3])
        with al.Session(workers=1):
            assert al.wait(second) == [2, 3]
            with pytest.raises(al.SessionError, match="another session"):
                push(second, 4)
            with pytest.raises(al.SessionError, match="another session"):
                size(second)
        assert session.forget(first)
    assert al.wait((first, second)) == ([], [2, 3])
    assert al.wait(array).tolist() == [2, 2]


def test_what_sessions_left_of_objects_goes_with_them():
    with al.Session(workers=1):
        objects = [[], np.zeros(1)]
        push(objects[0], 1)
        plus(objects[1], 1)
    before = len(tracking._last)  # noqa: SLF001
    assert before >= 2
    objects.clear()
    with al.Session(workers=1):
        push([], 1)
    assert len(tracking._last) <= before - 1  # noqa: SLF001
