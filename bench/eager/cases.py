"""What is measured: overheads (tasks that do nothing), and applications with growing input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

OURS = "eager"
LAZY = "lazy"
STREAM = "stream"
RAY = "ray"

MILLION = 1_000_000
VALUES = 200
"""How many values a producer gives whose values are large."""
INTEGERS = 100
"""How many integers each of several producers gives."""


RELEASED = (1, 5_000, 100_000)
"""Of how many integers the lists are of which a task releases some, to see what that takes it."""


@dataclass(frozen=True)
class Overhead:
    """Producers at once, each of which gives so many values of so many integers."""

    name: str
    producers: int
    returns: int
    integers: int = 1

    @property
    def words(self) -> str:
        """What it is, for people."""
        if self.integers > 1:
            return f"{self.returns} lists of {self.integers:,} integers"
        if self.name.startswith("producers"):
            return f"{self.producers} producers of {self.returns} integers"
        return f"{self.returns:,} integers"


@dataclass(frozen=True)
class Work:
    """An application, how much of its input it takes, and the layer that this is on."""

    application: str
    size: int
    layer: str
    is_largest: bool

    @property
    def name(self) -> str:
        """The name of its row."""
        parts = [self.application]
        parts += [] if self.layer == "hpc-node" else [self.layer]
        parts += [] if self.is_largest else [str(self.size)]
        return "_".join(parts)


def overheads(*, quick: bool) -> list[Overhead]:
    """Return the overheads: the published three series, or a few small ones."""
    counts = (10, 100, 1000, 10_000)
    integers = (5_000, 20_000) if quick else tuple(MILLION * n for n in range(1, 6))
    return [
        *(Overhead(f"returns_{count}", 1, count) for count in counts),
        *(Overhead(f"integers_{short(count)}", 1, VALUES, count) for count in integers),
        *(Overhead(f"producers_{count}", count, INTEGERS) for count in (1, 2, 4, 8)),
    ]


def short(count: int) -> str:
    """Return a number of integers as a row's name has it: 1, 20k, 5M."""
    if count < 1000:
        return str(count)
    return f"{count // MILLION}M" if count >= MILLION else f"{count // 1000}k"


def works(sizes: Mapping[str, Sequence[int]], layers: Sequence[str]) -> list[Work]:
    """Return the applications, each size on the first layer, the largest on the others too."""
    return [
        Work(name, size, layer, size == max(all_sizes))
        for name, all_sizes in sizes.items()
        for layer in layers
        for size in all_sizes
        if layer == layers[0] or size == max(all_sizes)
    ]
