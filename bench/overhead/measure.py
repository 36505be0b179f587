"""Measures rows of one contender in this process: `python -m bench.overhead.measure ... FILE`.

The pool is started and warm before a clock runs; only the row `startup` is about starting, and it
is measured from outside.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bench.overhead import bodies
from bench.overhead.contenders import Operations

FAN_WIDTH = 1000
WARM_TASKS = 100
COUNT_MAX = 200_000
JOB_NOOPS = 2_000
JOB_ARRAYS = 20
JOB_ARRAY_BYTES = 10_000_000


@dataclass(frozen=True)
class Effort:
    """How long to measure: about `seconds` a row, and at least `calls_min` calls of a slow one."""

    seconds: float
    calls_min: int


def timed(call: Callable[[], object]) -> float:
    """Seconds that `call` takes."""
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def rate(run: Callable[[int], object], seconds: float) -> tuple[int, float]:
    """Run as many as fit into about `seconds`; how many, and the time that they took."""
    trial_s = timed(lambda: run(WARM_TASKS))
    count = min(COUNT_MAX, max(WARM_TASKS, int(seconds * WARM_TASKS / trial_s)))
    return count, timed(lambda: run(count))


def steady(call: Callable[[int], object], effort: Effort) -> float:
    """The median time of a call that is repeated for a while, after a warm-up."""
    index = 0
    warm_until = time.perf_counter() + effort.seconds / 2
    while index == 0 or time.perf_counter() < warm_until:
        call(index)
        index += 1
    times: list[float] = []
    until = time.perf_counter() + effort.seconds
    while len(times) < effort.calls_min or time.perf_counter() < until:
        index += 1
        started = time.perf_counter()
        call(index)
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def measure_noop(operations: Operations, effort: Effort) -> float:
    """No-op tasks per second."""
    count, elapsed_s = rate(operations.noop, effort.seconds)
    return count / elapsed_s


def measure_hop(operations: Operations, effort: Effort) -> float:
    """Microseconds a hop of a chain."""

    def run(count: int) -> None:
        if operations.hop(count) != count:
            raise RuntimeError("the chain gave a wrong result")

    count, elapsed_s = rate(run, effort.seconds)
    return elapsed_s / count * 1e6


def touch_store(operations: Operations) -> None:
    """Let a contender that needs it bring the memory of its object store to a steady state."""
    touch: Callable[[], None] | None = getattr(operations, "touch_store", None)
    if touch:
        touch()


def measure_argument(operations: Operations, effort: Effort) -> float:
    """Milliseconds of a task with a 100 MB argument."""
    touch_store(operations)
    array = np.ones(bodies.ARRAY_BYTES // 8)

    def call(mark: int) -> None:
        array[0] = mark  # a new value each time: nothing sent before can be used again
        if operations.argument(array) != mark + 1:
            raise RuntimeError("the task saw a wrong argument")

    return steady(call, effort) * 1e3


def measure_result(operations: Operations, effort: Effort) -> float:
    """Milliseconds of a task with a 100 MB result."""
    touch_store(operations)

    def call(mark: int) -> None:
        array = operations.result(float(mark))
        if array[0] != mark or array[-1] != 1.0:
            raise RuntimeError("the task gave a wrong result")

    return steady(call, effort) * 1e3


def measure_fan(operations: Operations, effort: Effort) -> float:
    """Milliseconds of a 1000-wide fan-out with its fan-in."""
    expected = FAN_WIDTH * (FAN_WIDTH + 1) // 2

    def call(_: int) -> None:
        if operations.fan(FAN_WIDTH) != expected:
            raise RuntimeError("the fan gave a wrong result")

    return steady(call, effort) * 1e3


def run_job(operations: Operations, effort: Effort) -> float:
    """The job whose memory is measured from outside: small tasks, a fan, large arrays held."""
    del effort
    operations.noop(JOB_NOOPS)
    operations.fan(FAN_WIDTH)
    arrays = [np.full(JOB_ARRAY_BYTES // 8, float(i)) for i in range(JOB_ARRAYS)]
    results = operations.transform(arrays)
    if sum(float(array[-1]) for array in results) != JOB_ARRAYS * (JOB_ARRAYS - 1):
        raise RuntimeError("the job gave a wrong result")
    return 0.0


MEASURES: dict[str, Callable[[Operations, Effort], float]] = {
    "noop": measure_noop,
    "hop": measure_hop,
    "fan_1000": measure_fan,
    "arg_100MB": measure_argument,
    "result_100MB": measure_result,
    "peak_memory": run_job,
}


def main() -> None:
    """Start the contender, measure the rows asked for, write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("contender")
    parser.add_argument("rows", help="separated by commas")
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="about this long a row")
    parser.add_argument("--calls", type=int, default=3, help="at least so many of a slow call")
    parser.add_argument("answer", type=Path)
    options = parser.parse_args()
    effort = Effort(options.seconds, options.calls)
    module = importlib.import_module(f"bench.overhead.contenders.on_{options.contender}")
    values: dict[str, Any] = {}
    with module.session(options.workers) as operations:
        if hasattr(operations, "noop"):
            operations.noop(WARM_TASKS)
        for row in options.rows.split(","):
            values[row] = MEASURES[row](operations, effort)
    options.answer.write_text(json.dumps(values))


if __name__ == "__main__":
    main()
