"""The application with one size, as `apps.common.command` and the benchmarks take it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from apps.common.checkpoints import Checkpoints
from apps.common.command import Outcome

from . import app, checkpoint, data, records, search
from .hits import first_difference, search_plainly, write_hits


def cut(what: str, weights: Sequence[int], parts: int) -> tuple[range, ...]:
    """Split one of the inputs; ValueError names the option if it cannot be."""
    try:
        return tuple(data.split(weights, parts))
    except ValueError as error:
        raise ValueError(f"--{what}-fragments {parts}: {error}") from error


class Hmmer:
    """Every `every`-th profile in all proteins, in so many fragments; checkpoints of one size."""

    name = "hmmer"

    def __init__(self, every: int, fragments: tuple[int, int], checkpoint_bytes: int = 0) -> None:
        self.input = data.find_input(every_hmm=every)
        sizes = [file.stat().st_size for file in self.input.hmm_files]
        self.hmm_parts = cut("hmm", sizes, fragments[0])
        self.sequence_parts = cut("sequence", self.input.residues, fragments[1])
        self.checkpoint_bytes = checkpoint_bytes

    @property
    def pairs(self) -> int:
        """How many pairs of fragments there are."""
        return len(self.hmm_parts) * len(self.sequence_parts)

    @cached_property
    def expected(self) -> list[records.Hit]:
        """The hits of one plain search."""
        return search_plainly(self.input, whole=True).hits or []

    def about(self) -> str:
        """Return what is computed and written."""
        parts = f"{len(self.hmm_parts)} x {len(self.sequence_parts)} fragments"
        return (
            f"{len(self.input.hmm_files)} profiles x {self.input.sequences} proteins in {parts}; "
            f"{self.pairs} checkpoints of "
            f"{self.checkpoint_bytes / 1e6:.2f} MB or more"
        )

    def job(self, checkpoints: Checkpoints, folder: Path) -> app.Job:
        """Return what a run is to do."""
        return app.Job(
            self.input,
            self.hmm_parts,
            self.sequence_parts,
            self.checkpoint_bytes,
            folder,
            checkpoints,
        )

    def run(self, checkpoints: Checkpoints, folder: Path) -> Outcome:
        """Run the program; the answer is all hits."""
        result = app.run(self.job(checkpoints, folder))
        return Outcome(result.hits, result.spans)

    def check(self, answer: Any, folder: Path) -> str:
        """Compare the hits with the plain search's, and those in the checkpoints with them."""
        job = self.job(Checkpoints(), folder)
        written: list[records.Hit] = []
        for s in range(len(self.sequence_parts)):
            for h in range(len(self.hmm_parts)):
                path = job.file_of(h, s)
                try:
                    written += checkpoint.read(path.read_bytes()).hits
                except checkpoint.CheckpointError as error:
                    return f"{path.name}: {error}"
        for found in (answer, search.conclude(written)):
            if difference := first_difference(self.expected, found):
                return difference
        return ""

    def finish(self, answer: Any, out: Path) -> list[Path]:
        """Write the hits as a table."""
        write_hits(answer, out / "hits.tsv")
        return [out / "hits.tsv"]
