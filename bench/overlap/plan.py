"""What one program of this benchmark consists of, and how its parts are made to balance.

Chains of compute tasks, two chains a processor (so that a processor need not wait for what comes
next: the bound knows no such waits); the state after every step is written to a file by an I/O
task, which flushes it. A chain has several files and takes them in turn, as checkpoints in rotation
do, so that a run is long whatever the disk holds: its first step, which has no I/O beside it, and
its last I/O, which has no computation, are small parts of it. The files exist before a clock runs
and are overwritten, so that no run pays for allocating or freeing blocks of the file system.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path

PIECE_BYTES = 4 << 20
FILE_BYTES_MAX = 64 << 20
TRIAL_FILE_BYTES = 4 << 20
STEPS_MAX = 2000
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
    files: int
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
        return f"state-{chain}-{step % self.files:04}"

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
    """The program with files as large as `bytes_max` allow for all of them, and so many steps.

    Its I/O alone then takes `seconds`; `trial_s` is how long the I/O of `program` took.
    """
    seconds_a_byte = trial_s / program.bytes_written
    bytes_wanted = seconds / seconds_a_byte / (program.chains * program.files)
    bytes_allowed = min(FILE_BYTES_MAX, bytes_max / (program.chains * program.files))
    pieces = max(1, int(min(bytes_wanted, bytes_allowed) // PIECE_BYTES))
    step_s = program.chains * pieces * PIECE_BYTES * seconds_a_byte
    steps = min(STEPS_MAX, max(program.files, round(seconds / step_s)))
    return replace(program, file_bytes=pieces * PIECE_BYTES, steps=steps)


def balanced(program: Program, io_s: float, round_cpu_s: float, share: float) -> Program:
    """The program with so much computation that it takes `share` of the I/O's time.

    `round_cpu_s` is the processor time of one round, `io_s` the time of the I/O alone.
    """
    rounds = share * io_s * program.processors / (program.tasks * round_cpu_s)
    return replace(program, rounds=max(1, round(rounds)))
