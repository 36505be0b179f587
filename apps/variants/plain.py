"""The same pipeline without tasks, for the check: a loop over the samples."""

from __future__ import annotations

from typing import NamedTuple

from . import app, data, phases


class Result(NamedTuple):
    """By sample the files of its phases by kind, and the variants of all samples."""

    files: list[dict[str, bytes]]
    variants: str


def run(given: data.Input, samples: int) -> Result:
    """Take every sample through all phases, then call the variants."""
    files, found = [], []
    for sample in range(samples):
        fastq = phases.preprocess(given, sample)
        mapped = phases.map_reads(given, sample, fastq)
        marked = phases.mark_duplicates(given, sample, mapped)
        recalibrated = phases.recalibrate(given, sample, marked)
        called, evidence = phases.call(given, sample, recalibrated)
        texts = (fastq, mapped, marked, recalibrated, called)
        files.append({k: text.encode("ascii") for k, text in zip(app.KINDS, texts, strict=True)})
        found.append(evidence)
    return Result(files, phases.call_jointly(given, found))


def sizes(given: data.Input) -> dict[str, int]:
    """Return by kind how many bytes a checkpoint of the first sample has: the others have alike."""
    return {kind: len(content) for kind, content in run(given, 1).files[0].items()}
