"""`python -m bench.probe --out FOLDER`: probe two layers several times, in turns, and compare.

`disk` is the file system of the output folder, `limited` a disk whose bandwidth the kernel limits
(`bench.common.slow_disk`; only where the user is root). Compared are the best bandwidths, and the
curves point by point. Everything is probed as a user does it, by `alongside probe`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.common import machine, progress, report, style
from bench.common.report import Goal, Row
from bench.common.sample import Sample
from bench.common.slow_disk import SlowDiskUnavailableError, kernel_disk

LIMITED = 200_000_000
"""Of the limited layer, in bytes a second."""
ROOM = 1 << 30
GOAL = Goal(("lowest",), 1.1)
SIDES = ("write", "read")
WHO = {"write": "writers", "read": "readers"}

Found = dict[str, Any]
"""What one probe says of one layer."""


def probe(folder: Path, flags: Sequence[str]) -> Found:
    """Probe a folder."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "alongside", "probe", str(folder), "--json"]
        command += ["--no-progress", "--out", str(Path(scratch) / "storage.toml"), *flags]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        raise SystemExit(f"bench.probe: {' '.join(command)}: {ended.stderr}")
    layer: Found = json.loads(ended.stdout)["layers"][0]
    return layer


def points(found: Found, side: str) -> dict[int, float]:
    """Return a curve: bytes a second by writers."""
    return {point["writers"]: point["bandwidth"] for point in found[side]["curve"]}


def apart(curves: Sequence[dict[int, float]]) -> tuple[float, float]:
    """Return the bandwidths of the point where curves are furthest apart: highest, lowest."""
    bandwidths = [[curve[writers] for curve in curves] for writers in curves[0]]
    worst = max(bandwidths, key=lambda values: max(values) / min(values))
    return max(worst), min(worst)


def rows_of(layer: str, probes: Sequence[Found]) -> list[Row]:
    """Return the rows of one layer: the best bandwidths, and the curves where they differ most."""
    rows = []
    for side in SIDES:
        best = [found[side]["best"]["bandwidth"] for found in probes]
        pairs = {side: (max(best), min(best))}
        pairs[f"{side}_curve"] = apart([points(found, side) for found in probes])
        for name, (highest, lowest) in pairs.items():
            peers = {GOAL.peers[0]: Sample((lowest / 1e6,))}
            ours = Sample((highest / 1e6,))
            rows.append(report.make_row(f"{layer}_{name}", "MB/s", ours, peers, GOAL))
    return rows


def draw(found: dict[str, list[Found]], path: Path) -> None:
    """Draw all curves: a panel a layer and side, a line a probe."""
    figure, panels = style.figure(len(found), len(SIDES), width=8.0, height=2.6 * len(found))
    for line, (layer, probes) in zip(panels, found.items(), strict=True):
        for panel, side in zip(line, SIDES, strict=True):
            for number, one in enumerate(probes):
                curve = points(one, side)
                label = f"probe {number + 1}, {one[side]['block'] >> 10:,} KiB"
                values = [bandwidth / 1e6 for bandwidth in curve.values()]
                panel.plot(list(curve), values, marker="o", markersize=3, label=label)
            panel.set_xscale("log", base=2)
            panel.xaxis.set_major_formatter(style.plain_numbers())
            panel.set_ylim(0, 1.1 * panel.get_ylim()[1])
            panel.set_title(f"{layer}: MB/s over {WHO[side]} at once")
            panel.legend(fontsize=7, loc="lower right")
    style.finish(figure, path, "The same layer, probed again", machine.describe())


def measure(options: argparse.Namespace) -> dict[str, list[Found]]:
    """Probe all layers in turns."""
    options.out.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=options.out)))
        folders = {"disk": scratch}
        try:
            disk = stack.enter_context(kernel_disk(scratch, LIMITED, ROOM))
            folders["limited"] = disk.folder
        except SlowDiskUnavailableError as reason:
            print(f"bench.probe: no limited disk: {reason}", file=sys.stderr)
        found: dict[str, list[Found]] = {layer: [] for layer in folders}
        count = options.times * len(folders)
        tell = stack.enter_context(progress.steps(report.console(), count))
        for turn in range(options.times):
            for layer, folder in folders.items():
                tell(f"probe {turn + 1} of {layer}")
                found[layer].append(probe(folder, options.flags))
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.probe", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/bench"), metavar="FOLDER")
    parser.add_argument("--times", type=int, default=2, metavar="N", help="2; probes of each layer")
    parser.add_argument("--check", action="store_true", help="exit code 1 if they differ by more")
    parser.add_argument("flags", nargs="*", help="after --: options of alongside probe")
    options = parser.parse_args(arguments)
    if options.times < 2:
        parser.error("--times: at least 2")
    found = measure(options)
    rows = [row for layer, probes in found.items() for row in rows_of(layer, probes)]
    table = report.new_table(
        f"{options.times} probes of each layer",
        ["", "highest MB/s", "lowest", "ratio", "target", ""],
    )
    for row in rows:
        against = row.against[GOAL.peers[0]]
        verdict = GOAL.verdict(row.ratio)
        table.add_row(row.row, str(row.ours), str(against), str(row.ratio), GOAL.text(), verdict)
    report.console().print(table)
    report.write_json(options.out / "probe.json", rows)
    draw(found, options.out / "probe.png")
    print(f"{machine.describe()}. Written: {options.out}/probe.json, .png")
    return 1 if options.check and any(GOAL.verdict(row.ratio) != "yes" for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
