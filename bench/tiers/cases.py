"""The applications at the size of this benchmark, the layers, and the ways to use these."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alongside as al
from apps.align.run import Align
from apps.common.checkpoints import Checkpoints
from apps.common.command import Application
from apps.hmmer.application import Hmmer
from bench.common.slow_disk import SlowDisk

IO_EXECUTORS = 16
POLICIES = ("fcfs", "priority", "backfilling")

PUBLISHED_MBS = {"memory": 6026, "disk": 2743, "slow": 900}
"""NVRAM, SSD and parallel file system of the published runs (Elshazly, thesis, table 5.1)."""

ASKED_MBS = {"align": 800, "hmmer": 400}
"""What the largest files asked for there: as many MB/s as they had MB."""


def _align(quick: bool, inputs: Path) -> Application:
    return Align(8 if quick else 64, 2400, "full", inputs)


def _hmmer(quick: bool, inputs: Path) -> Application:
    return Hmmer(8, (6, 4), 500_000) if quick else Hmmer(1, (16, 12), 1_000_000)


APPLICATIONS: dict[str, Callable[[bool, Path], Application]] = {"align": _align, "hmmer": _hmmer}
"""By name what makes them; their input, if it is made, goes to the folder."""


@dataclass(frozen=True)
class Layer:
    """A layer of a storage description; bandwidths in bytes a second, the capacity in bytes."""

    name: str
    folder: Path
    bandwidth: int
    capacity: int | None = None
    limit: int | None = None
    scope: str = "node"

    def text(self) -> str:
        """The layer as the description has it."""
        lines = [
            "[[layer]]",
            f'name = "{self.name}"',
            f"path = {json.dumps(str(self.folder))}",
            f'bandwidth = "{self.bandwidth}B/s"',
            f'scope = "{self.scope}"',
        ]
        if self.capacity is not None:
            lines.append(f'capacity = "{self.capacity}B"')
        if self.limit is not None:
            lines.append(f'limit = "{self.limit}B/s"')
        return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Tiers:
    """All layers, fastest first."""

    memory: Layer
    disk: Layer
    slow: Layer

    @property
    def layers(self) -> tuple[Layer, ...]:
        """All of them."""
        return self.memory, self.disk, self.slow


def tiers(folders: tuple[Path, Path], slow: SlowDisk, written: int, shares: tuple[float, float]
          ) -> Tiers:  # fmt: skip
    """The layers for a program that writes so many bytes.

    `folders`: in memory and on the disk; `shares`: how much of what is written fits there. Their
    bandwidths are to that of the slow layer as in the published runs; the disk, which is faster,
    is slowed down to it by the runtime's throttle.
    """

    def bandwidth(name: str) -> int:
        return round(slow.bandwidth * PUBLISHED_MBS[name] / PUBLISHED_MBS["slow"])

    room = [round(written * share) for share in shares]
    memory, disk = bandwidth("memory"), bandwidth("disk")
    return Tiers(
        Layer("memory", folders[0], memory, room[0]),
        Layer("disk", folders[1], disk, room[1], disk),
        Layer("slow", slow.folder, slow.bandwidth, None, slow.limit, "shared"),
    )


def write(layers: Iterable[Layer], file: Path) -> Path:
    """Write a storage description."""
    file.write_text("\n".join(layer.text() for layer in layers), encoding="utf-8")
    return file


def describe(made: Tiers, slow: SlowDisk) -> list[str]:
    """The layers in words."""

    def text(layer: Layer) -> str:
        room = (layer.capacity or 0) / 1e6
        return f"{layer.name}, room for {room:.1f} MB, granted as {layer.bandwidth / 1e6:.1f} MB/s"

    return [
        f"{text(made.memory)}: tmpfs as it is",
        f"{text(made.disk)}: the disk, slowed down to it by the runtime's software throttle",
        f"slow: {slow.words}",
    ]


def checkpoints(application: Application, slow: SlowDisk) -> Checkpoints:
    """What the application's I/O tasks ask for, in the published proportion to the slow layer."""
    share = ASKED_MBS[application.name] / PUBLISHED_MBS["slow"]
    return Checkpoints(bandwidth=slow.bandwidth * share)


@dataclass(frozen=True)
class Way:
    """A way to use the layers; without a policy: the slow layer alone."""

    name: str
    policy: str | None = None
    flush: bool = False
    prefetch: bool = False

    @property
    def words(self) -> str:
        """What the way is, for people."""
        if self.policy is None:
            return "slow layer alone"
        return " + ".join([self.policy, *["flush"] * self.flush, *["prefetch"] * self.prefetch])

    def session(
        self, workers: int, all_layers: Path, slow_alone: Path, trace: Path | None = None
    ) -> al.Session:
        """The session; TypeError or ConstraintError if this version has none of the kind."""
        extra: dict[str, Any] = {"trace": trace}
        if self.policy is None:
            return al.Session(workers, IO_EXECUTORS, slow_alone, **extra)
        if self.flush:
            extra["flush"] = True
        if self.prefetch:
            extra["prefetch"] = True
        return al.Session(workers, IO_EXECUTORS, all_layers, self.policy, **extra)


BASELINE = Way("baseline")


def policies(names: Sequence[str] = POLICIES) -> list[Way]:
    """A way a policy."""
    return [Way(name, name) for name in names]


def moving(best: Way) -> list[Way]:
    """The best policy with flush, and with prefetch as well."""
    return [
        Way("flush", best.policy, flush=True),
        Way("prefetch", best.policy, flush=True, prefetch=True),
    ]
