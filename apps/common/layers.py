"""The storage layers that the applications are run on.

`disk` is the disk as it is. `hpc-node` is what a node of MareNostrum 4 has for so many cores: 48
of them share an SSD of 450 MB/s (Elshazly's thesis, section 4.5.1), emulated by the runtime.
"""

from __future__ import annotations

import json
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


def write_storage(layer: Layer, folder: Path, file: Path) -> None:
    """Write the storage description of one layer that holds `folder`."""
    lines = ["[[layer]]", f'name = "{layer.name}"', f"path = {json.dumps(str(folder))}"]
    if layer.limit is not None:
        lines += [f'bandwidth = "{layer.limit}B/s"', f'limit = "{layer.limit}B/s"']
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
