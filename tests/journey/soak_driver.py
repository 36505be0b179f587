"""One driver of the soak: `python -m tests.journey.soak_driver SEED FOLDER`.

Runs random programs, each sequentially and then in a session, and compares. Says on standard
output, a line each: `started` when the first session is there, `durable NAME HEX` for a file whose
data have to survive anything, and at the end `equal PROGRAMS`. Exit code 1: a result differs.
"""

from __future__ import annotations

import faulthandler
import hashlib
import random
import sys
from pathlib import Path

import alongside as al
from tests.journey.random_program import Program

PROGRAMS = 2
CALLS_MIN, CALLS_MAX = 60, 160
STACKS_AFTER_S = 80.0


def say(*words: object) -> None:
    """One line for the soak."""
    print(*words, flush=True)


def main() -> int:
    """Run the programs of a seed."""
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    faulthandler.dump_traceback_later(STACKS_AFTER_S, exit=False)
    source = random.Random(seed)
    for number in range(PROGRAMS):
        calls = source.randrange(CALLS_MIN, CALLS_MAX)
        plain, tasks = folder / f"plain-{number}", folder / f"tasks-{number}"
        plain.mkdir(parents=True)
        tasks.mkdir(parents=True)
        expected = Program(seed + number, calls, plain).run()

        def durable(name: str, data: bytes, tasks: Path = tasks) -> None:
            digest = hashlib.blake2b(data, digest_size=16).hexdigest()
            say("durable", tasks / name, digest)

        with al.Session(workers=2, io_executors=4) as session:
            if number == 0:
                say("started")
            found = Program(seed + number, calls, tasks, durable).run()
            lost = session.statistics().workers_lost
        say("lost", lost)
        if found != expected:
            say("different", seed + number, calls, found, expected)
            return 1
    say("equal", PROGRAMS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
