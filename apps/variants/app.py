"""The program: every sample goes through the phases, and what each phase made is checkpointed.

preprocess ─> map_reads ─> mark_duplicates ─> recalibrate ─> call ──┐ of every sample
    │             │               │                │           │    └──> call_jointly
    v             v               v                v           v
  fastq        mapped          marked        recalibrated    called     (writes, fsyncs a file)

The five kinds of checkpoints have sizes of their own: to the runtime they are five functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

import alongside as al
from apps.common import files
from apps.common.checkpoints import Checkpoints
from apps.common.command import Outcome
from apps.common.spans import Span, Stopwatch

from . import calling, data, phases

KINDS = {
    "fastq": "fastq",
    "mapped": "mapped.sam",
    "marked": "marked.sam",
    "recalibrated": "recalibrated.sam",
    "called": "g.vcf",
}
"""The kinds of checkpoints, and how their files' names end."""


class File(NamedTuple):
    """What a phase made: the text of a file, as bytes that processes share without copying."""

    content: npt.NDArray[np.uint8]
    span: Span

    @property
    def text(self) -> str:
        """The text."""
        return self.content.tobytes().decode("ascii")


class Called(NamedTuple):
    """What the last phase of a sample made."""

    content: npt.NDArray[np.uint8]
    evidence: calling.Evidence
    span: Span


class Variants(NamedTuple):
    """The variants of all samples, as a VCF file."""

    text: str
    span: Span


def _bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode("ascii"), np.uint8)


@al.task
def preprocess(given: data.Input, sample: int) -> File:
    """Draw the pairs of a sample and trim their reads."""
    with Stopwatch("preprocess") as watch:
        content = _bytes(phases.preprocess(given, sample))
    return File(content, watch.span)


@al.task
def map_reads(given: data.Input, sample: int, fastq: File) -> File:
    """Find where the reads belong."""
    with Stopwatch("map_reads") as watch:
        content = _bytes(phases.map_reads(given, sample, fastq.text))
    return File(content, watch.span)


@al.task
def mark_duplicates(given: data.Input, sample: int, mapped: File) -> File:
    """Tell the reads of a pair of each other, mark duplicates, and sort by position."""
    with Stopwatch("mark_duplicates") as watch:
        content = _bytes(phases.mark_duplicates(given, sample, mapped.text))
    return File(content, watch.span)


@al.task
def recalibrate(given: data.Input, sample: int, marked: File) -> File:
    """Correct the qualities of the bases."""
    with Stopwatch("recalibrate") as watch:
        content = _bytes(phases.recalibrate(given, sample, marked.text))
    return File(content, watch.span)


@al.task
def call(given: data.Input, sample: int, recalibrated: File) -> Called:
    """Say of every position how likely each base is."""
    with Stopwatch("call") as watch:
        text, evidence = phases.call(given, sample, recalibrated.text)
        content = _bytes(text)
    return Called(content, evidence, watch.span)


@al.task
def call_jointly(given: data.Input, called: Sequence[Called]) -> Variants:
    """Find the variants of all samples."""
    with Stopwatch("call_jointly") as watch:
        text = phases.call_jointly(given, [one.evidence for one in called])
    return Variants(text, watch.span)


def checkpoint(path: al.FileOut, made: File | Called) -> Span:
    """Write what a phase made; it is durable when this returns."""

    def fill(file: IO[bytes]) -> None:
        file.write(made.content.data)

    return files.write(path, fill)


def file_of(folder: Path, kind: str, sample: int) -> Path:
    """Return where a checkpoint is."""
    return folder / f"{phases.name_of(sample)}.{KINDS[kind]}"


def run(given: data.Input, samples: int, checkpoints: Checkpoints, folder: Path) -> Outcome:
    """Run the program; the answer is the variants' file. Under a session its calls are tasks."""
    do = checkpoints.call
    writers = {kind: checkpoints.task(checkpoint, f"checkpoint_{kind}") for kind in KINDS}
    made: list[Any] = []
    written: list[Any] = []
    called: list[Any] = []
    for sample in range(samples):
        phase = do(preprocess, given, sample)
        through = [phase]
        for task in (map_reads, mark_duplicates, recalibrate, call):
            phase = do(task, given, sample, phase)
            through.append(phase)
        for (kind, write), phase in zip(writers.items(), through, strict=True):
            written.append(do(write, str(file_of(folder, kind, sample)), phase))
        made += through
        called.append(phase)
    variants = do(call_jointly, given, called)
    answer = al.wait(variants).text
    spans = [al.wait(future).span for future in (*made, variants)]
    return Outcome(answer, spans + [al.wait(future) for future in written])
