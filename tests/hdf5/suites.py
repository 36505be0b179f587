"""HDF5's own tests, natively and under the connector: what passes natively has to pass."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.hdf5.builds import ROOT, Build

CONNECTOR = "alongside under_vol=0;under_info={};behind=1"
"""Every byte goes behind the program."""

PROGRAM_S_MAX = 1800.0
GROUPS = ("file", "group", "dataset", "datatype", "attribute", "link", "object", "misc")
"""Of `h5_api_test`, but for `async`."""

READER = "accum_swmr_reader"
API_COUNTS = re.compile(r"^(\d+)/(\d+) .* API tests (passed|did not pass|were skipped)", re.M)
NOT_TESTS = re.compile(r"(clear|clean)-objects$|^h5_api|^H5SHELL|^H5PLUGIN|-testlibinfo$")
WAYS = ("native", "connector")


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its exit code (negative: the signal; None: it did not end)."""

    code: int | None
    passed: int
    failed: int
    skipped: int

    def __str__(self) -> str:
        ended = "did not end" if self.code is None else f"exit {self.code}"
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped, {ended}"


@dataclass(frozen=True)
class Program:
    """A test program of HDF5, as its own test driver would run it."""

    name: str
    command: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()


def plugin_folder() -> Path:
    """Where the connector is found: built by the make target."""
    folder = ROOT / "target" / "hdf5" / "plugin"
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / "libalongside_hdf5.so"
    if not link.is_symlink():
        link.symlink_to(ROOT / "target" / "release" / "libalongside_hdf5.so")
    if not link.exists():
        raise SystemExit(f"{link.readlink()} is missing: cargo build --release -p alongside-vol")
    return folder


def environment(connector: str | None) -> dict[str, str]:
    """The environment of a run: natively (`None`), or with this connector string."""
    variables = {key: value for key, value in os.environ.items() if not key.startswith("HDF5_")}
    if connector is not None:
        variables["HDF5_PLUGIN_PATH"] = str(plugin_folder())
        variables["HDF5_VOL_CONNECTOR"] = connector
    return variables


def run(command: list[str], folder: Path, variables: dict[str, str], log: Path) -> int | None:
    """Runs a program in a folder; its exit code, or None if it did not end and was killed."""
    with log.open("wb") as out:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(PROGRAM_S_MAX)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None


def programs(build: Build) -> list[Program]:
    """What HDF5's own test driver would run, one process each."""
    said = subprocess.run(
        ["ctest", "--show-only=json-v1"],
        cwd=build.folder,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout
    found = []
    for test in json.loads(said)["tests"]:
        if NOT_TESTS.search(test["name"]):
            continue
        words = {word.split("=")[0]: word.split("=", 1)[-1] for word in test["command"]}
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        variables = dict(word.split("=", 1) for word in properties.get("ENVIRONMENT", []))
        variables.pop("srcdir", None)
        if "TEST_ENV_VAR:STRING" in words:
            variables[words["TEST_ENV_VAR:STRING"]] = words["TEST_ENV_VALUE:STRING"]
        command = test["command"]
        if "TEST_PROGRAM" in words:
            arguments = words.get("TEST_ARGS:STRING", "").split(";")
            command = [words["TEST_PROGRAM"], *filter(None, arguments)]
        name = re.sub(r"^H5TEST(XPR)?-", "", test["name"])
        found.append(Program(name, tuple(command), tuple(variables.items())))
    return found


def outcome_of(code: int | None, log: Path) -> Outcome:
    """What a program printed of its single tests."""
    text = log.read_text(errors="replace")
    passed = len(re.findall(r"\bPASSED\b", text))
    failed = len(re.findall(r"\*FAILED\*", text))
    return Outcome(code, passed, failed, len(re.findall(r"-SKIP-", text)))


def _logs(build: Build) -> Path:
    folder = build.folder.parent / f"results-{build.kind}"
    folder.mkdir(exist_ok=True)
    return folder


def _run_programs(build: Build, chosen: list[Program], way: str) -> dict[str, Outcome]:
    """Runs programs one after the other in one folder: some read what others wrote."""
    outcomes = {}
    logs = _logs(build)
    with tempfile.TemporaryDirectory(prefix="alongside-hdf5-") as name:
        folder = Path(name)
        shutil.copytree(build.source / "test" / "testfiles", folder / "testfiles")
        (folder / READER).symlink_to(build.programs / READER)
        for program in chosen:
            log = logs / f"{program.name}.{way}.log"
            variables = environment(CONNECTOR if way == "connector" else None)
            variables |= dict(program.variables) | {"srcdir": name}
            code = run(list(program.command), folder, variables, log)
            outcomes[program.name] = outcome_of(code, log)
    return outcomes


def compare_programs(build: Build, only: set[str]) -> dict[str, dict[str, Outcome]]:
    """Runs the programs (those named in `only`, or all) both ways, at the same time."""
    chosen = [program for program in programs(build) if not only or program.name in only]
    with ThreadPoolExecutor(len(WAYS)) as pool:
        started = {way: pool.submit(_run_programs, build, chosen, way) for way in WAYS}
        found = {way: run.result() for way, run in started.items()}
    return {program.name: {way: found[way][program.name] for way in WAYS} for program in chosen}


def api(build: Build, connector: str | None, group: str | None = None) -> dict[str, int]:
    """The counts of `h5_api_test`: passed, failed, skipped; and its exit code."""
    way = "native" if connector is None else "connector"
    log = _logs(build) / f"h5_api_test.{group or 'all'}.{way}.log"
    with tempfile.TemporaryDirectory(prefix="alongside-hdf5-") as folder:
        command = [str(build.programs / "h5_api_test"), *([group] if group else [])]
        code = run(command, Path(folder), environment(connector), log)
    counts = {"passed": 0, "failed": 0, "skipped": 0, "code": -1 if code is None else code}
    words = {"passed": "passed", "did not pass": "failed", "were skipped": "skipped"}
    for count, _, word in API_COUNTS.findall(log.read_text(errors="replace")):
        counts[words[word]] = int(count)
    return counts


def api_without_requests(build: Build, connector: str) -> dict[str, int]:
    """As `api`, group by group, without `async`: of a connector that cannot keep requests."""
    found = [api(build, connector, group) for group in GROUPS]
    return {key: sum(counts[key] for counts in found) for key in found[0]}
