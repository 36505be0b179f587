"""Tests of the rows and of the programs of the native overhead."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.common.native import compile_program
from bench.common.sample import Sample
from bench.native_overhead.__main__ import CONTENDERS, SHAPES, SOURCES, TASKFLOW, draw, rows_of

SAMPLES = {
    shape.name: {
        **{name: Sample((100.0 + place,)) for place, name in enumerate(CONTENDERS)},
        TASKFLOW: Sample(note="not installed"),
    }
    for shape in SHAPES
}


def test_ours_is_judged_against_the_best_openmp() -> None:
    rows = {row.row: row for row in rows_of(SAMPLES)}
    assert list(rows) == ["independent", "chain", "stencil"]
    assert rows["chain"].ratio == pytest.approx(100 / 101, abs=1e-3)
    assert (rows["chain"].target, rows["independent"].target) == (1.0, None)
    assert rows["chain"].against["taskflow"] == "not installed"


def test_a_contender_without_a_figure_is_drawn_as_its_words(tmp_path: Path) -> None:
    samples = {name: {**of, CONTENDERS[1]: Sample(note="failed")} for name, of in SAMPLES.items()}
    draw(samples, tmp_path / "made.png", "note")
    assert (tmp_path / "made.png").stat().st_size > 1000


@pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")
@pytest.mark.parametrize("shape", [shape.name for shape in SHAPES])
def test_tasks_of_openmp_run_in_order(tmp_path: Path, shape: str) -> None:
    sources = [SOURCES / "openmp.c", SOURCES / "shapes.c"]
    program = compile_program(tmp_path / "openmp", sources, ["-fopenmp"])
    command = [str(program), shape, "2", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["ns"] > 0
