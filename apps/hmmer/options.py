"""The command's options."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

from apps.common.command import add_common, positive

UNITS = {"": 1, "B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20}


def _size(text: str) -> str | int:
    if text in ("published", "natural"):
        return text
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text)
    if not match or match[2] not in UNITS:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no size; give published, natural, or bytes such as 2500000 or 2.5MB"
        )
    return round(float(match[1]) * UNITS[match[2]])


def parser() -> argparse.ArgumentParser:
    """Return the command's parser."""
    made = argparse.ArgumentParser(
        prog="python -m apps.hmmer",
        description="Search 483 profile HMMs in a proteome, pair of fragments by pair, "
        "checkpoint every pair, and compare ways to run it.",
    )
    add_common(made, "hmmer")
    add = made.add_argument
    add("--hmm-fragments", type=positive, metavar="N", help="default 12 (--quick: 6)")
    add("--sequence-fragments", type=positive, metavar="N", help="default 4 (--quick: 2)")
    add(
        "--checkpoint-size",
        type=_size,
        default="published",
        metavar="SIZE",
        help="bytes a pair: published (the published balance of I/O and computation; the "
        "default), natural (no padding), or a size such as 2.5MB",
    )
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
