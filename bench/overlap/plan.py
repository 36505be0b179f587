"""What one program of this benchmark consists of, and how its parts are made to balance.

Chains of compute tasks, two chains a processor (so that a processor need not wait for what comes
next: the bound knows no such waits); the state after every step is written to a file of
its own by an I/O task, which flushes it. The files exist before a clock runs and are overwritten,
so that no run pays for allocating or freeing blocks of the file system.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PIECE_BYTES = 1 << 20
FILE_BYTES_MAX = 64 << 20
TRIAL_FILE_BYTES = 4 << 20
TRIAL_ROUNDS = 100
CHAINS_PER_PROCESSOR = 2

SHARES = {"equal": 1.0, "io_heavy": 0.5, "compute_heavy": 2.0}
"""The rows: time of the computation on all processors over the time of the I/O alone."""


@dataclass(frozen=True)
class Program:
    """Everything that a contender needs to know; it travels as JSON."""

    folder: str
    processors: int
    chains: int
    steps: int
    rounds: int
    file_bytes: int
    writers: int
    direct: bool
    limit: str = ""

    @property
    def tasks(self) -> int:
        """How many compute tasks there are, and as many I/O tasks."""
        return self.chains * self.steps

    @property
    def bytes_written(self) -> int:
        """What one run writes."""
        return self.tasks * self.file_bytes

    def name(self, chain: int, step: int) -> str:
        """The file of a step, relative to the folder."""
        return f"state-{chain}-{step:04}"

    def path(self, chain: int, step: int) -> str:
        """The file of a step."""
        return str(Path(self.folder, self.name(chain, step)))

    def to_json(self) -> str:
        """For the command line of a contender."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Program:
        """The program that `to_json` described."""
        return Program(**json.loads(text))


def sized(program: Program, trial_s: float, seconds: float, bytes_max: int) -> Program:
    """The program with files so large that its I/O alone takes `seconds`, if `bytes_max` allow.

    `trial_s` is how long the I/O of `program` took.
    """
    bytes_wanted = program.file_bytes * seconds / trial_s
    bytes_allowed = min(FILE_BYTES_MAX, bytes_max / program.tasks)
    pieces = max(1, int(min(bytes_wanted, bytes_allowed) // PIECE_BYTES))
    return replace(program, file_bytes=pieces * PIECE_BYTES)


def balanced(program: Program, io_s: float, round_cpu_s: float, share: float) -> Program:
    """The program with so much computation that it takes `share` of the I/O's time.

    `round_cpu_s` is the processor time of one round, `io_s` the time of the I/O alone.
    """
    rounds = share * io_s * program.processors / (program.tasks * round_cpu_s)
    return replace(program, rounds=max(1, round(rounds)))
