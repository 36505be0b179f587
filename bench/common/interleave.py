"""Contenders in turns (A B C A B C ...), each run in a fresh process of its own.

A machine that is slow for a while is then slow for all of them, and nobody inherits a warm cache, a
grown heap or a running pool from the one before.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.common import machine, tree
from bench.common.sample import Sample, combine

ROOT = Path(__file__).resolve().parents[2]
NOTE_CHARS_MAX = 80
OTHERS_MAX = 0.08
LOOK_S = 0.4

Outcome = dict[str, float | str]


@dataclass(frozen=True)
class Run:
    """One process to run: whose, for what, and what it is given.

    The process finds the name of the file to write its JSON object `{row: value}` to as its last
    argument. With `outside` set nothing is read: the value of that row is the wall time of the
    whole process; with `memory` set it is the peak memory of all its processes, MB.
    """

    contender: str
    arguments: tuple[str, ...]
    rows: tuple[str, ...]
    timeout_s: float
    outside: bool = False
    memory: bool = False
    repetitions_max: int | None = None


def environment(mark: str) -> dict[str, str]:
    """The environment of a contender: the benchmarks importable, marked, quiet, one BLAS thread."""
    result = dict(os.environ)
    path = [str(ROOT), *filter(None, [result.get("PYTHONPATH", "")])]
    result["PYTHONPATH"] = os.pathsep.join(path)
    result["PYTHONWARNINGS"] = "ignore"
    result["OMP_NUM_THREADS"] = result["OPENBLAS_NUM_THREADS"] = "1"
    result[tree.MARK] = mark
    return result


def run_once(run: Run) -> Outcome:
    """Run one process to its end; a value for each of its rows, or a text that says why not."""
    mark = tree.new_mark()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        answer = Path(folder, "answer.json")
        errors = Path(folder, "errors.txt")
        command = [sys.executable, *run.arguments] + ([] if run.outside else [str(answer)])
        with errors.open("wb") as errors_file:
            started = time.perf_counter()
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(mark),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors_file,
                start_new_session=True,
            )
            watch = tree.PeakMemory(mark) if run.memory else None
            if watch:
                watch.start()
            in_time = wait_for_exit(process.pid, run.timeout_s)
            elapsed_s = time.perf_counter() - started
            peak_bytes = watch.stop() if watch else 0
            tree.end_all(mark, grace_s=1.0 if in_time else 0.0)
            code = process.wait()
        if not in_time:
            return dict.fromkeys(run.rows, f"no answer in {run.timeout_s:.0f} s")
        if code != 0:
            return dict.fromkeys(run.rows, f"failed: {last_line(errors) or f'exit code {code}'}")
        if run.memory:
            return dict.fromkeys(run.rows, peak_bytes / 1e6)
        if run.outside:
            return dict.fromkeys(run.rows, elapsed_s)
        values: Outcome = json.loads(answer.read_text())
        return {row: values.get(row, "no value") for row in run.rows}


def wait_for_exit(pid: int, timeout_s: float) -> bool:
    """Wait for a child to end without reaping it; False when it has not in `timeout_s`.

    `Popen.wait(timeout)` looks at growing intervals, which would round a start-up time.
    """
    descriptor = os.pidfd_open(pid)
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


def last_line(errors: Path) -> str:
    """The last line that a failed process said, cut to a length that fits a table."""
    lines = [line for line in errors.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:NOTE_CHARS_MAX] if lines else ""


class Patience:
    """Runs again what others on the machine disturbed, as long as there is time for that.

    A shared machine is free now and then. Before a run this waits until others leave the
    processors alone; a run in which they did not is thrown away. When `seconds` of waiting and
    repeating are used up, runs count as they come.
    """

    def __init__(self, seconds: float, execute: Callable[[Run], Outcome] = run_once) -> None:
        """Have so many seconds for all runs together."""
        self.left_s = seconds
        self.thrown_away = 0
        self._execute = execute

    def __call__(self, run: Run) -> Outcome:
        """Run it, again if need be."""
        while True:
            self._wait_until_free()
            disturbance, started = machine.Disturbance(), time.monotonic()
            outcome = self._execute(run)
            failed = any(isinstance(value, str) for value in outcome.values())
            if failed or self.left_s <= 0 or disturbance.others() <= OTHERS_MAX:
                return outcome
            self.thrown_away += 1
            self.left_s -= time.monotonic() - started

    def _wait_until_free(self) -> None:
        while self.left_s > 0:
            disturbance = machine.Disturbance()
            time.sleep(LOOK_S)
            if disturbance.others() <= OTHERS_MAX:
                return
            self.left_s -= LOOK_S


def run_rounds(
    groups: Sequence[Sequence[Run]],
    repetitions: int,
    tell: Callable[[Run, int], None],
    execute: Callable[[Run], Outcome] = run_once,
    *,
    rotates: bool = False,
) -> dict[str, dict[str, Sample]]:
    """Every group `repetitions` times, its runs in turns; the samples as `[row][contender]`.

    With `rotates` another one begins each round (A B C, B C A, ...), so that what happens to every
    second or third run does not always meet the same contender.

    A contender that failed on a row is not asked again: one failure already leaves it without a
    figure, and a hanging one would cost its timeout each time.
    """
    outcomes: dict[str, dict[str, list[float | str]]] = {}
    for group in groups:
        turns = deque(group)
        for repetition in range(repetitions):
            for run in turns:
                tell(run, repetition)
                if run.repetitions_max is not None and repetition >= run.repetitions_max:
                    continue
                lists = [outcomes.setdefault(r, {}).setdefault(run.contender, []) for r in run.rows]
                if all(any(isinstance(value, str) for value in values) for values in lists):
                    continue
                outcome = execute(run)
                for row, values in zip(run.rows, lists, strict=True):
                    values.append(outcome[row])
            turns.rotate(-1 if rotates else 0)
    return {
        row: {contender: combine(values) for contender, values in of_row.items()}
        for row, of_row in outcomes.items()
    }
