"""Heat maps over compute time and block size: bandwidth of standalone, and speedups in per cent.

Green is faster than standalone, red is slower, white is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from matplotlib.colors import LinearSegmentedColormap, LogNorm, Normalize

from bench.common import style
from bench.common.report import number
from bench.tiom.judge import Judged
from bench.tiom.plan import size

SPEEDUP_COLOURS = LinearSegmentedColormap.from_list(
    "speedup", ["#b2182b", "#f4a582", "#ffffff", "#a6dba0", "#1b7837"]
)
BANDWIDTH_COLOURS = LinearSegmentedColormap.from_list(
    "bandwidth", ["#f7fbff", "#9ecae1", "#4292c6", "#08519c"]
)
MISSING_COLOUR = "#d9d9d9"
SCALE_MIN_PERCENT = 20.0
SCALE_MAX_PERCENT = 100.0
DARK_GAIN = 0.33
DARK_BANDWIDTH = 0.55
LINES, COLUMNS = 2, 3
CELL_WIDTH, CELL_HEIGHT = 0.46, 0.34
PANEL_WIDTH_MIN, PANEL_HEIGHT_MIN = 3.6, 2.3

Figure_of = Callable[[Judged], float | None]


def percent(speed: float | None) -> float | None:
    """A relative speed as a gain in per cent."""
    return None if speed is None else (speed - 1) * 100


SPEEDUPS: tuple[tuple[str, Figure_of], ...] = (
    ("blocking (preloaded)", lambda cell: percent(cell.speed("blocking"))),
    ("nonblocking", lambda cell: percent(cell.speed("nonblocking"))),
    ("nonblocking on OpenMP, over standalone there", lambda c: percent(c.speed("omp-nonblocking"))),
    ("what the bound would allow", lambda cell: percent(cell.allowed)),
    ("noise: standalone against itself", lambda cell: percent(cell.speed("standalone2"))),
)


def draw(judged: Sequence[Judged], folder: Path, note: str) -> list[Path]:
    """A picture for each mode and direction; the files."""
    groups: dict[tuple[str, str], list[Judged]] = {}
    for cell in judged:
        groups.setdefault((cell.work.cell.mode, cell.work.cell.direction), []).append(cell)
    paths = []
    for (mode, direction), cells in groups.items():
        path = folder / f"tiom-{mode}-{direction}.png"
        draw_group(cells, path, f"Task-I/O meter: {mode}, {direction}", note)
        paths.append(path)
    return paths


def draw_group(cells: Sequence[Judged], path: Path, title: str, note: str) -> None:
    """All maps of one mode and direction; the speedups on one scale."""
    computes = sorted({cell.work.cell.compute_ms for cell in cells})
    blocks = sorted({cell.work.cell.block_bytes for cell in cells})
    width = max(PANEL_WIDTH_MIN, CELL_WIDTH * len(blocks) + 1.3)
    height = max(PANEL_HEIGHT_MIN, CELL_HEIGHT * len(computes) + 1.0)
    made, panels = style.figure(LINES, COLUMNS, width * COLUMNS, height * LINES + 0.7)
    places = [panel for line in panels for panel in line]
    scale = max(
        [SCALE_MIN_PERCENT]
        + [abs(gain) for _, of in SPEEDUPS for cell in cells if (gain := of(cell)) is not None]
    )
    scale = min(SCALE_MAX_PERCENT, scale)
    shades = Normalize(-scale, scale, clip=True)
    rates = [rate for cell in cells if (rate := cell.rates("standalone").median) is not None]
    bandwidths = LogNorm(min(rates, default=1.0) * 0.9, max(rates, default=1.0) * 1.1)
    maps: list[tuple[str, Figure_of, Any, Any]] = [
        (
            "standalone, MiB/s",
            lambda cell: cell.rates("standalone").median,
            bandwidths,
            BANDWIDTH_COLOURS,
        )
    ]
    maps += [(f"{words}, %", of, shades, SPEEDUP_COLOURS) for words, of in SPEEDUPS]
    for panel, (words, of, norm, colours) in zip(places, maps, strict=True):
        draw_map(
            panel, {place(cell): of(cell) for cell in cells}, (computes, blocks), norm, colours
        )
        panel.set_title(words, loc="left")
    for line, row in enumerate(panels):
        row[0].set_ylabel("compute time of a task, ms")
        for panel in row if line == LINES - 1 else []:
            panel.set_xlabel("block of a transfer")
    style.finish(made, path, title, f"{note}. Green: faster, red: slower, grey: no figure.")


def place(cell: Judged) -> tuple[float, int]:
    """Where on a map the cell is."""
    return cell.work.cell.compute_ms, cell.work.cell.block_bytes


def draw_map(
    panel: style.Axes,
    figures: dict[tuple[float, int], float | None],
    axes: tuple[Sequence[float], Sequence[int]],
    norm: Any,
    colours: Any,
) -> None:
    """One map, every cell with its figure."""
    computes, blocks = axes
    nothing = float("nan")
    grid = [
        [nothing if (v := figures.get((ms, count))) is None else v for count in blocks]
        for ms in computes
    ]
    panel.set_facecolor(MISSING_COLOUR)
    panel.grid(visible=False)
    panel.imshow(grid, norm=norm, cmap=colours, aspect="auto", origin="lower")
    for line, values in enumerate(grid):
        for column, value in enumerate(values):
            if value != value:
                continue
            shade = norm(value)
            is_gain = colours.name == SPEEDUP_COLOURS.name
            is_dark = abs(shade - 0.5) > DARK_GAIN if is_gain else shade > DARK_BANDWIDTH
            panel.text(
                column,
                line,
                label(value, is_gain),
                ha="center",
                va="center",
                fontsize=7,
                color="white" if is_dark else "black",
            )
    labels = [size(count).replace(" ", "\n") for count in blocks]
    panel.set_xticks(range(len(blocks)), labels, fontsize=7)
    panel.set_yticks(range(len(computes)), [f"{ms:g}" for ms in computes])
    panel.tick_params(length=0)
    for spine in panel.spines.values():
        spine.set_visible(False)


def label(value: float, is_gain: bool) -> str:
    """What stands in a cell."""
    if not is_gain:
        return number(value)
    rounded = round(value)
    return "0" if rounded == 0 else f"{rounded:+d}"
