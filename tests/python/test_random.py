"""Random programs: what comes out is what the sequential run of the same program gives."""

import contextlib
import os
import tempfile

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import alongside as al

MODULUS = 1_000_003


@al.task
def mix(*values):
    return sum((n + 1) * int(np.sum(value)) for n, value in enumerate(values)) % MODULUS


@al.task(returns=2)
def split(value):
    return int(np.sum(value)) // 2, np.arange(int(np.sum(value)) % 5)


@al.task
def push(stack: al.InOut, value):
    stack.append(int(np.sum(value)) % MODULUS)


@al.task
def refill(array: al.Out, value):
    array[:] = int(np.sum(value)) % 100


@al.task
def tally(table: al.Commutative, value):
    table[0] += int(np.sum(value)) % 100


@al.task
def mark(array: al.Concurrent, index, value):
    array[index] = int(np.sum(value)) % 100


@al.io
def save(path: al.FileOut, value):
    with open(path, "w") as file:
        file.write(str(int(np.sum(value))))


@al.io
def extend(path: al.FileInOut, value):
    with open(path, "a") as file:
        file.write(f"+{int(np.sum(value))}")


@al.io
async def load(path: al.FileIn):
    with open(path) as file:
        return sum(map(int, file.read().split("+"))) % MODULUS


@al.task
def digest(data):
    return sum(data) % MODULUS


NUMBER = st.integers(0, 7)
KINDS = """
    mix split push refill tally mark save extend load nest see dump fetch duplicate
"""
STEP = st.tuples(st.sampled_from(KINDS.split()), NUMBER, NUMBER)


def program(steps):
    """Runs the steps with calls that are tasks under a session, and plain calls without."""
    values = [1, 2, np.arange(4), np.arange(20_000)]
    stack, array, table, marks = [1], np.zeros(3000, dtype=int), [0], np.zeros(8, dtype=int)
    files, raw = set(), set()
    for kind, first, second in steps:
        value, other = values[first % len(values)], values[second % len(values)]
        name = f"file-{first % 2}"
        if kind == "mix":
            values.append(mix(value, other))
        elif kind == "split":
            values.extend(split(value))
        elif kind == "push":
            push(stack, value)
        elif kind == "refill":
            refill(array, value)
        elif kind == "tally":
            tally(table, value)
        elif kind == "mark":
            mark(marks, second, second + 1)  # in any order: whoever comes last writes the same
        elif kind == "save":
            save(name, value)
            files.add(name)
        elif kind == "extend" and name in files:
            extend(name, value)
        elif kind == "load" and name in files:
            values.append(load(name))
        elif kind == "nest":
            values.append(mix(*[value, other, array]))
        elif kind == "see":
            values.append(mix(stack, table, marks))
        elif kind == "dump":
            al.write(f"raw-{first % 2}", [array, marks, b"plain" * second][second % 3])
            raw.add(f"raw-{first % 2}")
        elif kind == "fetch" and f"raw-{first % 2}" in raw:
            values.append(digest(al.read(f"raw-{first % 2}", offset=second)))
        elif kind == "duplicate" and f"raw-{first % 2}" in raw:
            al.copy(f"raw-{first % 2}", f"raw-{1 - first % 2}")
            raw.add(f"raw-{1 - first % 2}")
    left = [*values, stack, array, table, marks]
    texts = []
    for name in sorted(files):
        with al.open(name) as file:
            texts.append(file.read())
    for name in sorted(raw):
        with al.open(name, "rb") as file:
            texts.append(file.read())
    return [np.asarray(one).tolist() for one in al.wait_all(left)], texts


@contextlib.contextmanager
def folder():
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as path:
        os.chdir(path)
        try:
            yield
        finally:
            os.chdir(before)


@pytest.fixture(scope="module")
def shared():
    """One session for all programs; each works on objects and files of its own."""
    with folder(), al.Session(workers=2, io_executors=4) as session:
        yield session
    # its working directory is where the session began


@settings(
    max_examples=int(os.environ.get("ALONGSIDE_EXAMPLES", "25")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEP, max_size=30))
def test_random_programs_give_what_the_sequential_run_gives(shared, steps):
    from alongside import _context

    concurrent = program(steps)
    _context.current, session = None, _context.current
    try:
        with folder():
            sequential = program(steps)
    finally:
        _context.current = session
    assert concurrent == sequential
