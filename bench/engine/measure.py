"""Runs one contender on one workload: `python -m bench.engine.measure ... FILE`.

Processor time is that of the whole process and of its threads in the kernel, while it works: our
program says it itself. `fio` counts the thread of a job only, so it is measured from outside; what
it needs to start and to end is taken off, by a run of a single request.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.engine.rows import WORKLOADS, Workload

FIO_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Plan:
    """What every contender is given."""

    file: str
    binary: str
    seconds: float
    depth: int
    jobs: int


def children_s() -> float:
    """Processor time of the children that are over."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run(command: Sequence[str]) -> tuple[str, float]:
    """What a command prints, and its processor time."""
    before = children_s()
    done = subprocess.run(
        command, check=True, stdout=subprocess.PIPE, text=True, timeout=FIO_TIMEOUT_S
    )
    return done.stdout, children_s() - before


def ours(contender: str, workload: Workload, plan: Plan) -> dict[str, float]:
    """A contender of the program in Rust: the engine, or threads in blocking calls."""
    command = [
        plan.binary,
        f"contender={contender}",
        f"operation={'read' if workload.is_read else 'write'}",
        f"block={workload.block_bytes}",
        f"file={plan.file}",
        f"seconds={plan.seconds}",
        f"depth={plan.depth}",
        f"jobs={plan.jobs}",
    ]
    measured: dict[str, float] = json.loads(run(command)[0])
    return measured


def fio_command(engine: str, workload: Workload, plan: Plan) -> list[str]:
    """The same, as `fio` is told it; buffers are filled once, as ours are."""
    threads = plan.depth if engine == "psync" else plan.jobs
    depth = 1 if engine == "psync" else max(1, plan.depth // plan.jobs)
    return [
        "fio",
        "--name=job",
        f"--filename={plan.file}",
        f"--ioengine={engine}",
        f"--rw={'randread' if workload.is_read else 'randwrite'}",
        f"--bs={workload.block_bytes}",
        f"--numjobs={threads}",
        f"--iodepth={depth}",
        "--direct=1",
        "--thread",
        "--group_reporting",
        "--norandommap",
        "--randrepeat=0",
        "--scramble_buffers=0",
        "--output-format=json",
    ]


def fio_figures(printed: str) -> tuple[dict[str, float], int]:
    """What `fio` measured, and how many requests it made."""
    report: dict[str, Any] = json.loads(printed[printed.index("{") :])
    job = report["jobs"][0]
    side = job["read"] if job["read"]["total_ios"] else job["write"]
    percentile = side["clat_ns"]["percentile"]
    figures = {
        "iops": float(side["iops"]),
        "p50": percentile["50.000000"] / 1e3,
        "p99": percentile["99.000000"] / 1e3,
    }
    return figures, int(side["total_ios"])


def fio(engine: str, workload: Workload, plan: Plan) -> dict[str, float]:
    """A contender of `fio`."""
    command = fio_command(engine, workload, plan)
    _, start_s = run([*command, "--number_ios=1"])
    printed, used_s = run([*command, "--time_based", f"--runtime={round(plan.seconds * 1e3)}ms"])
    figures, count = fio_figures(printed)
    return figures | {"cpu": (used_s - start_s) * 1e6 / count}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one contender and write its figures."""
    parser = argparse.ArgumentParser(prog="bench.engine.measure", description=__doc__)
    parser.add_argument("contender")
    parser.add_argument("workload")
    parser.add_argument("plan", help="as JSON")
    parser.add_argument("answer", type=Path)
    options = parser.parse_args(arguments)
    plan = Plan(**json.loads(options.plan))
    workload = next(known for known in WORKLOADS if known.name == options.workload)
    if options.contender.startswith("fio"):
        engine = "psync" if options.contender == "fio_psync" else "io_uring"
        figures = fio(engine, workload, plan)
    else:
        figures = ours(options.contender, workload, plan)
    name = workload.name
    answer = {name: figures["iops"]} | {
        f"{name}_{measure}": figures[measure] for measure in ("cpu", "p50", "p99")
    }
    options.answer.write_text(json.dumps(answer))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
