"""The options of the task-I/O meter; impossible ones are refused before anything starts."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from bench.common import machine
from bench.tiom import plan

SERIES_PER_WORKER = 4
QUICK_FILE_BYTES = 1 << 30
FILE_BYTES = 4 << 30
T = TypeVar("T", int, float)
PATIENCE = "have S seconds to wait for a free machine and to repeat disturbed runs; default 0"


def parse(arguments: Sequence[str] | None, doc: str | None) -> argparse.Namespace:
    """The options, with what --quick stands for filled in."""
    parser = argparse.ArgumentParser(prog="bench.tiom", description=doc)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument(
        "--quick", action="store_true", help="12 cells a mode, 12 minutes; else 3 h"
    )
    parser.add_argument("--repetitions", type=int, default=3, metavar="N", help="default 3")
    parser.add_argument("--seconds", type=float, help="of a run; default 1.5, quick 0.8")
    parser.add_argument("--seconds-max", type=float, default=0.0, help="cut a run; default: never")
    parser.add_argument(
        "--modes", default=",".join(plan.MODES_DEFAULT), help="of mix,1to1,fjio,fjc"
    )
    parser.add_argument("--directions", default="write", help="write, read or write,read")
    parser.add_argument("--computes", help="of a task, ms: 1,4,16; default 1..128, quick 1,4,16")
    parser.add_argument("--blocks", help="KiB: 4,64; default 4..8192, quick 4,64,512,4096")
    parser.add_argument("--sequential", action="store_true", help="instead of random")
    parser.add_argument("--buffered", action="store_true", help="through the page cache")
    parser.add_argument("--workers", type=int, default=machine.cores(), help="default: processors")
    parser.add_argument("--series", type=int, help="chains of tasks; default 4 a worker")
    parser.add_argument("--file-bytes", type=float, help="default 4 GiB, quick 1 GiB")
    parser.add_argument("--folder", type=Path, default=Path("out"), help="on the disk to measure")
    parser.add_argument("--without-limit", action="store_true", help="leave out limited_equal")
    parser.add_argument("--only-limit", action="store_true", help="limited_equal and nothing else")
    parser.add_argument("--patience", type=float, default=0.0, metavar="S", help=PATIENCE)
    parser.add_argument("--check", action="store_true", help="exit code 1 if a target is missed")
    options = parser.parse_args(arguments)
    options.modes = names(parser, options.modes, plan.MODES)
    options.directions = names(parser, options.directions, plan.DIRECTIONS)
    options.computes = list_of(parser, options.computes, float) or (
        plan.QUICK_COMPUTES_MS if options.quick else plan.COMPUTES_MS
    )
    kib = list_of(parser, options.blocks, int)
    options.blocks = tuple(count * plan.KIB for count in kib) or (
        plan.QUICK_BLOCKS_BYTES if options.quick else plan.BLOCKS_BYTES
    )
    options.seconds = options.seconds or (0.8 if options.quick else 1.5)
    options.series = options.series or SERIES_PER_WORKER * options.workers
    options.file_bytes = int(
        options.file_bytes or (QUICK_FILE_BYTES if options.quick else FILE_BYTES)
    )
    positive = (options.repetitions, options.seconds, options.workers, options.series)
    if min(*positive, *options.computes, *options.blocks) <= 0:
        parser.error("repetitions, seconds, workers, series, computes and blocks must be positive")
    return options


def names(parser: argparse.ArgumentParser, text: str, known: Sequence[str]) -> tuple[str, ...]:
    """The names in a list with commas."""
    given = tuple(text.split(","))
    unknown = [name for name in given if name not in known]
    if unknown:
        parser.error(f"nothing is called {unknown[0]!r} here; there are {', '.join(known)}")
    return given


def list_of(
    parser: argparse.ArgumentParser, text: str | None, kind: Callable[[str], T]
) -> tuple[T, ...]:
    """The numbers in a list with commas; none without a text."""
    try:
        return tuple(kind(part) for part in text.split(",")) if text else ()
    except ValueError:
        parser.error(f"{text!r} is not a list of numbers with commas between them")
