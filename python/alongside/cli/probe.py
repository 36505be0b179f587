"""`alongside probe [PATH...]`: measure what storage really takes, and describe it."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from alongside import _native, units
from alongside.cli import curves, info, paths

EXIT_INTERRUPTED = 128 + signal.SIGINT
COUNT_MAX = 2**32 - 1
"""Far beyond what the plan of a measurement takes."""
ROUNDS_HELP = "7; two measure everything, the others the curves; medians count"
HEADER = "# Storage layers as `alongside probe` measured them.\n"


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "probe",
        help="measure what storage takes, and write its description",
        description="Measure what storage takes: bandwidth and operations a second, reading and "
        "writing, over block size and number of concurrent writers. Writes a storage description. "
        "Data, space and time are bounded, for each path; the files have no names, and are gone "
        "when the command ends in any way.",
    )
    parser.add_argument("paths", nargs="*", default=["."], metavar="PATH", help="folders")
    bounds = parser.add_argument_group("bounds, for each path")
    bounds.add_argument("--data", type=_bytes, default="16GB", metavar="SIZE", help="16GB")
    bounds.add_argument("--space", type=_bytes, default="512MiB", metavar="SIZE", help="512MiB")
    bounds.add_argument("--seconds", type=float, default=60.0, metavar="S", help="60")
    grid = parser.add_argument_group("what is measured")
    blocks, writers = "4KiB,64KiB,1MiB,4MiB", "1,2,4,8,16,32,64"
    grid.add_argument("--block", type=_list_of(_bytes), default=blocks, help=blocks)
    grid.add_argument("--writers", type=_list_of(_count), default=writers, help=writers)
    grid.add_argument("--rounds", type=_count, default=7, metavar="N", help=ROUNDS_HELP)
    output = parser.add_argument_group("output")
    output.add_argument(
        "--out", default="storage.toml", metavar="FILE.toml", help="the description ('-': stdout)"
    )
    output.add_argument("--force", action="store_true", help="write over an existing description")
    output.add_argument(
        "--emulate", action="store_true", help="give the curve of writing as an emulated limit"
    )
    output.add_argument("--picture", metavar="FILE.svg", help="draw the curves")
    output.add_argument("--json", action="store_true", help="figures as JSON instead of tables")
    output.add_argument("--no-progress", action="store_true", help="no progress bar")
    parser.set_defaults(main=main)


def _bytes(text: str) -> int:
    try:
        return _native.parse_bytes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    """A number. The plan refuses one that is out of bounds, and names these."""
    try:
        return min(max(int(text), 0), COUNT_MAX)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a whole number") from None


def _list_of(one: Any) -> Any:
    """For argparse: values between commas."""

    def parse(text: str) -> list[int]:
        try:
            return [one(part) for part in text.split(",")]
        except ValueError:
            message = f"'{text}' is not a list of numbers between commas"
            raise argparse.ArgumentTypeError(message) from None

    return parse


def main(options: argparse.Namespace) -> int:
    """Measures, and tells. 130 after Ctrl-C, 2 where nothing can be measured."""
    refusal = _refusal(options)
    if refusal:
        print(f"alongside: {refusal}", file=sys.stderr)
        return 2
    try:
        layers = [_measure(path, name, options) for path, name in _named(options.paths)]
        _write(layers, options)
    except KeyboardInterrupt:
        print("alongside: interrupted; nothing was left behind", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        raise  # as in every command
    except OSError as error:
        print(f"alongside: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2
    except ValueError as error:
        print(f"alongside: {error}", file=sys.stderr)
        return 2
    return 0


def _refusal(options: argparse.Namespace) -> str | None:
    """What is wrong with the names of the files that are to be written."""
    if options.picture and Path(options.picture).suffix != ".svg":
        return f"--picture {options.picture}: the name has to end in .svg"
    if options.out == "-":
        return "--out - and --json both want the standard output" if options.json else None
    if Path(options.out).exists() and not options.force:
        return f"{options.out} exists; give --force to write over it, or another --out"
    refused = (paths.refusal(name) for name in (options.out, options.picture) if name)
    return next(filter(None, refused), None)


def _named(paths: list[str]) -> Iterator[tuple[str, str]]:
    """Each path with a name for its layer, no two alike."""
    seen: set[str] = set()
    for path in paths:
        stem = name = Path(path).resolve().name or "root"
        number = 1
        while name in seen:
            number += 1
            name = f"{stem}-{number}"
        seen.add(name)
        yield path, name


def _measure(path: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """Measures one folder. What is to be told of it."""
    probe = _native.Probe(
        path,
        options.block,
        options.writers,
        options.rounds,
        options.space,
        options.data,
        options.seconds,
    )
    print(
        f"alongside probe: {path}: reads and writes at most {units.size(probe.data_bytes_max)} in "
        f"about {options.seconds:g} s at most, in {units.size(probe.space_bytes)} of space",
        file=sys.stderr,
        flush=True,
    )
    with _bar(path, not options.no_progress) as show:
        while probe.step():
            show(*probe.progress)
    outcome = probe.outcome()
    kind, shared = _file_system(path)
    return {
        "name": name,
        "path": str(Path(path).absolute()),
        "file_system": kind,
        "scope": "shared" if shared else "node",
        "free": shutil.disk_usage(path).free,
        "engine": outcome.engine,
        "direct": outcome.direct,
        "bytes": outcome.bytes,
        "seconds": round(outcome.seconds, 3),
        "write": _side(outcome.write),
        "read": _side(outcome.read),
        "figures": [_figure(*figure) for figure in outcome.figures],
        "toml": probe.layer(name, shared, options.emulate),
    }


def _side(side: Any) -> dict[str, Any] | None:
    if side is None:
        return None
    block, knee, (writers, bandwidth), falls_at, curve = side
    return {
        "block": block,
        "knee": knee,
        "best": {"writers": writers, "bandwidth": bandwidth},
        "falls_at": falls_at,
        "curve": [{"writers": count, "bandwidth": rate} for count, rate in curve],
    }


def _figure(
    is_write: bool, block: int, writers: int, bandwidth: float, spread: float, rounds: int
) -> dict[str, Any]:
    return {
        "kind": "write" if is_write else "read",
        "block": block,
        "writers": writers,
        "bandwidth": round(bandwidth),
        "iops": round(bandwidth / block, 1),
        "spread": round(spread, 4),
        "rounds": rounds,
    }


@contextlib.contextmanager
def _bar(path: str, wanted: bool) -> Iterator[Any]:
    """Shows how far it is, on a terminal."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda _done, _all: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as Remaining

    columns = (TextColumn("probing {task.description}"), BarColumn(), TaskProgressColumn())
    with Progress(*columns, Remaining(), console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(path)
        yield lambda done, all_steps: bar.update(task, completed=done, total=all_steps)


def _file_system(path: str) -> tuple[str, bool]:
    """The type of the file system of a folder, and whether other machines reach it."""
    device = os.stat(path).st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            if before.split()[2] == number:
                kind = after.split()[0]
                return kind, kind in info.SHARED_TYPES
    return "unknown", False


def _write(layers: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """The description, the picture, tables or JSON. Whoever reads these may leave early."""
    description = HEADER + "".join("\n" + layer.pop("toml") for layer in layers)
    if options.out != "-":
        _replace(Path(options.out), description)
        print(f"alongside probe: {options.out} describes what was measured", file=sys.stderr)
    if options.picture:
        Path(options.picture).write_text(curves.svg(layers), encoding="utf-8")
    if options.json:
        print(json.dumps({"version": 1, "layers": layers}, indent=2))
    else:
        for layer in layers:
            _print(layer)
    if options.out == "-":
        print(description, end="")


def _replace(file: Path, text: str) -> None:
    """Writes a file, whole or not at all."""
    new = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        new.write_text(text, encoding="utf-8")
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)


def _print(layer: dict[str, Any]) -> None:
    """The tables of one folder, and what follows from them."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    cold = "direct" if layer["direct"] else "flushed, and not from memory"
    moved = f"{units.size(layer['bytes'])} in {layer['seconds']:.3g} s"
    console = Console(highlight=False, width=None if sys.stdout.isatty() else 100)
    console.print(f"\n{layer['path']} ({layer['file_system']}, {cold}, {layer['engine']}): {moved}")
    for kind in ("write", "read"):
        figures = [figure for figure in layer["figures"] if figure["kind"] == kind]
        blocks = sorted({figure["block"] for figure in figures})
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        table.add_column(
            f"{kind}: writers" if kind == "write" else "read: readers", justify="right"
        )
        for block in blocks:
            table.add_column(curves.block_name(block), justify="right")
        for writers in sorted({figure["writers"] for figure in figures}):
            row = {one["block"]: one for one in figures if one["writers"] == writers}
            table.add_row(str(writers), *(_cell(row.get(block)) for block in blocks))
        console.print(table, end="")
        console.print(_knee(kind, layer[kind], figures), soft_wrap=True)


def _cell(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "-"
    return f"{units.rate(figure['bandwidth'])} {figure['iops']:,.0f}/s"


def _knee(kind: str, side: dict[str, Any] | None, figures: list[dict[str, Any]]) -> str:
    """What the curve says, in a sentence."""
    if side is None:
        return "nothing was measured"
    best = side["best"]
    spread = max(one["spread"] for one in figures if one["block"] == side["block"])
    text = (
        f"{kind}: {side['knee']} at once with blocks of {curves.block_name(side['block'])} give "
        f"95 % of the best, {units.rate(best['bandwidth'])} ({best['writers']} at once)"
    )
    text += f"; from {side['falls_at']} on it falls" if side["falls_at"] else ""
    return f"{text}; rounds were off by up to {spread:.0%}"
