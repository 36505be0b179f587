"""The field at the end as a picture: a slice, and the most of v along the line of sight."""

from __future__ import annotations

from pathlib import Path

from . import model


def draw(state: model.State, steps: int, path: Path) -> list[Path]:
    """Write the picture; nothing where matplotlib is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return []
    figure = Figure(figsize=(8, 4.2), layout="constrained")
    views = {
        "the plane in the middle": state.v[len(state.v) // 2],
        "the most along the first axis": state.v.max(axis=0),
    }
    for panel, (title, view) in zip(figure.subplots(1, 2), views.items(), strict=True):
        image = panel.imshow(view, cmap="magma", origin="lower", interpolation="bilinear")
        panel.set_title(title, fontsize=10)
        panel.set_axis_off()
        figure.colorbar(image, ax=panel, shrink=0.8)
    side = len(state.v)
    figure.suptitle(f"Gray-Scott, {side}^3 cells after {steps} steps: substance v")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    return [path]
