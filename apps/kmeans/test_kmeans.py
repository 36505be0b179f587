"""The application's promises: the nearest centre, the same bytes in every mode, a real check."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import alongside as al
from apps.common.checkpoints import Checkpoints
from apps.common.spans import Span

from . import app, plain, run

SMALL = app.Shape(fragments=5, points=400, dimensions=6, centres=9, iterations=3)


def test_labels_are_those_of_the_nearest_centre() -> None:
    points, centres = app.points_of(SMALL, 2), app.first_centres(SMALL)
    distances = np.linalg.norm(points[:, None, :] - centres[None, :, :], axis=2)
    assert np.array_equal(app.nearest(points, centres), distances.argmin(axis=1))


def test_sums_and_counts_are_by_label() -> None:
    points = app.points_of(SMALL, 0)
    labels = app.nearest(points, app.first_centres(SMALL))
    sums, counts = app.sum_by_label(points, labels, SMALL.centres)
    assert counts.sum() == SMALL.points
    for centre in range(SMALL.centres):
        own = points[labels == centre]
        assert counts[centre] == len(own)
        assert np.allclose(sums[centre], own.sum(axis=0))


def test_an_iteration_brings_points_nearer_to_their_centres() -> None:
    points = np.concatenate([app.points_of(SMALL, at) for at in range(SMALL.fragments)])

    def spread(centres: app.Floats) -> float:
        return float(((points - centres[app.nearest(points, centres)]) ** 2).sum())

    spreads = [spread(iteration.centres) for iteration in plain.iterations(SMALL)]
    assert spreads == sorted(spreads, reverse=True)
    assert spreads[-1] < spreads[0]


def test_a_centre_without_points_stays() -> None:
    far = np.full((1, SMALL.dimensions), 1e6)
    before = app.Centres(np.concatenate([app.first_centres(SMALL)[:-1], far]), Span("", 0, 0))
    points = app.points_of(SMALL, 0)
    labels = app.nearest(points, before.points)
    part = app.Partial(*app.sum_by_label(points, labels, SMALL.centres), labels, before.span)
    assert np.array_equal(app.merge.inline(([part], before), {}).points[-1], far[0])


@pytest.mark.parametrize("as_io", [True, False])
def test_a_session_writes_what_the_plain_program_computes(tmp_path: Path, as_io: bool) -> None:
    application = run.KMeans(SMALL)
    with al.Session(workers=2):
        outcome = application.run(Checkpoints(as_io=as_io), tmp_path)
    assert len(list(tmp_path.iterdir())) == SMALL.fragments * SMALL.iterations
    assert application.check(outcome.answer, tmp_path) == ""
    kinds = [span.kind for span in outcome.spans]
    assert kinds.count("checkpoint") == SMALL.fragments * SMALL.iterations


def test_the_check_finds_a_changed_byte_and_a_changed_centre(tmp_path: Path) -> None:
    application = run.KMeans(SMALL)
    outcome = application.run(Checkpoints(), tmp_path)
    assert application.check(outcome.answer, tmp_path) == ""
    assert application.check(outcome.answer + 1e-12, tmp_path) == "the centres"
    path = app.file_of(tmp_path, 1, 3)
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    assert application.check(outcome.answer, tmp_path) == f"the labels in {path.name}"


def test_the_command_checks_every_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--check", "--layers", "disk", "--points", "500"]
    assert run.main([*arguments, "--out", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "check: 3 of 3 runs equal the plain run in every byte" in printed
    assert (tmp_path / "centres.npy").exists()
    assert not list((tmp_path / "checkpoints").glob("*/*")), "checkpoints are removed"
