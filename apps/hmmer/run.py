"""The command: runs the program in each mode on each layer, checks the hits, prints the table."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import alongside as al
from apps.common import layers, report, wheels
from apps.common.command import prepared, timed

from . import app, balance, data
from .application import Hmmer
from .hits import Reference, first_difference, search_plainly, write_hits
from .options import parse
from .progress import Progress


def clear(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder if nothing else is in it."""
    if folder.is_dir():
        for file in folder.glob("*.checkpoint"):
            file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


class Runs:
    """All runs of one command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        fragments = (options.hmm_fragments, options.sequence_fragments)
        self.hmmer = Hmmer(8 if options.quick else 1, fragments)
        self.rows: list[report.Row] = []
        self.timelines: list[Path] = []
        self.differences = 0
        self.reference = Reference(None, 0.0)

    def prepare(self) -> None:
        """Search plainly if that is needed, settle the checkpoint size, and say what will run."""
        options = self.options
        print(
            f"{len(self.hmmer.input.hmm_files)} profile HMMs ({data.HMM_WHEEL}) x "
            f"{self.hmmer.input.sequences} proteins ({self.hmmer.input.sequence_file.name}), "
            f"{len(self.hmmer.hmm_parts)} x {len(self.hmmer.sequence_parts)} fragments = "
            f"{self.hmmer.pairs} pairs, {options.workers} workers"
        )
        published = options.checkpoint_size == "published"
        if options.check or published:
            self.reference = search_plainly(self.hmmer.input, whole=options.check)
        if options.check and self.reference.hits is not None:
            print(
                f"plain sequential pyhmmer.hmmsearch: {len(self.reference.hits)} hits in "
                f"{self.reference.seconds:.2f} s of processor time"
            )
        if published:
            pair_s = self.reference.seconds / self.hmmer.pairs
            self.hmmer.checkpoint_bytes = balance.checkpoint_bytes(pair_s)
            print(balance.explain())
            print(
                f"  Here a pair computes {pair_s:.3f} s "
                f"({'measured' if options.check else 'estimated from a sample'}), so its "
                f"checkpoint has {self.hmmer.checkpoint_bytes / 1e6:.2f} MB."
            )
        elif options.checkpoint_size != "natural":
            self.hmmer.checkpoint_bytes = options.checkpoint_size
        sys.stdout.flush()

    def one(self, layer: layers.Layer, mode: str) -> None:
        """Run the program in one mode on one layer."""
        options = self.options
        folder = options.out / "checkpoints" / f"{layer.name}-{mode}"
        if not options.resume:
            clear(folder)
        folder.mkdir(parents=True, exist_ok=True)
        storage, trace = prepared(options, layer, mode)
        with Progress(f"{layer.name}, {mode}", self.hmmer.pairs, options.verbose) as progress:
            job = replace(
                self.hmmer.job(app.AS_IO, folder),
                resume=options.resume,
                searched=progress.searched,
                durable=progress.durable,
            )
            result, total_s = timed(
                mode,
                layer.limit is not None,
                lambda checkpoints: app.run(replace(job, checkpoints=checkpoints)),
                replace(app.AS_IO, bandwidth=options.bandwidth or app.AS_IO.bandwidth),
                lambda: al.Session(options.workers, storage=storage, trace=trace),
            )
        processors = 1 if mode == "sequential" else options.workers
        self.rows.append(report.row(layer.name, mode, total_s, result.spans, processors))
        self.conclude(layer, mode, result)
        if trace:
            self.timelines.append(trace)
        if not options.keep:
            clear(folder)

    def conclude(self, layer: layers.Layer, mode: str, result: app.Result) -> None:
        """Say what a run did, write its hits, and compare them with the plain search's."""
        row = self.rows[-1]
        text = f"{layer.name}, {mode}: {row.total_s:.2f} s, {len(result.hits)} hits"
        if self.options.resume:
            text += f", {result.restored} of {self.hmmer.pairs} pairs from whole checkpoints"
            text += "".join(f"\n  refused {name}: {why}" for name, why in result.refused.items())
        if self.reference.hits is not None:
            difference = first_difference(self.reference.hits, result.hits)
            self.differences += bool(difference)
            text += f": NOT those of the plain run: {difference}" if difference else ", all equal"
        print(text, flush=True)
        write_hits(result.hits, self.options.out / "hits.tsv")

    def conclusion(self) -> None:
        """Print the table and what belongs to it."""
        known = layers.layers_of(self.options.workers)
        print()
        print(report.table(self.rows))
        print()
        print(report.LEGEND)
        for name in dict.fromkeys(row.layer for row in self.rows):
            print(f"layer {name}: {known[name].text}")
        print(balance.used(self.rows))
        for line in report.disturbed(self.rows) or report.gains(self.rows):
            print(line)
        if self.options.check:
            equal = len(self.rows) - self.differences
            print(
                f"check: hits of {equal} of {len(self.rows)} runs equal the plain run's "
                f"in every field"
            )
        print(f"hits: {self.options.out / 'hits.tsv'}")
        for path in self.timelines:
            print(f"timeline: {path} (open in https://ui.perfetto.dev)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, 1 if hits differ, 2 if it cannot run."""
    options = parse(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    try:
        runs = Runs(options)
    except (wheels.DataMissingError, ValueError) as error:
        print(f"hmmer: {error}", file=sys.stderr)
        return 2
    runs.prepare()
    known = layers.layers_of(options.workers)
    for name in options.layers:
        for mode in options.modes:
            runs.one(known[name], mode)
    runs.conclusion()
    return 1 if runs.differences else 0
