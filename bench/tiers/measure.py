"""One run of an application on the layers, and what it came to."""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import alongside as al
from apps.common.checkpoints import Checkpoints
from apps.common.command import Application
from apps.common.report import IO
from apps.common.spans import Span
from bench.common.sample import Sample
from bench.common.slow_disk import SlowDisk

from .cases import Tiers, Way, checkpoints

CHUNK_BYTES = 1 << 20


class WrongResultError(Exception):
    """A run left other bytes than the plain program's, or than the first run."""


@dataclass(frozen=True)
class Measured:
    """What a run took, in seconds, and where its files were when its tasks had ended.

    `total_s`: from before the session until the last task has ended; `home_s`: until the session
    has, and all files stand at their own path. `io_s`: time inside the bodies of I/O tasks, added
    up; `io_elapsed_s`: the time in which any of them ran. `placed`: bytes by layer.
    """

    total_s: float
    home_s: float
    io_s: float
    io_elapsed_s: float
    placed: dict[str, int]


@dataclass
class Results:
    """All runs of one way; or why there are none."""

    way: Way
    runs: list[Measured] = field(default_factory=list)
    note: str = ""
    is_failed: bool = False

    def add(self, bench: Bench) -> None:
        """Run it once more, unless it failed before or is not in this version."""
        if self.note:
            return
        try:
            measured = bench.run(self.way)
        except (al.Error, WrongResultError) as error:
            self.note, self.is_failed = f"failed: {error}", True
            return
        if isinstance(measured, str):
            self.note = measured
        else:
            self.runs.append(measured)

    def sample(self, name: str) -> Sample:
        """A figure of all runs."""
        if self.note or not self.runs:
            return Sample(note=self.note or "not run")
        return Sample(tuple(getattr(run, name) for run in self.runs))

    def placed(self) -> dict[str, float]:
        """By layer the share of the bytes that were there at the end, of all runs."""
        sums: dict[str, int] = {}
        for run in self.runs:
            for layer, count in run.placed.items():
                sums[layer] = sums.get(layer, 0) + count
        whole = sum(sums.values()) or 1
        return {layer: count / whole for layer, count in sums.items()}


def elapsed_ns(spans: list[Span]) -> int:
    """The time in which any of these ran."""
    covered, end = 0, 0
    for span in sorted(spans, key=lambda span: span.start_ns):
        covered += max(0, span.end_ns - max(end, span.start_ns))
        end = max(end, span.end_ns)
    return covered


def files_under(folder: Path) -> Iterator[Path]:
    """All files under a folder."""
    return (path for path in sorted(folder.rglob("*")) if path.is_file())


def digests(folder: Path) -> dict[str, str]:
    """By name the checksums of all files in a folder."""
    found = {}
    for path in files_under(folder):
        with path.open("rb") as file:
            found[str(path.relative_to(folder))] = hashlib.file_digest(file, "sha256").hexdigest()
    return found


def placed(tiers: Tiers, inputs: Path) -> dict[str, int]:
    """By layer the bytes that are there; on the slow one without the inputs."""
    found = {}
    for layer in tiers.layers:
        sizes = []
        for path in files_under(layer.folder):
            if path.is_relative_to(inputs):
                continue
            try:
                sizes.append(path.stat().st_size)
            except FileNotFoundError:  # it was just moved
                continue
        found[layer.name] = sum(sizes)
    return found


@dataclass
class Bench:
    """An application on its layers: runs it in any way, and compares what it left."""

    application: Application
    workers: int
    slow: SlowDisk
    tiers: Tiers
    all_layers: Path
    slow_alone: Path
    inputs: Path
    trace: Path | None = None
    expected: dict[str, str] = field(default_factory=dict)

    def run(self, way: Way) -> Measured | str:
        """Run it in that way; or why this version cannot. Raises WrongResultError."""
        folder = self.slow.folder / "run"
        self._begin(folder)
        asked: Checkpoints = checkpoints(self.application, self.slow)
        trace = self.trace and self.trace / f"{self.application.name}-{way.name}.json"
        begun = time.perf_counter()
        try:
            session = way.session(self.workers, self.all_layers, self.slow_alone, trace)
        except (TypeError, al.ConstraintError) as error:
            return f"not in this version: {error}"
        with session:
            outcome = self.application.run(asked, folder)
            total_s = time.perf_counter() - begun
            where = placed(self.tiers, self.inputs)
        home_s = time.perf_counter() - begun
        io = [span for span in outcome.spans if span.kind in IO]
        with self.slow.at_full_speed():
            self._compare(way, outcome.answer, folder)
            shutil.rmtree(folder)
        io_s = sum(span.end_ns - span.start_ns for span in io) / 1e9
        return Measured(total_s, home_s, io_s, elapsed_ns(io) / 1e9, where)

    def _begin(self, folder: Path) -> None:
        """Empty layers, and inputs that are on the disk alone."""
        with self.slow.at_full_speed():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            for path in files_under(self.inputs):
                self.slow.forget(path)
        for layer in (self.tiers.memory, self.tiers.disk):
            shutil.rmtree(layer.folder, ignore_errors=True)
            layer.folder.mkdir(parents=True)

    def _compare(self, way: Way, answer: object, folder: Path) -> None:
        name = f"{self.application.name}, {way.name}"
        try:
            wrong = self.application.check(answer, folder)
        except OSError as error:
            wrong = f"{error.filename}: {error.strerror}"
        if wrong:
            raise WrongResultError(f"{name}: not as the plain run: {wrong}")
        found = digests(folder)
        self.expected = self.expected or found
        if found != self.expected:
            differing = sorted(set(found.items()) ^ set(self.expected.items()))
            raise WrongResultError(f"{name}: not as the first run: {differing[0][0]}")
