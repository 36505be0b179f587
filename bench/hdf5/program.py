"""The program: `python -m bench.hdf5.program CONTENDER FOLDER CASE FILE`, h5py and nothing of ours.

It is the same for all contenders; which connector HDF5 loads is said in the environment before
h5py is imported. Every step, or the whole program, ends with a flush and an fsync after the
computation, so that the device is in the measure. The answer: seconds of I/O as the program sees
them (its total less its computation), those of the step that nothing hides (the last one written,
the first one read), and the total; of several processes, the slowest's.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from bench.hdf5.cases import CALLS, LENT, NATIVE, OURS, PASS_THROUGH, Case

ORDER = 160
#: Computation between calls that write nothing: enough that the caches are cold again.
CALLS_COMPUTE_S_MAX = 0.1


def choose(contender: str) -> None:
    """Sets the environment for HDF5."""
    if contender in (OURS, LENT):
        from alongside import hdf5

        lends = contender == LENT
        os.environ.update(hdf5.environment(limit=0 if lends else None, lend=lends))
    elif contender == PASS_THROUGH:
        os.environ["HDF5_VOL_CONNECTOR"] = "pass_through under_vol=0;under_info={}"
    else:
        assert contender in (NATIVE, CALLS)


def compute(seconds: float, matrix: Any) -> None:
    """Keeps a processor busy."""
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        matrix @ matrix


def write_step(file: Any, case: Case, step: int, data: list[Any], is_written: bool = True) -> None:
    """A group, its attributes and its datasets, with or without their values."""
    group = file.create_group(f"step{step:04d}")
    for number in range(case.attributes):
        group.attrs[f"attribute{number}"] = number
    for number, values in enumerate(data):
        if is_written:
            group.create_dataset(f"variable{number}", data=values)
        else:
            group.create_dataset(f"variable{number}", values.shape, values.dtype)


def run(case: Case, path: Path, contender: str) -> dict[str, float]:
    """The program, in this process."""
    import h5py
    import numpy as np

    data, is_written = values_of(case), contender != CALLS
    compute_s = case.compute_s if is_written else min(case.compute_s, CALLS_COMPUTE_S_MAX)
    matrix = np.random.default_rng(2).random((ORDER, ORDER))
    start()
    began = time.perf_counter()
    computed_s = last_s = 0.0
    file = h5py.File(path, "w")
    descriptor = os.open(path, os.O_RDONLY)
    for step in range(case.steps):
        last_s = time.perf_counter()
        write_step(file, case, step, data, is_written)
        if step + 1 < case.steps:
            since = time.perf_counter()
            compute(compute_s, matrix)
            computed_s += time.perf_counter() - since
        if case.is_data and case.is_synced:
            file.flush()
            os.fsync(descriptor)
    file.close()
    os.fsync(descriptor)
    ended = time.perf_counter()
    os.close(descriptor)
    check(case, path, data if is_written else [np.zeros_like(values) for values in data])
    return {"io_s": ended - began - computed_s, "last_s": ended - last_s, "total_s": ended - began}


def read(case: Case, path: Path, contender: str) -> dict[str, float]:
    """Reads steps that are there and not in the page cache; asks for each one step ahead."""
    import h5py
    import numpy as np

    from alongside import hdf5

    data = values_of(case)
    matrix = np.random.default_rng(2).random((ORDER, ORDER))
    with h5py.File(path, "w") as file:
        for step in range(case.steps):
            write_step(file, case, step, data)
    forget(path)
    buffers = [np.empty_like(values) for values in data]
    start()
    began = time.perf_counter()
    computed_s = first_s = 0.0
    with h5py.File(path, "r") as file:
        groups = [file[name] for name in sorted(file)]
        for step, group in enumerate(groups):
            for number, buffer in enumerate(buffers):
                group[f"variable{number}"].read_direct(buffer)
            if contender == OURS and step + 1 < case.steps:
                for dataset in groups[step + 1].values():
                    hdf5.prefetch(dataset)
            first_s = first_s or time.perf_counter() - began
            since = time.perf_counter()
            compute(case.compute_s, matrix)
            computed_s += time.perf_counter() - since
            for values, buffer in zip(data, buffers, strict=True):
                assert values[-1] == buffer[-1]
                buffer[-1] = -1
    ended = time.perf_counter()
    return {"io_s": ended - began - computed_s, "last_s": first_s, "total_s": ended - began}


def forget(path: Path) -> None:
    """Takes a file out of the page cache."""
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def values_of(case: Case) -> list[Any]:
    """What is in the datasets of a step."""
    import numpy as np

    random = np.random.default_rng(1)
    return [random.random(case.dataset_bytes // 4, dtype="f4") for _ in range(case.datasets)]


def check(case: Case, path: Path, data: list[Any]) -> None:
    """Every value that was written is there."""
    import h5py
    import numpy as np

    with h5py.File(path, "r") as file:
        assert len(file) == case.steps
        for group in file.values():
            assert len(group.attrs) == case.attributes
            for number, values in enumerate(data):
                found = group[f"variable{number}"][...]
                assert np.array_equal(found, values), f"{path}: {group.name}/variable{number}"


def start() -> None:
    """Waits until all processes are ready: a byte for each of them is in the pipe."""
    if "BENCH_START" in os.environ:
        ready, go = map(int, os.environ["BENCH_START"].split(","))
        os.write(ready, b"r")
        os.read(go, 1)


def together(case: Case, folder: Path, contender: str) -> dict[str, float]:
    """As many processes as the case has, begun at once; the slowest's times."""
    ready, go, answers = os.pipe(), os.pipe(), os.pipe()
    os.environ["BENCH_START"] = f"{ready[1]},{go[0]}"
    children = []
    for number in range(case.processes):
        child = os.fork()
        if child == 0:
            path = folder / f"{case.name}-{number}.h5"
            program = read if case.is_read else run
            answer = json.dumps(program(case, path, contender))
            os.write(answers[1], answer.encode() + b"\n")
            os._exit(0)
        children.append(child)
    for _ in children:
        os.read(ready[0], 1)
    os.write(go[1], b"g" * case.processes)
    codes = [os.waitpid(child, 0)[1] for child in children]
    if any(codes):
        raise SystemExit(f"a process ended with {codes}")
    os.close(answers[1])
    with os.fdopen(answers[0]) as lines:
        told = [json.loads(line) for line in lines]
    return {name: max(one[name] for one in told) for name in told[0]}


def main() -> None:
    """Runs one case for one contender, and writes the answer."""
    contender, folder, text, answer = sys.argv[1:]
    case = Case.from_json(text)
    choose(contender)
    figures = together(case, Path(folder), contender)
    Path(answer).write_text(json.dumps({f"{case.name}:{name}": figures[name] for name in figures}))
    for path in Path(folder).glob(f"{case.name}-*.h5"):
        path.unlink()


if __name__ == "__main__":
    main()
