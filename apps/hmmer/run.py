"""The command: runs the program in each mode on each layer, checks the hits, prints the table."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import alongside as al
from apps.common import layers, report
from apps.common.command import timed

from . import app, balance, data, records, search
from .options import parse
from .progress import Progress

SAMPLE_EVERY = 12  # profiles, to estimate how long a pair computes


class Reference(NamedTuple):
    """The plain search: its hits and seconds of processor time; or these, estimated, alone."""

    hits: list[records.Hit] | None
    seconds: float


def clear(folder: Path) -> None:
    """Remove the checkpoints in a folder, and the folder if nothing else is in it."""
    if folder.is_dir():
        for file in folder.glob("*.checkpoint"):
            file.unlink()
        if not any(folder.iterdir()):
            folder.rmdir()


def search_plainly(given: data.Input, whole: bool) -> Reference:
    """Search everything plainly, or a sample of the profiles to estimate the time it takes."""
    files = given.hmm_files if whole else given.hmm_files[::SAMPLE_EVERY]
    hmms, sequences = data.read_hmms(files), data.read_sequences(given.sequence_file)
    start = time.process_time()
    hits = search.plain_search(hmms, sequences)
    seconds = time.process_time() - start
    if whole:
        return Reference(hits, seconds)
    share = sum(f.stat().st_size for f in files) / sum(f.stat().st_size for f in given.hmm_files)
    return Reference(None, seconds / share)


def first_difference(expected: list[records.Hit], found: list[records.Hit]) -> str:
    """Return where two lists of hits differ first, or an empty text."""
    for a, b in zip(expected, found, strict=False):
        for name, x, y in zip(a._fields, a, b, strict=True):
            if x != y:
                return f"{a.query_name} in {a.target}: {name} is {y!r}, expected {x!r}"
    if len(expected) != len(found):
        return f"{len(found)} hits, expected {len(expected)}"
    return ""


def write_hits(hits: Sequence[records.Hit], file: Path) -> None:
    """Write the gathered hits as a table, one line a hit."""
    lines = ["query\ttarget\tE-value\tscore\tbias\tdomains\tdescription"]
    for h in hits:
        domains = sum(d.reported for d in h.domains)
        lines.append(
            f"{h.query_name}\t{h.target}\t{h.evalue:.3g}\t{h.score:.1f}\t{h.bias:.1f}"
            f"\t{domains}\t{h.description}"
        )
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def cut(what: str, weights: Sequence[int], parts: int) -> tuple[range, ...]:
    """Split one of the inputs; ValueError names the option if it cannot be."""
    try:
        return tuple(data.split(weights, parts))
    except ValueError as error:
        raise ValueError(f"--{what}-fragments {parts}: {error}") from error


class Runs:
    """All runs of one command."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.input = data.find_input(every_hmm=8 if options.quick else 1)
        sizes = [file.stat().st_size for file in self.input.hmm_files]
        self.hmm_parts = cut("hmm", sizes, options.hmm_fragments)
        self.sequence_parts = cut("sequence", self.input.residues, options.sequence_fragments)
        self.pairs = len(self.hmm_parts) * len(self.sequence_parts)
        self.rows: list[report.Row] = []
        self.timelines: list[Path] = []
        self.differences = 0
        self.checkpoint_size = 0
        self.reference = Reference(None, 0.0)

    def prepare(self) -> None:
        """Search plainly if that is needed, settle the checkpoint size, and say what will run."""
        options = self.options
        print(
            f"{len(self.input.hmm_files)} profile HMMs ({data.HMM_WHEEL}) x "
            f"{self.input.sequences} proteins ({self.input.sequence_file.name}), "
            f"{len(self.hmm_parts)} x {len(self.sequence_parts)} fragments = {self.pairs} pairs, "
            f"{options.workers} workers"
        )
        published = options.checkpoint_size == "published"
        if options.check or published:
            self.reference = search_plainly(self.input, whole=options.check)
        if options.check and self.reference.hits is not None:
            print(
                f"plain sequential pyhmmer.hmmsearch: {len(self.reference.hits)} hits in "
                f"{self.reference.seconds:.2f} s of processor time"
            )
        if published:
            pair_s = self.reference.seconds / self.pairs
            self.checkpoint_size = balance.checkpoint_bytes(pair_s)
            print(balance.explain())
            print(
                f"  Here a pair computes {pair_s:.3f} s "
                f"({'measured' if options.check else 'estimated from a sample'}), so its "
                f"checkpoint has {self.checkpoint_size / 1e6:.2f} MB."
            )
        elif options.checkpoint_size != "natural":
            self.checkpoint_size = options.checkpoint_size
        sys.stdout.flush()

    def one(self, layer: layers.Layer, mode: str) -> None:
        """Run the program in one mode on one layer."""
        options = self.options
        folder = options.out / "checkpoints" / f"{layer.name}-{mode}"
        if not options.resume:
            clear(folder)
        folder.mkdir(parents=True, exist_ok=True)
        storage = options.out / f"storage-{layer.name}.toml"
        layers.write_storage(layer, options.out / "checkpoints", storage)
        trace = None
        if options.trace and mode != "sequential":
            trace = options.trace / f"{layer.name}-{mode}.json"
            trace.parent.mkdir(parents=True, exist_ok=True)
        with Progress(f"{layer.name}, {mode}", self.pairs, options.verbose) as progress:
            job = app.Job(
                self.input,
                self.hmm_parts,
                self.sequence_parts,
                self.checkpoint_size,
                folder,
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
            text += f", {result.restored} of {self.pairs} pairs from whole checkpoints"
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
    except (data.DataMissingError, ValueError) as error:
        print(f"hmmer: {error}", file=sys.stderr)
        return 2
    runs.prepare()
    known = layers.layers_of(options.workers)
    for name in options.layers:
        for mode in options.modes:
            runs.one(known[name], mode)
    runs.conclusion()
    return 1 if runs.differences else 0
