"""The same program without tasks, for the check: a loop over the sequence files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from . import alignment, app, data


class Sample(NamedTuple):
    """The files of both references, and how well the reads fit them."""

    files: tuple[bytes, bytes]
    summaries: tuple[alignment.Summary, alignment.Summary]


def one(job: app.Job, sample: int) -> Sample:
    """Align a sequence file to both references."""
    content = data.sequence_file(job.sequences, sample).read_bytes()
    first, second = (app.result(job.given, at, sample, content, job.detail) for at in (0, 1))
    return Sample((first.content, second.content), (first.summary, second.summary))


def run(job: app.Job) -> Iterator[Sample]:
    """Align every sequence file to both references, one after the other."""
    for sample in range(job.samples):
        yield one(job, sample)
