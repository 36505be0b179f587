"""HDF5 programs that pause now and then: their writes are copied, or their own, in turns."""

from __future__ import annotations

import time
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import alongside as al

ROWS, COLUMNS = 64, 2048
"""A row is 16 KiB; from 4 of them on a write goes behind the program, if it is copied."""
PAUSE_S = 0.0015
LAYOUTS = {"contiguous": {}, "chunked": {"chunks": (16, COLUMNS)}}

Operation = tuple[object, ...]


def _operations() -> st.SearchStrategy[list[Operation]]:
    bounds = st.lists(st.integers(0, ROWS), min_size=2, max_size=2, unique=True).map(sorted)
    name = st.sampled_from(sorted(LAYOUTS))
    operation = st.one_of(
        st.tuples(st.just("write"), name, bounds, st.integers(1, 100)),
        st.tuples(st.just("write"), name, bounds, st.integers(1, 100)),
        st.tuples(st.just("read"), name, bounds),
        st.tuples(st.just("prefetch"), name),
        st.tuples(st.just("flush")),
        st.tuples(st.just("compute")),
        st.tuples(st.just("reopen")),
    )
    return st.lists(operation, min_size=5, max_size=40)


def perform(path: Path, operations: list[Operation]) -> list[int]:
    """Runs operations on a file; what the program saw."""
    seen = []
    file = h5py.File(path, "w")
    for name, layout in LAYOUTS.items():
        file.create_dataset(name, (ROWS, COLUMNS), "i8", **layout)
    for kind, *arguments in operations:
        if kind == "write":
            name, (start, end), value = arguments
            file[name][start:end] = np.full((end - start, COLUMNS), value)
        elif kind == "read":
            name, (start, end) = arguments
            seen.append(int(file[name][start:end].sum()))
        elif kind == "prefetch":
            al.hdf5.prefetch(file[arguments[0]])
        elif kind == "flush":
            file.flush()
            content = np.fromfile(path, "i8")
            seen.append(int(content.sum()))
        elif kind == "compute":
            until = time.perf_counter() + PAUSE_S
            while time.perf_counter() < until:
                pass
        else:
            file.close()
            file = h5py.File(path, "r+")
    file.close()
    return seen


@settings(
    max_examples=40,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=_operations())
def test_a_program_that_pauses_now_and_then_sees_and_leaves_the_same(
    tmp_path: Path, operations: list[Operation]
) -> None:
    expected = perform(tmp_path / "plain.h5", operations)
    with al.hdf5.enabled():
        seen = perform(tmp_path / "ours.h5", operations)
    assert seen == expected
    assert (tmp_path / "ours.h5").read_bytes() == (tmp_path / "plain.h5").read_bytes()


@pytest.mark.parametrize("pause", [False, True])
def test_what_a_program_changes_after_its_write_is_not_written(tmp_path: Path, pause: bool) -> None:
    values = np.empty((ROWS, COLUMNS))
    with al.hdf5.enabled():
        file = h5py.File(tmp_path / "a.h5", "w")
    for step in range(20):
        values[:] = step
        file[f"step{step}"] = values
        values[:] = -1
        if pause:
            time.sleep(PAUSE_S)
        file.flush()
    file.close()
    with h5py.File(tmp_path / "a.h5") as file:
        for step in range(20):
            assert (file[f"step{step}"][...] == step).all()
