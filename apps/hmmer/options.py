"""The command's options."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Sequence
from pathlib import Path

MODES = ("sequential", "tasks", "io")
LAYERS = ("disk", "hpc-node")
UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20}


def _some_of(known: tuple[str, ...], text: str) -> tuple[str, ...]:
    named = tuple(part.strip() for part in text.split(","))
    for name in named:
        if name not in known:
            raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
    return tuple(name for name in known if name in named)


def _modes(text: str) -> tuple[str, ...]:
    return _some_of(MODES, text)


def _layers(text: str) -> tuple[str, ...]:
    return _some_of(LAYERS, text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of at least 1")
    return int(text)


def _size(text: str) -> str | int:
    if text in ("published", "natural"):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not match or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size; give published, natural, or bytes such as 2500000 or 2.5MB"
        )
    return round(float(match[1]) * UNITS[match[2]])


def _folder(text: str) -> Path:
    return Path(text).absolute()


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    made = argparse.ArgumentParser(
        prog="python -m apps.hmmer",
        description="Search 483 profile HMMs in a proteome, pair of fragments by pair, "
        "checkpoint every pair, and compare ways to run it.",
    )
    add = made.add_argument
    add(
        "--modes",
        type=_modes,
        default=MODES,
        metavar="LIST",
        help="comma list of " + ", ".join(MODES),
    )
    add(
        "--layers",
        type=_layers,
        default=LAYERS,
        metavar="LIST",
        help="comma list of " + ", ".join(LAYERS),
    )
    add("--hmm-fragments", type=_positive, metavar="N", help="default 12 (--quick: 6)")
    add("--sequence-fragments", type=_positive, metavar="N", help="default 4 (--quick: 2)")
    add(
        "--checkpoint-size",
        type=_size,
        default="published",
        metavar="SIZE",
        help="bytes a pair: published (the published balance of I/O and computation; the "
        "default), natural (no padding), or a size such as 2.5MB",
    )
    add(
        "--workers",
        type=_positive,
        default=len(os.sched_getaffinity(0)),
        metavar="N",
        help="compute workers (default: the processors)",
    )
    add("--out", type=_folder, default=_folder("out/hmmer"), metavar="FOLDER", help="all output")
    add("--trace", type=_folder, metavar="FOLDER", help="write a timeline a run under a session")
    add("--check", action="store_true", help="compare all hits with a plain sequential search")
    add("--quick", action="store_true", help="an eighth of the profiles")
    add("--resume", action="store_true", help="skip pairs whose checkpoint in --out is whole")
    add("--keep", action="store_true", help="keep the checkpoints after a run")
    add("--verbose", action="store_true", help="a line for every durable checkpoint")
    return made


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; ends the program with a message if it makes no sense."""
    options = parser().parse_args(arguments)
    options.hmm_fragments = options.hmm_fragments or (6 if options.quick else 12)
    options.sequence_fragments = options.sequence_fragments or (2 if options.quick else 4)
    return options
