"""Curves of bandwidth over concurrent writers as a drawing (SVG)."""

from __future__ import annotations

import math
from html import escape
from typing import Any

from alongside import units

WIDTH, HEIGHT = 420, 260
LEFT, RIGHT, TOP, BOTTOM = 80, 20, 40, 46
COLOURS = ("#4e79a7", "#f28e2b", "#59a14f", "#e15759", "#76b7b2", "#b07aa1", "#9c755f")
TICKS = 4


def block_name(count: int) -> str:
    """Bytes of a block, in powers of two: `64 KiB`."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size and count % size == 0:
            return f"{count // size} {unit}"
    return f"{count} B"


def svg(layers: list[dict[str, Any]]) -> str:
    """A row for each layer: writing, reading; a line for each size of a block."""
    panels = [
        _panel(layer, kind, column * WIDTH, row * HEIGHT)
        for row, layer in enumerate(layers)
        for column, kind in enumerate(("write", "read"))
    ]
    width, height = 2 * WIDTH, len(layers) * HEIGHT
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="11">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
    )
    return "\n".join([head, *panels, "</svg>", ""])


def _panel(layer: dict[str, Any], kind: str, left: int, top: int) -> str:
    figures = [figure for figure in layer["figures"] if figure["kind"] == kind]
    counts = sorted({figure["writers"] for figure in figures})
    most = max((figure["bandwidth"] for figure in figures), default=1) or 1
    inner_width, inner_height = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    span = math.log2(counts[-1] / counts[0]) if len(counts) > 1 else 1.0

    def x(writers: int) -> float:
        return LEFT + inner_width * math.log2(writers / counts[0]) / span

    def y(bandwidth: float) -> float:
        return TOP + inner_height * (1 - bandwidth / most)

    title = escape(f"{layer['name']}: {kind}")
    words = "writers" if kind == "write" else "readers"
    parts = [
        f'<g transform="translate({left} {top})">',
        f'<text x="{LEFT}" y="20" font-size="13" font-weight="bold">{title}</text>',
        f'<text x="{LEFT + inner_width}" y="{HEIGHT - 8}" text-anchor="end">{words} at once</text>',
    ]
    for tick in range(TICKS + 1):
        value = most * tick / TICKS
        line = f'x1="{LEFT}" x2="{LEFT + inner_width}" y1="{y(value):.1f}" y2="{y(value):.1f}"'
        parts.append(f'<line {line} stroke="#ddd"/>')
        at = f'x="{LEFT - 6}" y="{y(value) + 4:.1f}"'
        parts.append(f'<text {at} text-anchor="end">{units.rate(value)}</text>')
    for writers in counts:
        at = f'x="{x(writers):.1f}" y="{HEIGHT - BOTTOM + 16}"'
        parts.append(f'<text {at} text-anchor="middle">{writers}</text>')
    blocks = sorted({figure["block"] for figure in figures})
    step = min(70, inner_width / max(len(blocks), 1))
    for number, block in enumerate(blocks):
        colour = COLOURS[number % len(COLOURS)]
        of_block = [figure for figure in figures if figure["block"] == block]
        of_block.sort(key=lambda figure: figure["writers"])
        points = " ".join(f"{x(one['writers']):.1f},{y(one['bandwidth']):.1f}" for one in of_block)
        parts.append(
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="2"/>'
        )
        at = f'x="{LEFT + number * step:.0f}" y="{TOP - 6}"'
        parts.append(f'<text {at} fill="{colour}">{block_name(block)}</text>')
    knee = layer[kind]["knee"] if layer[kind] else None
    if knee is not None:
        line = f'x1="{x(knee):.1f}" x2="{x(knee):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"'
        parts.append(f'<line {line} stroke="#888" stroke-dasharray="4 3"/>')
    return "\n".join([*parts, "</g>"])
