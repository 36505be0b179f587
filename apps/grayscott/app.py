"""The program: slabs of the cube advance side by side; every few steps each is checkpointed.

first_slab ─> advance ─> advance ─> ...        each with the edges of its two neighbours
└──> checkpoint_slab          (writes and fsyncs a file)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import alongside as al
from apps.common import arrays
from apps.common.checkpoints import Checkpoints
from apps.common.command import Outcome
from apps.common.spans import Span, Stopwatch

from . import model


@dataclass(frozen=True)
class Shape:
    """The side of the cube, how it is cut, and how long it is followed."""

    side: int = 96
    slabs: int = 4
    steps: int = 480
    every: int = 16  # steps between checkpoints: an advance does so many

    def __post_init__(self) -> None:
        """Refuse a cut that does not work."""
        if self.side % self.slabs or self.planes < self.every:
            raise ValueError(
                f"{self.side} planes in {self.slabs} slabs: a slab needs as many planes as the "
                f"others, and at least {self.every} (the steps between checkpoints)"
            )
        if self.steps % self.every:
            raise ValueError(f"{self.steps} steps are no multiple of {self.every}")

    @property
    def planes(self) -> int:
        """Planes of a slab."""
        return self.side // self.slabs

    @property
    def rounds(self) -> int:
        """How often every slab is advanced and checkpointed."""
        return self.steps // self.every


class Slab(NamedTuple):
    """Some planes of the cube: all of them, and those at its ends, which its neighbours need."""

    state: model.State
    first: model.State
    last: model.State
    span: Span


def _slab(state: model.State, edge: int, span: Span) -> Slab:
    first, last = (
        model.State(*(np.ascontiguousarray(field[part]) for field in state))
        for part in (np.s_[:edge], np.s_[-edge:])
    )
    return Slab(state, first, last, span)


@al.task
def first_slab(shape: Shape, number: int) -> Slab:
    """Return a slab at the beginning."""
    with Stopwatch("first") as watch:
        planes = np.s_[number * shape.planes : (number + 1) * shape.planes]
        state = model.State(*(field[planes].copy() for field in model.first_state(shape.side)))
    return _slab(state, shape.every, watch.span)


@al.task
def advance(below: Slab, slab: Slab, above: Slab, steps: int) -> Slab:
    """Return a slab so many steps later."""
    with Stopwatch("advance") as watch:
        parts = zip(below.last, slab.state, above.first, strict=True)
        state = model.advance(model.State(*map(np.concatenate, parts)), steps)
    return _slab(state, steps, watch.span)


def checkpoint_slab(path: al.FileOut, slab: Slab) -> Span:
    """Write the checkpoint of a slab; it is durable when this returns."""
    return arrays.write(path, slab.state)


def file_of(folder: Path, step: int, slab: int) -> Path:
    """Return where a checkpoint is."""
    return folder / f"step-{step:05}-slab-{slab:02}.npys"


def run(shape: Shape, checkpoints: Checkpoints, folder: Path) -> Outcome:
    """Run the program; the answer is the cube at the end. Under a session its calls are tasks."""
    call = checkpoints.call
    write = checkpoints.task(checkpoint_slab, "checkpoint_slab")
    slabs = [call(first_slab, shape, number) for number in range(shape.slabs)]
    made: list[Any] = list(slabs)
    written: list[Any] = []
    for round_ in range(1, shape.rounds + 1):
        around = zip(slabs[-1:] + slabs[:-1], slabs, slabs[1:] + slabs[:1], strict=True)
        slabs = [call(advance, *three, shape.every) for three in around]
        made += slabs
        for number, slab in enumerate(slabs):
            path = file_of(folder, round_ * shape.every, number)
            written.append(call(write, str(path), slab))
    last = [al.wait(slab).state for slab in slabs]
    answer = model.State(*(np.concatenate(fields) for fields in zip(*last, strict=True)))
    spans = [al.wait(future).span for future in made] + [al.wait(future) for future in written]
    return Outcome(answer, spans)
