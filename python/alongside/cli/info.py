"""`alongside info`: what this machine offers."""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
from typing import Any

from alongside import _native, units

LOCAL_TYPES = {"ext2", "ext3", "ext4", "xfs", "btrfs", "zfs", "f2fs", "tmpfs"}
SHARED_TYPES = {"nfs", "nfs4", "lustre", "beegfs", "gpfs", "ceph", "cifs", "9p", "fuse.glusterfs"}


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser("info", help="tell what this machine offers")
    parser.add_argument("--storage", metavar="FILE", help="TOML description of the storage layers")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Prints it."""
    from alongside import __version__

    machine = _native.machine()
    print(f"alongside    {__version__}, Python {platform.python_version()}")
    print(f"system       {platform.system()} {platform.release()} ({platform.machine()})")
    print(f"processors   {machine.processors}")
    print(f"memory       {units.size(machine.memory_bytes)}")
    print(f"engine       {machine.engine} ({machine.engine_reason})")
    where = options.storage or "no storage file: the working directory"
    print(f"\nstorage layers ({where})")
    for layer in _native.read_storage(options.storage):
        print(f"  {layer.name:12} {layer.path}  {'; '.join(_about(layer))}")
    others = _mounts()
    if others:
        print("\nfile systems that could be layers")
        for path, kind, shared in others:
            scope = "shared" if shared else "this node"
            print(f"  {path:30} {kind:8} {_free(path):>9} free  {scope}")
    return 0


def _about(layer: _native.Layer) -> list[str]:
    ways = {"bandwidth": layer.together, "reading": layer.read_bandwidth}
    ways["writing"] = layer.write_bandwidth
    words = [f"{name} {units.rate(way)}" for name, way in ways.items() if way is not None]
    words = words or ["bandwidth without limit"]
    if layer.watermarks is not None:
        high, low = (f"{share:.1%}".replace(".0%", "%") for share in layer.watermarks)
        words.append(f"files leave above {high} until {low}")
    if layer.capacity is not None:
        words.append(f"capacity {units.size(layer.capacity)}")
    if layer.limit is not None:
        words.append(f"emulated limit {units.rate(layer.limit)}")
    if layer.measured is not None:
        writers, best = max(layer.measured, key=lambda point: point[1])
        words.append(f"best with {writers} writing at once ({units.rate(best)})")
    if not os.path.isdir(layer.path):
        words.append("the folder does not exist")
    else:
        words.append(f"{_free(layer.path)} free")
        if not os.access(layer.path, os.W_OK):
            words.append("not writable")
    return words


def _free(path: str) -> str:
    try:
        return units.size(shutil.disk_usage(path).free)
    except OSError:
        return "?"


def unescaped(path: str) -> str:
    """A path of /proc/mounts, where blanks and the like stand as three octal digits."""
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), path)


def _mounts() -> list[tuple[str, str, bool]]:
    """File systems with room of their own that this user can write to."""
    found: list[tuple[str, str, bool]] = []
    seen: set[int] = set()
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return []
    for line in lines:
        _, path, kind, *_ = line.split()
        path = unescaped(path)
        if kind not in LOCAL_TYPES | SHARED_TYPES or not os.access(path, os.W_OK):
            continue
        if not os.path.isdir(path) or path.startswith(("/sys/", "/proc/")):
            continue
        device = os.stat(path).st_dev
        if device not in seen:
            seen.add(device)
            found.append((path, kind, kind in SHARED_TYPES))
    return found
