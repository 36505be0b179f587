"""Traps and random programs under the thread sanitizer, which also watches HDF5 and the connector.

The programs and HDF5 are built with gcc, the connector with nightly Rust; gcc's runtime serves all.
Only Rust's standard library is not watched, unless the toolchain has its sources (`rust-src`).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.hdf5.builds import ROOT, Build, MissingError
from tests.hdf5.random_programs import CONNECTORS, in_turn
from tests.hdf5.suites import CONNECTOR
from tests.hdf5.traps import LENDING, LENT, SKIPPED, SOURCES, USUAL, compile_watched

TARGET = ROOT / "target" / "sanitize" / "vol"
SUPPRESSIONS = SOURCES / "watched.supp"
OPTIONS = f"suppressions={SUPPRESSIONS} exitcode=66 die_after_fork=0 history_size=7"
"""With the longest history: a suppression is found by a stack, which must not be forgotten."""
RUN_S_MAX = 300.0
REPORT = "WARNING: ThreadSanitizer"
RACE = "a_lent_buffer_is_changed_too_early"
"""No trap, but a race of the program with the connector: it has to be seen."""


@dataclass(frozen=True)
class Watched:
    """What is run: the programs, and the folder with the connector."""

    traps: Path
    random: Path
    plugins: Path


def build_connector() -> Path:
    """The connector, watched; the folder that it is in."""
    if shutil.which("rustup") is None:
        raise MissingError("the watched connector needs rustup with a nightly toolchain")
    said = subprocess.run(["rustc", "-vV"], stdout=subprocess.PIPE, text=True, check=True).stdout
    triple = next(line.split()[1] for line in said.splitlines() if line.startswith("host: "))
    flags = "-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer --cfg=watched"
    variables = os.environ | {"RUSTFLAGS": flags, "CARGO_TARGET_DIR": str(TARGET)}
    command = ["cargo", "+nightly", "build", "--quiet", "--locked", "--package", "alongside-vol"]
    subprocess.run([*command, "--target", triple], cwd=ROOT, env=variables, check=True)
    folder = TARGET / "plugin"
    folder.mkdir(exist_ok=True)
    shutil.copy(TARGET / triple / "debug" / "libalongside_hdf5.so", folder)
    return folder


def _run(watched: Watched, command: list[str], connector: str | None) -> tuple[int, str]:
    """The exit code of a run in a folder of its own, and what it said."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    variables["TSAN_OPTIONS"] = OPTIONS
    if connector is not None:
        variables["HDF5_PLUGIN_PATH"] = str(watched.plugins)
        variables["HDF5_VOL_CONNECTOR"] = connector
    with tempfile.TemporaryDirectory(prefix="alongside-hdf5-") as folder:
        try:
            ended = subprocess.run(
                [word.replace("FOLDER", folder) for word in command],
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=RUN_S_MAX,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return -1, f"it did not end in {RUN_S_MAX:.0f} s"
    return ended.returncode, ended.stderr


def _why(case: str, code: int, said: str) -> str:
    if code in (0, SKIPPED) and REPORT not in said:
        return ""
    return f"{case}: exit {code}, {said.count(REPORT)} reports:\n{said[:12000]}"


def _check_sight(watched: Watched) -> list[str]:
    """A race of the program with the thread that writes its buffer has to be seen."""
    code, said = _run(watched, [str(watched.traps), RACE], USUAL)
    is_seen = code != 0 and f"{REPORT}: data race" in said
    return [] if is_seen else [f"{RACE}: the sanitizer saw nothing: exit {code}: {said}"]


def _run_traps(watched: Watched) -> list[str]:
    command = [str(watched.traps)]
    listed = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    names = listed.stdout.split()
    ways = [(name, way) for name in names for way in (CONNECTOR, USUAL) if name != LENT]
    ways.append((LENT, LENDING))
    wrong = []
    for name, way in ways:
        why = _why(f"watched {way} {name}", *_run(watched, [*command, name], way))
        wrong += [why] if why else []
    print(f"{len(ways)} watched runs of traps: {len(wrong)} wrong")
    return wrong


def _run_seed(watched: Watched, seed: int) -> list[str]:
    connector = CONNECTORS[seed % len(CONNECTORS)]
    wrong = []
    for way in ("late", "failing"):
        command = [str(watched.random), str(seed), "FOLDER", way]
        why = _why(f"watched seed {seed}, {way}, {connector}", *_run(watched, command, connector))
        wrong += [why] if why else []
    return wrong


def check(build: Build, first: int, count: int) -> list[str]:
    """Runs all traps and so many seeds; which of them are wrong, and why."""
    plugins = build_connector()
    watched = Watched(*compile_watched(build), plugins)
    wrong = _check_sight(watched) + _run_traps(watched)
    words = "the watched random program"
    return wrong + in_turn(lambda seed: _run_seed(watched, seed), first, count, words)
