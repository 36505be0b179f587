"""The program: every sequence file is aligned to two references, and both results are written.

                      ┌─> align_ref1 ──> write_res1      (PAF)
    read_sequences ───┤        └────────────────────┐
                      │        ┌────────────────────┼──> compare
                      └─> align_ref2 ──> write_res2      (SAM, three times as large)

It is the published program (Elshazly's thesis, section 5.5.2.2, figure 5.14), but that its aligner
reads the sequence file itself. Sequence files are read AHEAD samples before they are aligned.
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
from apps.common.spans import Span, Stopwatch, now_ns

from . import alignment, data

AHEAD = 6
"""How many samples may be read that are not yet aligned."""

SIZE_MARGIN = 1.05
"""Over the size of the first sample's results: what is asked for those of any sample."""

ENDS = ("res1.paf", "res2.sam")


class Sequences(NamedTuple):
    """A sequence file as it was read: bytes that processes share without copying."""

    content: npt.NDArray[np.uint8]
    span: Span


class Aligned(NamedTuple):
    """The text of a result, and how well the reads fit the reference."""

    content: npt.NDArray[np.uint8]
    summary: alignment.Summary
    span: Span


class Compared(NamedTuple):
    """By sample how well its reads fit each reference."""

    summaries: list[tuple[alignment.Summary, alignment.Summary]]
    span: Span


class Job(NamedTuple):
    """What is aligned, and in which detail it is written."""

    given: data.Input
    sequences: Path
    samples: int
    detail: str


def result(given: data.Input, reference: int, sample: int, content: bytes, detail: str) -> Result:
    """Align a sequence file to a reference (0 or 1); the text of the result, and its summary."""
    genome = given.genome(reference)
    found = alignment.align(genome, data.pairs_of(content))
    if reference == 0:
        text = alignment.paf(genome, found, detail)
    else:
        text = alignment.sam_text(genome, found, data.name_of(sample), detail)
    return Result(text.encode("ascii"), alignment.summary(genome, found))


class Result(NamedTuple):
    """What an alignment comes to."""

    content: bytes
    summary: alignment.Summary


def read_sequences(path: al.FileIn, before: Any) -> Sequences:
    """Read a sequence file, when `before` is there."""
    start_ns = now_ns()
    with al.open(path, "rb") as file:
        content = np.frombuffer(file.read(), np.uint8)
    return Sequences(content, Span("read", start_ns, now_ns(), bytes=len(content)))


def _align(job: Job, reference: int, sample: int, sequences: Sequences) -> Aligned:
    with Stopwatch(f"align_ref{reference + 1}") as watch:
        content = sequences.content.tobytes()
        made = result(job.given, reference, sample, content, job.detail)
    return Aligned(np.frombuffer(made.content, np.uint8), made.summary, watch.span)


@al.task
def align_ref1(job: Job, sample: int, sequences: Sequences) -> Aligned:
    """Align a sequence file to the first reference."""
    return _align(job, 0, sample, sequences)


@al.task
def align_ref2(job: Job, sample: int, sequences: Sequences) -> Aligned:
    """Align a sequence file to the second reference."""
    return _align(job, 1, sample, sequences)


def write_result(path: al.FileOut, aligned: Aligned) -> Span:
    """Write a result; it is durable when this returns."""

    def fill(file: IO[bytes]) -> None:
        file.write(aligned.content.data)

    return files.write(path, fill)


@al.task
def compare(first: Sequence[Aligned], second: Sequence[Aligned]) -> Compared:
    """Put the summaries of both references side by side."""
    with Stopwatch("compare") as watch:
        both = zip(first, second, strict=True)
        summaries = [(one.summary, other.summary) for one, other in both]
    return Compared(summaries, watch.span)


def file_of(folder: Path, reference: int, sample: int) -> Path:
    """Return where a result is."""
    return folder / f"{data.name_of(sample)}.{ENDS[reference]}"


def run(job: Job, sizes: tuple[int, int], checkpoints: Checkpoints, folder: Path) -> Outcome:
    """Run the program; the answer is the summaries. Under a session its calls are tasks.

    `sizes`: how many bytes the results have at most. Where there is a bandwidth to ask for, the
    smaller result asks for as much less as it is smaller.
    """
    do = checkpoints.call
    read = checkpoints.reader(read_sequences, "read_sequences")
    writes = [
        checkpoints.task(write_result, f"write_res{at + 1}", size, size / max(sizes))
        for at, size in enumerate(sizes)
    ]
    io: list[Any] = []
    aligned: tuple[list[Any], list[Any]] = ([], [])
    for sample in range(job.samples):
        before = aligned[1][sample - AHEAD] if sample >= AHEAD else None
        sequences = do(read, str(data.sequence_file(job.sequences, sample)), before)
        io.append((sequences, True))
        for reference, align in enumerate((align_ref1, align_ref2)):
            one = do(align, job, sample, sequences)
            aligned[reference].append(one)
            path = str(file_of(folder, reference, sample))
            io.append((do(writes[reference], path, one), False))
    compared = do(compare, *aligned)
    answer = al.wait(compared)
    spans = [al.wait(future).span for future in (*aligned[0], *aligned[1])]
    spans += [al.wait(future).span if is_read else al.wait(future) for future, is_read in io]
    return Outcome(answer.summaries, [*spans, answer.span])
