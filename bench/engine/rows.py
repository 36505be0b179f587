"""The rows of this benchmark: what is done to the file, and what ours is judged by."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.report import Goal

OURS = "alongside"
FIO = "fio"
CONTENDERS = (OURS, FIO, "fio_psync", "threads")

IOPS_MIN = 0.95
CPU_MAX = 1.0


@dataclass(frozen=True)
class Workload:
    """Requests of one size at random places."""

    name: str
    is_read: bool
    block_bytes: int

    @property
    def rows(self) -> tuple[str, ...]:
        """What a run of it measures."""
        return tuple(f"{self.name}{suffix}" for suffix in ("", *MEASURES))


@dataclass(frozen=True)
class Question:
    """One row: its unit, and the goal."""

    name: str
    unit: str
    goal: Goal


MEASURES = {"_cpu": "us/op", "_p50": "us", "_p99": "us"}
WORKLOADS = (
    Workload("randread_4k", is_read=True, block_bytes=4 << 10),
    Workload("write_128k", is_read=False, block_bytes=128 << 10),
    Workload("write_1m", is_read=False, block_bytes=1 << 20),
)


def question(name: str) -> Question:
    """The row of this name."""
    if name.endswith("_cpu"):
        return Question(name, "us/op", Goal((FIO,), CPU_MAX))
    if name.endswith(("_p50", "_p99")):
        return Question(name, "us", Goal((FIO,), None))
    return Question(name, "IOPS", Goal((FIO,), IOPS_MIN, higher=True))
