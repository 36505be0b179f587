"""Seeded random programs: the same results and files natively and under the connector.

A seed runs three times: natively; under the connector with writes that are late at random; and with
writes that fail at random, where it only has to end, without a crash and in time.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.hdf5.builds import Build
from tests.hdf5.suites import CONNECTOR, environment
from tests.hdf5.traps import USUAL, compile_one

RUN_S_MAX = 120.0
AT_ONCE = 2
TOLD_EVERY = 500
"""Of a long run is told after so many seeds how far it is: it may be stopped before its end."""

CONNECTORS = (USUAL, CONNECTOR, CONNECTOR + ";limit=1MiB", USUAL + ";behind=1KiB")


@dataclass(frozen=True)
class Programs:
    """The random program, and the one that says what is in files."""

    random: Path
    content: Path


def _run(command: list[str], connector: str | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        env=environment(connector),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=RUN_S_MAX,
        check=False,
    )


def _one(programs: Programs, seed: int) -> list[str]:
    """Why a seed is wrong."""
    connector = CONNECTORS[seed % len(CONNECTORS)]
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="alongside-hdf5-") as name:
        for way, string in (("plain", None), ("late", connector), ("failing", connector)):
            folder = Path(name) / way
            folder.mkdir()
            command = [str(programs.random), str(seed), str(folder), way]
            try:
                ended = _run(command, string)
            except subprocess.TimeoutExpired:
                return [f"seed {seed}, {way}, {string}: it did not end in {RUN_S_MAX:.0f} s"]
            if ended.returncode != 0:
                said = ended.stderr[-3000:]
                return [f"seed {seed}, {way}, {string}: exit {ended.returncode}:\n{said}"]
            if way != "failing":
                files = sorted(path.name for path in folder.glob("*.h5"))
                content = _run([str(programs.content), str(folder), *files], None)
                said = content.stdout or content.stderr
                outcomes[way] = (ended.stdout, content.returncode, files, said)
    if outcomes["plain"] != outcomes["late"] or outcomes["plain"][1] != 0:
        return [f"seed {seed}, {connector}: {outcomes}"]
    return []


def compile_random(build: Build) -> Programs:
    """Builds both programs against this (thread-safe) library."""
    return Programs(compile_one(build, "random"), compile_one(build, "content"))


def in_turn(check: Callable[[int], list[str]], first: int, count: int, words: str) -> list[str]:
    """Checks so many seeds, some at once; why some are wrong, which is told at once, too."""
    wrong: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done, found in enumerate(pool.map(check, range(first, first + count)), start=1):
            wrong += found
            for why in found:
                print(why.partition("\n")[0], file=sys.stderr, flush=True)
            if done % TOLD_EVERY == 0 or done == count:
                print(f"{done} of {count} seeds of {words}: {len(wrong)} wrong", flush=True)
    return wrong


def run_seeds(build: Build, first: int, count: int) -> list[str]:
    """Runs so many seeds; those that are wrong, and why."""
    programs = compile_random(build)
    environment(CONNECTOR)
    return in_turn(lambda seed: _one(programs, seed), first, count, "the random program")
