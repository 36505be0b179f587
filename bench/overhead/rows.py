"""The rows of this benchmark: unit, what better means, against whom ours is judged."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.report import Goal

OURS = "alongside"
RUNTIMES = ("loky", "dask", "ray")
PEERS = ("threads", "processes", *RUNTIMES)
CONTENDERS = (OURS, *PEERS)
MEMCPY = "memcpy"

PACKAGES = {"loky": "loky", "dask": "distributed", "ray": "ray", OURS: "alongside"}
MODULES = {OURS: "ours"}


@dataclass(frozen=True)
class Question:
    """One row: its name in the JSON file, its unit, a few words for people, and the goal."""

    name: str
    unit: str
    words: str
    goal: Goal
    memcpy: bool = False

    @property
    def contenders(self) -> tuple[str, ...]:
        """Who takes part, in the order of a round."""
        return (*CONTENDERS, MEMCPY) if self.memcpy else CONTENDERS


QUESTIONS = (
    Question("noop", "tasks/s", "no-op tasks", Goal(("processes",), 4.0, higher=True)),
    Question("hop", "us", "hop of a chain x = f(x)", Goal(("processes",), 0.4)),
    Question("startup", "s", "start, one task, stop", Goal(RUNTIMES, 1.0)),
    Question("arg_100MB", "ms", "task, 100 MB argument", Goal((MEMCPY,), 1.3), memcpy=True),
    Question("result_100MB", "ms", "task, 100 MB result", Goal((MEMCPY,), 1.3), memcpy=True),
    Question("fan_1000", "ms", "1,000 tasks into one", Goal(RUNTIMES, 1.0)),
    Question("peak_memory", "MB", "peak, a fixed job", Goal(RUNTIMES, 1.0)),
)
