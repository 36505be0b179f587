"""A stream over a file far larger than the object store: `python -m tests.journey.large_stream`.

Four programs read a file block by block through a stream and check every block: an ordinary one;
one whose consumers are slow; one with a consumer that fails; and one whose workers are killed. The
answer has to be that of the file (or the one failure that was made), and the object store must
never have held more than its limit. Exit code 0 only if all of that held.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import alongside as al

BLOCK = 8 << 20
MEMORY = 256 << 20
KILL_EVERY = 23
FAILS_AT = 7
SLOW_ROUNDS = 12


def block(number: int) -> bytes:
    """What stands at a place of the file."""
    return (f"{number:015} ".encode() * (BLOCK // 16))[:BLOCK]


def make(path: Path, blocks: int) -> None:
    """Writes the file."""
    with path.open("wb") as file:
        for number in range(blocks):
            file.write(block(number))


@al.io(returns=al.Stream, buffer=8, retries=1000)
def read(path: al.FileIn):
    """The blocks of a file, one by one."""
    with open(path, "rb") as file:
        while data := file.read(BLOCK):
            yield data


@al.task(retries=1000)
def check(data: bytes) -> int:
    """The checksum of a block."""
    return zlib.crc32(data)


@al.task(retries=1000)
def check_slowly(data: bytes) -> int:
    """The same, by more work than reading is."""
    for _ in range(SLOW_ROUNDS):
        found = zlib.crc32(data)
    return found


@al.task(on_failure="cancel_dependents")
def check_or_fail(data: bytes) -> int:
    """The same, but for one block."""
    if data.startswith(f"{FAILS_AT:015}".encode()):
        raise ValueError("this block is refused")
    return zlib.crc32(data)


Task = Callable[[al.Future[bytes]], al.Future[int]]


def run(path: Path, task: Task, kills: bool, limit: int | None = None) -> tuple[list[int], int]:
    """The checksums of all blocks (or of the first), and the most that the store held, in bytes."""
    sums: list[al.Future[int]] = []
    with al.Session(workers=2, io_executors=2, memory=MEMORY) as session:
        for number, data in enumerate(read(str(path))):
            sums.append(task(data))
            if kills and number % KILL_EVERY == KILL_EVERY - 1:
                os.kill(session.native.worker_pids()[number % 3], signal.SIGKILL)
            if number + 1 == limit:
                break
        found = al.wait_all(sums)
        return found, session.statistics().store_bytes_peak


def refused(path: Path) -> str:
    """What a program is told one of whose consumers fails."""
    try:
        run(path, check_or_fail, kills=False, limit=4 * FAILS_AT)
    except ValueError as error:
        return str(error)
    return "nothing"


def main() -> int:
    """The four programs; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gigabytes", type=float, default=20.0, help="default: %(default)s")
    parser.add_argument("--below", type=Path, help="folder for the file; default: a temporary one")
    options = parser.parse_args()
    blocks = max(8 * FAILS_AT, round(options.gigabytes * 1e9 / BLOCK))
    faults = []
    with tempfile.TemporaryDirectory(dir=options.below) as folder:
        path = Path(folder, "large")
        make(path, blocks)
        short = blocks // 10
        wanted = [zlib.crc32(block(number)) for number in range(blocks)]
        programs = [
            ("all of it", check, False, None),
            ("slow consumers", check_slowly, False, short),
            ("killed workers", check, True, short),
        ]
        for name, task, kills, limit in programs:
            began = time.monotonic()
            found, peak = run(path, task, kills, limit)
            right = found == wanted[:limit]
            faults += [] if right and peak <= MEMORY else [name]
            print(
                f"{name}: {len(found) * BLOCK / 1e9:.1f} GB in {time.monotonic() - began:.0f} s, "
                f"{'right' if right else 'WRONG'}; the store held {peak / 1e6:.0f} MB at most",
                flush=True,
            )
        said = refused(path)
        faults += [] if "this block is refused" in said else ["a failing consumer"]
        print(f"a failing consumer: told {said!r}")
    print("Everything held." if not faults else f"FAILED: {', '.join(faults)}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
