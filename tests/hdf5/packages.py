"""`python -m tests.hdf5.packages`: h5py's and h5netcdf's own tests, natively and under ours.

For each version of h5py an environment of its own with the wheel as it is published, kept in the
system's folder for temporary files. Every test must end as it does without the connector, also with
every byte written behind the program. Exit code 1, and the tests that differ, if one does not.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

import alongside as al

#: Not below this project: tests of h5py start pytest anew, which would read its settings.
FOLDER = Path(tempfile.gettempdir(), "alongside-hdf5-packages")
H5PY = ("3.16.0", "3.15.1")
WITH = ("h5netcdf==1.8.2", "pytest==9.2.0", "pytest-mpi==0.6")
SUITES = ("h5py", "h5netcdf")
TIMEOUT_S = 900

Outcomes = dict[str, str]


def python_of(version: str) -> Path:
    """The interpreter of an environment with that h5py, made if need be."""
    folder = FOLDER / version
    python = folder / "bin/python"
    stamp = folder / "ready"
    if not stamp.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        command = [str(python), "-m", "pip", "install", "-q", f"h5py=={version}", *WITH]
        subprocess.run(command, check=True)
        stamp.touch()
    return python


def run(python: Path, suite: str, environment: dict[str, str]) -> Outcomes:
    """Runs a package's tests, in a folder that is nobody's; how each ended."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        options = ["-c", os.devnull, "-p", "no:cacheprovider", f"--junit-xml={report}"]
        subprocess.run(
            [python, "-m", "pytest", *options, "--pyargs", suite],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=TIMEOUT_S,
            check=False,
        )
        cases = list(ElementTree.parse(report).getroot().iter("testcase"))
    return {f"{case.get('classname')}.{case.get('name')}": outcome(case) for case in cases}


def outcome(case: ElementTree.Element) -> str:
    """How a test ended."""
    kinds = [child.tag for child in case if child.tag in ("failure", "error", "skipped")]
    return kinds[0] if kinds else "passed"


def told(outcomes: Outcomes) -> str:
    """The counts."""
    counts = Counter(outcomes.values())
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


def compare(version: str, suite: str) -> list[str]:
    """The tests that end otherwise under the connector."""
    python = python_of(version)
    native = run(python, suite, {})
    print(f"h5py {version}, {suite}: natively {told(native)}", flush=True)
    different = []
    for way, string in (("ours", al.hdf5.connector()), ("all behind", al.hdf5.connector(behind=1))):
        environment = {**al.hdf5.environment(), "HDF5_VOL_CONNECTOR": string}
        ours = run(python, suite, environment)
        print(f"h5py {version}, {suite}: {way} {told(ours)}", flush=True)
        different += [
            f"{way}: {name}: {native.get(name)} without, {ours.get(name)} with"
            for name in sorted({*native, *ours})
            if native.get(name) != ours.get(name)
        ]
        if not native or "passed" not in native.values():
            different.append(f"{suite} has no test that passes without the connector")
    return different


def main() -> int:
    """Compares all; the exit code."""
    parser = argparse.ArgumentParser(prog="tests.hdf5.packages", description=__doc__)
    parser.add_argument("--h5py", nargs="*", default=H5PY, metavar="VERSION")
    parser.add_argument("--suites", nargs="*", default=SUITES, metavar="PACKAGE")
    options = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    different = [
        line
        for version in options.h5py
        for suite in options.suites
        for line in compare(version, suite)
    ]
    print("\n".join(different) or "no test ends otherwise under the connector")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
