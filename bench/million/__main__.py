"""`python -m bench.million [--tasks N] --out FOLDER`: memory after every 100,000 tasks, a verdict.

The program is a row of waves: a fan-out of small tasks, a task that takes all their results, and
a running sum, which makes every wave depend on the one before. A few waves are in flight at once;
nothing of those before is kept. Exit code 1 when memory grew.
"""

from __future__ import annotations

import argparse
import collections
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alongside as al
from bench.common import machine, report, style, tree
from bench.common.report import Goal
from bench.common.sample import Sample

WAVE_TASKS = 1000
WAVES_IN_FLIGHT = 4
SAMPLE_TASKS = 100_000
WARM_UP_SAMPLES = 2
GOAL = Goal(("after_warm_up",), 1.05)


@dataclass(frozen=True)
class Memory:
    """One line of the table; bytes."""

    tasks: int
    seconds: float
    driver: int
    workers: int
    store: int

    @property
    def whole(self) -> int:
        """Of all processes."""
        return self.driver + self.workers


def value_of(number: int, wave: int) -> int:
    """Compute a small task's result."""
    return number ^ wave


def total_of(values: list[int]) -> int:
    """Take a whole wave."""
    return sum(values)


def add(one: int, other: int) -> int:
    """Carry the sum on."""
    return one + other


def sample(session: al.Session, tasks: int, started: float) -> Memory:
    """Look at the resident memory of this process and of its workers, now."""
    return Memory(
        tasks=tasks,
        seconds=time.perf_counter() - started,
        driver=tree.memory_bytes(os.getpid()),
        workers=sum(map(tree.memory_bytes, tree.members(os.environ[tree.MARK]))),
        store=session.statistics().store_bytes,
    )


def run(session: al.Session, tasks: int, tell: Any) -> list[Memory]:
    """The whole program; the samples, one every `SAMPLE_TASKS`."""
    value, total, plus = al.task(value_of), al.task(total_of), al.task(add)
    small = WAVE_TASKS - 2
    waves = tasks // WAVE_TASKS
    flying: collections.deque[Any] = collections.deque()
    result: Any = 0
    samples = []
    started = time.perf_counter()
    for wave in range(waves):
        result = plus(result, total([value(number, wave) for number in range(small)]))
        flying.append(result)
        if len(flying) > WAVES_IN_FLIGHT:
            al.wait(flying.popleft())
        done = (wave + 1) * WAVE_TASKS
        if done % SAMPLE_TASKS == 0 or wave + 1 == waves:
            al.wait_all(list(flying))
            samples.append(sample(session, done, started))
            tell(samples[-1])
    expected = sum(number ^ wave for wave in range(waves) for number in range(small))
    if al.wait(result) != expected:
        raise SystemExit(f"bench.million: the sum is {al.wait(result)}, not {expected}")
    return samples


def say(memory: Memory) -> None:
    """One line, at once: this takes a while."""
    print(
        f"{memory.tasks:>9,} tasks  {memory.seconds:7.1f} s  "
        f"{memory.tasks / memory.seconds:>8,.0f} tasks/s  "
        f"driver {memory.driver / 1e6:7.1f} MB  workers {memory.workers / 1e6:7.1f} MB  "
        f"store {memory.store / 1e6:6.2f} MB",
        flush=True,
    )


def draw(samples: Sequence[Memory], path: Path) -> None:
    """Memory over tasks."""
    figure, panels = style.figure(1, 1, width=7.0, height=3.2)
    panel = panels[0][0]
    tasks = [memory.tasks for memory in samples]
    for name in ("driver", "workers"):
        values = [getattr(memory, name) / 1e6 for memory in samples]
        colour = style.OURS_COLOUR if name == "driver" else style.PEER_COLOUR
        panel.plot(tasks, values, marker="o", label=name, color=colour)
    panel.set_ylim(bottom=0)
    panel.set_ylabel("MB (PSS)")
    panel.set_xlabel("tasks that are over")
    panel.xaxis.set_major_formatter(style.plain_numbers())
    panel.legend()
    style.finish(figure, path, "Memory of one session", machine.describe())


def judge(samples: Sequence[Memory], out: Path) -> bool:
    """Write the row; say whether memory stayed as it was after the warm-up."""
    settled = samples[min(WARM_UP_SAMPLES, len(samples)) - 1]
    last = samples[-1]
    ours = Sample((last.whole / 1e6,))
    peers = {GOAL.peers[0]: Sample((settled.whole / 1e6,))}
    row = report.make_row("memory", "MB", ours, peers, GOAL)
    report.write_json(out / "million.json", [row])
    draw(samples, out / "million.png")
    tasks = max(1, last.tasks - settled.tasks)
    growth = last.whole - settled.whole
    held = GOAL.verdict(row.ratio) == "yes"
    print(
        f"From {settled.tasks:,} to {last.tasks:,} tasks memory went from "
        f"{settled.whole / 1e6:.1f} to {last.whole / 1e6:.1f} MB: {growth / tasks:+.2f} bytes a "
        f"task, x {row.ratio} (target {GOAL.text()}): "
        f"{'it does not grow with finished tasks' if held else 'IT GROWS'}."
    )
    print(f"{machine.describe()}. Written: {out}/million.json, .png")
    return held


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, tell, write; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.million", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--tasks", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--workers", type=int, default=machine.cores())
    options = parser.parse_args(arguments)
    if options.tasks < WAVE_TASKS:
        parser.error(f"--tasks: at least one wave of {WAVE_TASKS}")
    os.environ[tree.MARK] = tree.new_mark()  # inherited by the workers
    with al.Session(workers=options.workers) as session:
        samples = run(session, options.tasks, say)
    return 0 if judge(samples, options.out) else 1


if __name__ == "__main__":
    sys.exit(main())
