"""Programs in C that a benchmark measures, and the C library of Alongside."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from bench.common.interleave import NOTE_CHARS_MAX, ROOT, Outcome, Run, environment
from bench.common.tree import new_mark

HEADERS = ROOT / "crates" / "capi" / "include"
LIBRARIES = ROOT / "target" / "release"
LIBRARY = LIBRARIES / "libalongside.so"
PRELOADED = LIBRARIES / "libalongside_preload.so"

WARNINGS = ("-O2", "-g", "-Wall", "-Wextra", "-Werror")
WITH_LIBRARY = (f"-I{HEADERS}", f"-L{LIBRARIES}", f"-Wl,-rpath,{LIBRARIES}", "-lalongside")
SIGNALS = (signal.SIGTERM, signal.SIGHUP)
KILLED_BY_TIME = "no answer in {:.0f} s"


class BuildError(Exception):
    """The compiler refused a program; its words are the message."""


def compile_program(binary: Path, sources: Sequence[Path], flags: Sequence[str]) -> Path:
    """Compile a program in C with gcc."""
    if shutil.which("gcc") is None:
        raise BuildError(f"gcc is not installed, so {binary.name} cannot be built")
    binary.parent.mkdir(parents=True, exist_ok=True)
    command = ["gcc", *WARNINGS, *map(str, sources), *flags, "-o", str(binary)]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise BuildError(f"cannot build {binary.name}:\n{made.stderr.strip()}")
    return binary


def with_environment(command: Sequence[str], **variables: str) -> tuple[str, ...]:
    """The command with variables that this process and the others do not have."""
    return ("env", *(f"{name}={value}" for name, value in variables.items()), *command)


def execute(run: Run) -> Outcome:
    """Run a program that prints one line of JSON; a value for each row, or a text why not."""
    variables = environment(new_mark())
    del variables["OMP_NUM_THREADS"]
    try:
        done = subprocess.run(
            run.arguments,
            cwd=ROOT,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=run.timeout_s,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return dict.fromkeys(run.rows, KILLED_BY_TIME.format(run.timeout_s))
    if done.returncode != 0:
        return dict.fromkeys(run.rows, f"failed: {last_words(done.stderr, done.returncode)}")
    values: dict[str, float | str] = json.loads(done.stdout)
    return {row: values.get(row, "no value") for row in run.rows}


def last_words(errors: str, code: int) -> str:
    """The last line that a program said, cut to a length that fits a table."""
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    return lines[-1][:NOTE_CHARS_MAX] if lines else f"exit code {code}"


def _stop(number: int, frame: FrameType | None) -> None:
    """Turn a signal that would end the process at once into an orderly end."""
    raise SystemExit(128 + number)


@contextmanager
def orderly_end() -> Iterator[None]:
    """While this lasts, a signal to end also ends the program that runs, and cleans up."""
    before = {number: signal.signal(number, _stop) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
