"""The storage layers that the applications are run on.

`disk` is the disk as it is. `hpc-node` is what a node of MareNostrum 4 has for so many cores: 48
of them share an SSD of 450 MB/s (Elshazly's thesis, section 4.5.1), emulated by the runtime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

NODE_CORES = 48
NODE_BANDWIDTH = 450_000_000
CORE_BANDWIDTH = NODE_BANDWIDTH / NODE_CORES

NAMES = ("disk", "hpc-node")


class Layer(NamedTuple):
    """Where checkpoints go: its name, what it is, and its emulated bandwidth in bytes/s."""

    name: str
    text: str
    limit: int | None


def layer_bandwidth(workers: int) -> int:
    """Return the storage bandwidth in bytes/s that an HPC node has for so many cores."""
    return round(CORE_BANDWIDTH * workers)


def layers_of(workers: int) -> dict[str, Layer]:
    """Return the layers for so many workers."""
    limit = layer_bandwidth(workers)
    share = f"{CORE_BANDWIDTH / 1e6:.3f} MB/s a core x {workers} workers"
    node = (
        f"{limit / 1e6:.2f} MB/s, emulated by the runtime's limiter: the SSD of a MareNostrum 4 "
        f"node, {NODE_BANDWIDTH / 1e6:.0f} MB/s / {NODE_CORES} cores = {share}"
    )
    return {
        "disk": Layer("disk", "the disk as it is", None),
        "hpc-node": Layer("hpc-node", node, limit),
    }


def write_storage(
    name: str,
    folder: Path,
    file: Path,
    bandwidth: int | None = None,
    limit: int | Mapping[int, int] | None = None,
) -> None:
    """Write the storage description of one layer that holds `folder`.

    Bandwidths in bytes/s; `limit` is emulated: a rate, or rates by how many write at once.
    """
    lines = ["[[layer]]", f"name = {json.dumps(name)}", f"path = {json.dumps(str(folder))}"]
    if bandwidth is not None:
        lines.append(f'bandwidth = "{bandwidth}B/s"')
    if isinstance(limit, int):
        lines.append(f'limit = "{limit}B/s"')
    elif limit is not None:
        points = (
            f'    {{ writers = {writers}, bandwidth = "{rate}B/s" }},'
            for writers, rate in limit.items()
        )
        lines += ["limit = [", *points, "]"]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
