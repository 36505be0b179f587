"""The applications at the size of this benchmark, the layers, and the ways to run checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from apps.common.checkpoints import Checkpoints
from apps.common.command import Application
from apps.common.layers import write_storage
from apps.grayscott.app import Shape as GrayScottShape
from apps.grayscott.run import GrayScott
from apps.hmmer.application import Hmmer
from apps.kmeans.app import Shape as KMeansShape
from apps.kmeans.run import KMeans
from apps.variants.run import Variants

IO_EXECUTORS = 16

CURVE = ((1, 0.45), (2, 0.75), (4, 1.0), (8, 0.7), (16, 0.35))
"""Of the best bandwidth, by writers at once.

The shape of the published runs (Elshazly, thesis, section 4.5): one writer is far from what a disk
can do, some at once reach it, and with all of them it falls so far that hiding the I/O does not
make up for it. The figures of the thesis were not at hand; these are chosen, and stated.
"""

STATIC_AT_ONCE = (1, 2, 4, 8, 16)

LAYERS = ("congested", "flat", "disk")


def _grayscott(quick: bool) -> Application:
    if quick:
        return GrayScott(GrayScottShape(steps=96))
    return GrayScott(GrayScottShape(slabs=8, steps=2400, every=12))


def _kmeans(iterations: int) -> Callable[[bool], Application]:
    def make(quick: bool) -> Application:
        if quick:
            return KMeans(KMeansShape(fragments=12, iterations=iterations))
        return KMeans(KMeansShape(500, points=4000, iterations=iterations))

    return make


def _hmmer(quick: bool) -> Application:
    return Hmmer(8, (6, 4), 500_000) if quick else Hmmer(1, (48, 32), 125_000)


def _variants(quick: bool) -> Application:
    return Variants(24) if quick else Variants(960, 0.15)


APPLICATIONS: dict[str, Callable[[bool], Application]] = {
    "hmmer": _hmmer,
    "kmeans1": _kmeans(1),
    "kmeans3": _kmeans(3),
    "kmeans6": _kmeans(6),
    "grayscott": _grayscott,
    "variants": _variants,
}


@dataclass(frozen=True)
class Contender:
    """A way to run the checkpoints."""

    name: str
    checkpoints: Checkpoints
    at_once: int | None = None
    """For a static constraint: how many it lets run at once."""


def contenders(best: int) -> list[Contender]:
    """All ways, for a layer whose best bandwidth is `best` bytes a second."""
    fixed = [
        Contender(f"static_{at_once}", Checkpoints(bandwidth=best / at_once), at_once)
        for at_once in STATIC_AT_ONCE
    ]
    bounds = f"auto({best / IO_EXECUTORS:.0f},{best},2)"
    return [
        Contender("baseline", Checkpoints(as_io=False)),
        Contender("unconstrained", Checkpoints()),
        *fixed,
        Contender("auto", Checkpoints(bandwidth="auto")),
        Contender("bounded", Checkpoints(bandwidth=bounds)),
        Contender("adaptive", Checkpoints(bandwidth="adaptive")),
    ]


def describe(layer: str, best: int, folder: Path, file: Path) -> str:
    """Write the description of a layer at `folder`; the layer in words."""
    words = f"{best / 1e6:.1f} MB/s"
    limit: int | dict[int, int] | None = None
    if layer == "congested":
        limit = {writers: round(best * share) for writers, share in CURVE}
        shares = ", ".join(f"{share:.0%} for {writers}" for writers, share in CURVE)
        words += f" at best, by the software throttle: {shares} writers at once"
    elif layer == "flat":
        limit = best
        words += " for any number of writers, by the software throttle"
    else:
        words = "the disk as it is"
    write_storage(layer, folder, file, best, limit)
    return words
