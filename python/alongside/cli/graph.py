"""The task graph as DOT, or as a drawing (SVG) with a layer for each step of the longest path."""

from __future__ import annotations

from html import escape
from pathlib import Path

from alongside import units
from alongside.errors import ConstraintError

Node = tuple[int, str, bool, int | None, str]
Graph = tuple[list[Node], list[tuple[int, int]]]

WIDTH, HEIGHT = 150, 34
GAP_X, GAP_Y = 20, 46
SWEEPS = 4
ARROW = (
    '<defs><marker id="arrow" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="7" '
    'markerHeight="7" orient="auto"><path d="M0 0L6 3L0 6z" fill="#666"/></marker></defs>'
)
FILL = {"done": "#dcefdc", "failed": "#f6d0d0", "cancelled": "#eeeeee", "open": "#ffffff"}


def check(name: str) -> None:
    """Refuses a file name that says nothing of the format."""
    if Path(name).suffix not in (".svg", ".dot"):
        raise ConstraintError(f"--graph {name}: the name has to end in .svg or .dot")


def write(graph: Graph, name: str) -> None:
    """Writes the graph; the end of the name says how."""
    text = svg(graph) if Path(name).suffix == ".svg" else dot(graph)
    Path(name).write_text(text, encoding="utf-8")


def _label(node: Node) -> str:
    _, name, _, ran_ns, end = node
    return name if end == "done" and ran_ns is None else f"{name} ({_note(ran_ns, end)})"


def _note(ran_ns: int | None, end: str) -> str:
    if end != "done":
        return end
    return units.seconds(ran_ns or 0)


def dot(graph: Graph) -> str:
    """For Graphviz: I/O tasks are boxes with cut corners."""
    nodes, edges = graph
    lines = ["digraph tasks {", "  node [style=filled, fontname=sans];"]
    for node in nodes:
        shape = "note" if node[2] else "ellipse"
        label = _label(node).replace("\\", "\\\\").replace('"', '\\"')
        lines.append(f'  t{node[0]} [label="{label}", shape={shape}, fillcolor="{FILL[node[4]]}"];')
    lines += [f"  t{start} -> t{end};" for start, end in edges]
    return "\n".join([*lines, "}", ""])


def layered(graph: Graph) -> list[list[int]]:
    """Tasks by the longest way to them, each layer in the order of what they come from."""
    nodes, edges = graph
    known = {node[0] for node in nodes}
    before: dict[int, list[int]] = {task: [] for task in known}
    for start, end in edges:
        if start in known and end in known:
            before[end].append(start)
    depth: dict[int, int] = {}
    for node in nodes:  # in the order of submission: what a task needs comes before it
        task = node[0]
        depth[task] = 1 + max((depth.get(one, -1) for one in before[task]), default=-1)
    layers: list[list[int]] = [[] for _ in range(1 + max(depth.values(), default=-1))]
    for task, level in depth.items():
        layers[level].append(task)
    for _ in range(SWEEPS):
        place = {task: x / len(layer) for layer in layers for x, task in enumerate(layer)}
        for layer in layers[1:]:
            layer.sort(key=lambda task: _mean([place[one] for one in before[task]], place[task]))
    return layers


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise


def svg(graph: Graph) -> str:
    """A drawing without any other program."""
    nodes, edges = graph
    by_task = {node[0]: node for node in nodes}
    layers = layered(graph)
    widest = max((len(layer) for layer in layers), default=1)
    width = widest * (WIDTH + GAP_X) + GAP_X
    height = len(layers) * (HEIGHT + GAP_Y) + GAP_Y
    at: dict[int, tuple[float, float]] = {}
    for level, layer in enumerate(layers):
        step = width / (len(layer) + 1)
        for x, task in enumerate(layer):
            at[task] = ((x + 1) * step, GAP_Y / 2 + level * (HEIGHT + GAP_Y))
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" font-family="sans-serif" font-size="11">'
    )
    lines = [head, ARROW]
    for start, end in edges:
        if start in at and end in at:
            (x1, y1), (x2, y2) = at[start], at[end]
            lines.append(
                f'<path d="M{x1:.0f} {y1 + HEIGHT:.0f}L{x2:.0f} {y2:.0f}" '
                'stroke="#666" fill="none" marker-end="url(#arrow)"/>'
            )
    lines += [_box(by_task[task], x, y) for task, (x, y) in at.items()]
    return "\n".join([*lines, "</svg>", ""])


def _box(node: Node, x: float, y: float) -> str:
    radius, dash = (2, ' stroke-dasharray="5 3"') if node[2] else (HEIGHT / 2, "")
    label = _label(node)
    short = label if len(label) <= 24 else label[:23] + "…"
    return (
        f"<g><title>{escape(label)}</title>"
        f'<rect x="{x - WIDTH / 2:.0f}" y="{y:.0f}" width="{WIDTH}" height="{HEIGHT}" '
        f'rx="{radius:g}" fill="{FILL[node[4]]}" stroke="#333"{dash}/>'
        f'<text x="{x:.0f}" y="{y + HEIGHT / 2 + 4:.0f}" text-anchor="middle">'
        f"{escape(short)}</text></g>"
    )
