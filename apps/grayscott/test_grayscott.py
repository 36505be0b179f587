"""The application's promises: no cut changes a byte, every mode writes the same, a real check."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import alongside as al
from apps.common.checkpoints import Checkpoints

from . import app, model, run

SMALL = app.Shape(side=24, slabs=3, steps=12, every=4)


def whole(side: int, steps: int) -> model.State:
    """Return the cube after so many steps, one step at a time."""
    state = model.first_state(side)
    for _ in range(steps):
        state = model.advance(model.wrapped(state, 1), 1)
    return state


@pytest.mark.parametrize(("slabs", "every"), [(1, 4), (2, 6), (3, 4), (4, 2), (6, 1)])
def test_the_cut_does_not_change_a_byte(tmp_path: Path, slabs: int, every: int) -> None:
    shape = app.Shape(side=24, slabs=slabs, steps=12, every=every)
    answer = app.run(shape, Checkpoints(), tmp_path).answer
    for field, expected in zip(answer, whole(24, 12), strict=True):
        assert field.tobytes() == expected.tobytes()


def test_the_step_is_that_of_the_equations() -> None:
    u, v = (field.astype(np.float64) for field in model.first_state(12))
    near = [np.roll(v, by, axis) for axis in range(3) for by in (1, -1)]
    change = model.SPREAD_V * (sum(near) / 6 - v) + u * v * v - (model.FEED + model.KILL) * v
    after = whole(12, 1).v
    assert np.allclose(after, v + change, atol=1e-6)
    assert not np.allclose(after, v, atol=1e-3), "something happens in a step"


def test_the_substances_stay_within_their_bounds() -> None:
    u, v = whole(24, 200)
    assert np.isfinite(u).all()
    assert np.isfinite(v).all()
    assert 0 <= v.min() < v.max() < 1
    assert 0 < u.min() < u.max() < 1.1


@pytest.mark.parametrize("cut", [(24, 5, 12, 4), (24, 8, 12, 4), (24, 3, 13, 4)])
def test_a_cut_that_does_not_work_is_refused(cut: tuple[int, int, int, int]) -> None:
    with pytest.raises(ValueError, match=r"slabs|multiple"):
        app.Shape(*cut)


@pytest.mark.parametrize("as_io", [True, False])
def test_a_session_writes_what_the_plain_program_computes(tmp_path: Path, as_io: bool) -> None:
    application = run.GrayScott(SMALL)
    with al.Session(workers=2):
        outcome = application.run(Checkpoints(as_io=as_io), tmp_path)
    assert len(list(tmp_path.iterdir())) == SMALL.slabs * SMALL.rounds
    assert application.check(outcome.answer, tmp_path) == ""


def test_the_check_finds_a_changed_byte(tmp_path: Path) -> None:
    application = run.GrayScott(SMALL)
    outcome = application.run(Checkpoints(), tmp_path)
    path = app.file_of(tmp_path, 8, 1)
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 64
    path.write_bytes(content)
    assert application.check(outcome.answer, tmp_path) == path.name


def test_the_command_checks_every_mode_and_draws(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--quick", "--check", "--layers", "disk", "--side", "32", "--every", "8"]
    assert run.main([*arguments, "--steps", "16", "--out", str(tmp_path)]) == 0
    assert "check: 3 of 3 runs equal the plain run in every byte" in capsys.readouterr().out
    assert (tmp_path / "grayscott.png").stat().st_size > 10_000
    assert run.main(["--side", "50", "--out", str(tmp_path)]) == 2
    assert "a slab needs as many planes" in capsys.readouterr().err
