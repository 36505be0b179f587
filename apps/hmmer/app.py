"""The program: split, search every pair, checkpoint every pair, gather.

One source for every mode. Without a session the decorated functions simply run; under a session
the same calls become tasks.
The names of the tasks are those of the published application.

    split ─> hmmpfam ──> checkpoint_frag        (writes and fsyncs a file a pair)
                  └────> gather_db ──> gather_seq
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import alongside as al
from apps.common.checkpoints import Checkpoints
from apps.common.layers import CORE_BANDWIDTH
from apps.common.spans import Span, Stopwatch, now_ns

from . import checkpoint, data, records, search
from .data import Fragment


class Found(NamedTuple):
    """The hits of a pair or of several, as packed records, and when they were made."""

    hits: bytes
    span: Span


class Restored(NamedTuple):
    """What came of reading a checkpoint: the hits of the pair, or why it was refused."""

    found: Found | None
    refusal: str
    span: Span


@al.task
def split_hmms(first: int, paths: tuple[Path, ...]) -> Fragment:
    """Digitise a fragment of the profile library."""
    return data.digitise_hmms(first, paths)


@al.task
def split_sequences(path: Path, first: int, end: int) -> Fragment:
    """Digitise a fragment of the sequence file."""
    return data.digitise_sequences(path, range(first, end))


@al.task
def hmmpfam(hmms: Fragment, sequences: Fragment, database_size: float) -> Found:
    """Search a fragment of the profiles in a fragment of the sequences."""
    with Stopwatch("search") as watch:
        packed = records.pack(search.search_pair(hmms, sequences, database_size))
    return Found(packed, watch.span)


def write_checkpoint(
    path: al.FileOut,
    pair: checkpoint.Pair,
    found: Found,
    hmms: Fragment,
    sequences: Fragment,
    size: int,
) -> Span:
    """Write the checkpoint of a pair; it is durable when this returns."""
    start_ns = now_ns()
    with al.open(path, "wb") as file:
        written = checkpoint.write(file, pair, found.hits, hmms, sequences, size)
        al.fsync(file)
    return Span("checkpoint", start_ns, now_ns(), bytes=written)


AS_IO = Checkpoints(bandwidth=CORE_BANDWIDTH)
"""Asks for a core's share of a node's storage: a layer runs as many at once as it has shares."""


@al.io
def restore_frag(
    path: al.FileIn, pair: checkpoint.Pair, hmms: Fragment, sequences: Fragment
) -> Restored:
    """Take the hits of a pair from its checkpoint, if that is whole and of this input."""
    start_ns = now_ns()
    with al.open(path, "rb") as file:
        content = file.read()
    try:
        hits = records.pack(checkpoint.read_for(content, pair, hmms, sequences))
        span = Span("restore", start_ns, now_ns())
        return Restored(Found(hits, span), "", span)
    except checkpoint.CheckpointError as error:
        return Restored(None, str(error), Span("restore", start_ns, now_ns()))


def _gather(parts: list[Found], conclude: bool) -> Found:
    start_ns = now_ns()
    hits = [hit for part in parts for hit in records.unpack(records.Hit, part.hits)[0]]
    packed = records.pack(search.conclude(hits) if conclude else search.in_order(hits))
    return Found(packed, Span("gather", start_ns, now_ns()))


@al.task
def gather_db(parts: list[Found]) -> Found:
    """Gather the hits of one sequence fragment in all profile fragments."""
    return _gather(parts, conclude=False)


@al.task
def gather_seq(parts: list[Found]) -> Found:
    """Gather the hits of all sequence fragments, and settle what depends on all of them."""
    return _gather(parts, conclude=True)


@dataclass(frozen=True)
class Job:
    """What to search, how it is cut, and what happens to the checkpoints."""

    input: data.Input
    hmm_parts: tuple[range, ...]
    sequence_parts: tuple[range, ...]
    checkpoint_size: int
    folder: Path
    checkpoints: Checkpoints = AS_IO
    resume: bool = False
    searched: Callable[[str], None] = field(default=lambda name: None)
    durable: Callable[[str], None] = field(default=lambda name: None)

    @property
    def pairs(self) -> int:
        """How many pairs of fragments there are."""
        return len(self.hmm_parts) * len(self.sequence_parts)

    def file_of(self, hmm_index: int, sequence_index: int) -> Path:
        """Return where the checkpoint of a pair is."""
        return self.folder / f"hmm-{hmm_index:02}-sequence-{sequence_index:02}.checkpoint"


@dataclass
class Result:
    """What a run of the program found, and what it did."""

    hits: list[records.Hit]
    spans: list[Span]
    restored: int = 0
    refused: dict[str, str] = field(default_factory=dict)


class _Program:
    """One run: the values are futures under a session and plain values without one."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.call = job.checkpoints.call
        self.hmms: dict[int, Any] = {}
        self.sequences: dict[int, Any] = {}
        self.result = Result([], [])

    def fragments(self, hmm_index: int, sequence_index: int) -> tuple[Any, Any]:
        """Return both fragments of a pair; each is made when it is first asked for."""
        job = self.job
        if hmm_index not in self.hmms:
            part = job.hmm_parts[hmm_index]
            paths = job.input.hmm_files[part.start : part.stop]
            self.hmms[hmm_index] = self.call(split_hmms, part.start, paths)
        if sequence_index not in self.sequences:
            part = job.sequence_parts[sequence_index]
            file = job.input.sequence_file
            made = self.call(split_sequences, file, part.start, part.stop)
            self.sequences[sequence_index] = made
        return self.hmms[hmm_index], self.sequences[sequence_index]

    def pair(self, hmm_index: int, sequence_index: int) -> checkpoint.Pair:
        """Return the pair's name as its checkpoint knows it."""
        return checkpoint.Pair(hmm_index, sequence_index, self.job.input.database_size)

    def restore(self) -> dict[tuple[int, int], Found]:
        """Read every checkpoint that is there; return the hits of those that are whole."""
        reading: dict[tuple[int, int], Any] = {}
        for s in range(len(self.job.sequence_parts)):
            for h in range(len(self.job.hmm_parts)):
                path = self.job.file_of(h, s)
                if path.exists():
                    pair = (self.pair(h, s), *self.fragments(h, s))
                    reading[h, s] = self.call(restore_frag, str(path), *pair)
        whole: dict[tuple[int, int], Found] = {}
        for key, future in reading.items():
            restored: Restored = al.wait(future)
            self.result.spans.append(restored.span)
            if restored.found is None:
                self.result.refused[self.job.file_of(*key).name] = restored.refusal
            else:
                whole[key] = restored.found
        self.result.restored = len(whole)
        return whole

    def run(self) -> Result:
        """Submit everything, and wait for all of it."""
        job = self.job
        asked = job.checkpoint_size or None
        write = job.checkpoints.task(write_checkpoint, "checkpoint_frag", asked)
        whole = self.restore() if job.resume else {}
        searched: list[Any] = []
        written: list[Any] = []
        rows: list[Any] = []
        for s in range(len(job.sequence_parts)):
            row: list[Any] = []
            for h in range(len(job.hmm_parts)):
                path = job.file_of(h, s)
                found: Any = whole.get((h, s))
                if found is None:
                    hmms, sequences = self.fragments(h, s)
                    found = self.call(hmmpfam, hmms, sequences, job.input.database_size)
                    searched.append(_watch(found, job.searched, path.name))
                    pair = self.pair(h, s)
                    size = job.checkpoint_size
                    saved = self.call(write, str(path), pair, found, hmms, sequences, size)
                    written.append(_watch(saved, job.durable, path.name))
                row.append(found)
            rows.append(self.call(gather_db, row))
        gathered = self.call(gather_seq, rows)
        everything: Found = al.wait(gathered)
        self.result.hits = records.unpack(records.Hit, everything.hits)[0]
        split = [*self.hmms.values(), *self.sequences.values()]
        for future in (*split, *searched, *rows, gathered):
            self.result.spans.append(al.wait(future).span)
        self.result.spans += [al.wait(future) for future in written]
        return self.result


def _watch(value: Any, tell: Callable[[str], None], name: str) -> Any:
    """Have `tell` called with `name` when the value is there: now, if it is no future."""
    if hasattr(value, "add_done_callback"):
        value.add_done_callback(lambda future: None if future.exception() else tell(name))
    else:
        tell(name)
    return value


def run(job: Job) -> Result:
    """Run the program; under a session its calls are tasks, without one they simply run."""
    return _Program(job).run()
