"""The application's promises: meshes fit, subdomains make up the whole, both ways agree."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.sparse.linalg import spsolve  # type: ignore[import-untyped]

import alongside as al
from apps.common import release

from . import app, cutting, data, heat, lattice, plain, run, shape

PARTS, COARSE, SIDE = 6, 30, 4


@pytest.fixture
def application(tmp_path: Path) -> run.Domains:
    """6 subdomains: folded as 4 and 2, so not all by equal ones."""
    return run.Domains(tmp_path / "input", PARTS, COARSE, SIDE)


def area_of(points: shape.Floats, triangles: shape.Integers) -> float:
    a, b, c = points[triangles].transpose(1, 0, 2)
    one, other = b - a, c - a
    return float(np.abs(one[:, 0] * other[:, 1] - one[:, 1] * other[:, 0]).sum() / 2)


def test_the_coarse_mesh_covers_the_region_and_no_hole() -> None:
    mesh = shape.mesh(4000)
    assert 3500 < len(mesh.triangles) < 4500
    assert area_of(mesh.points, mesh.triangles) == pytest.approx(shape.area(), rel=0.01)
    centres = mesh.points[mesh.triangles].mean(axis=1)
    for x, y, radius in shape.HOLES:
        assert np.hypot(centres[:, 0] - x, centres[:, 1] - y).min() > radius
    corners = np.sort(mesh.triangles, axis=1)
    assert len(np.unique(corners, axis=0)) == len(mesh.triangles)


def test_a_fine_node_has_one_number_and_one_place_from_every_triangle() -> None:
    mesh = shape.mesh(60)
    numbers = lattice.Numbers(mesh, shape.topology(mesh), SIDE)
    fine = lattice.refine(numbers, np.arange(len(mesh.triangles)))
    assert fine.nodes.tolist() == list(range(numbers.nodes))
    assert len(np.unique(fine.points.round(9), axis=0)) == numbers.nodes
    assert area_of(fine.points, fine.triangles) == pytest.approx(
        area_of(mesh.points, mesh.triangles)
    )
    for triangle in range(len(mesh.triangles)):
        own = lattice.refine(numbers, np.array([triangle]))
        np.testing.assert_allclose(own.points, fine.points[own.nodes], atol=1e-12)


def test_subdomains_hold_every_triangle_once_and_know_what_they_share(
    application: run.Domains,
) -> None:
    with application.job.mesh.open("rb") as file:
        parts = list(cutting.subdomains(file, PARTS))
    fine, values, cooled = plain.fine_mesh(application.job)
    assert sum(len(part.fine.triangles) for part in parts) == len(fine.triangles)
    own = np.concatenate([part.values for part in parts])
    assert np.array_equal(np.sort(own, axis=0), np.sort(values, axis=0))
    having = [set(part.fine.nodes.tolist()) for part in parts]
    for part in parts:
        others = {
            node: [n for n in range(PARTS) if node in having[n]] for node in having[part.number]
        }
        shared = part.fine.nodes[part.shared].tolist()
        assert shared == sorted(node for node, found in others.items() if len(found) > 1)
        assert part.parts.tolist() == [[min(others[n]), max(others[n])] for n in shared]
        assert set(part.fine.nodes[part.cooled]) == having[part.number] & set(cooled.tolist())


def test_the_values_of_a_subdomain_are_those_of_its_triangles(application: run.Domains) -> None:
    with application.job.mesh.open("rb") as file:
        for part in cutting.subdomains(file, PARTS):
            corners = part.fine.points[part.fine.triangles]
            np.testing.assert_allclose(part.values, data.values(corners), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("parts", [2, 3, 7, 8])
def test_substructuring_solves_the_whole_system(tmp_path: Path, parts: int) -> None:
    job = run.Domains(tmp_path, parts, COARSE, SIDE).job
    found = plain.run(job)
    fine, values, cooled = plain.fine_mesh(job)
    matrix, load = heat.assemble(fine, values)
    free = np.setdiff1d(np.arange(job.nodes), cooled)
    assert len(cooled) > 50
    expected = np.zeros(job.nodes)
    expected[free] = spsolve(matrix[free][:, free].tocsc(), load[free])
    assert np.ptp(expected) > 0.5
    np.testing.assert_allclose(found, expected, atol=1e-11)
    assert plain.residual(job, found) < 1e-12


def test_a_linear_temperature_is_kept_where_nothing_heats_or_cools(tmp_path: Path) -> None:
    mesh = shape.mesh(60)
    fine = lattice.refine(
        lattice.Numbers(mesh, shape.topology(mesh), SIDE), np.arange(len(mesh.triangles))
    )
    values = np.zeros((len(fine.triangles), data.VALUES))
    values[:, [0, 1, 2]] = 2.0, 0.5, 1.0
    matrix, load = heat.assemble(fine, values)
    linear = 3 + fine.points @ [1.0, -2.0]
    inside = np.setdiff1d(np.arange(len(load)), boundary(fine))
    assert len(inside) > 300
    assert np.abs((matrix @ linear)[inside]).max() < 1e-12
    values[:, 3], values[:, 4:7], values[:, 7:] = 2.0, 5.0, 7.0
    matrix, load = heat.assemble(fine, values)
    assert load.sum() == pytest.approx((2 * 7 + 5) * area_of(fine.points, fine.triangles))
    assert (matrix @ np.ones_like(load)).sum() == pytest.approx(
        2 * area_of(fine.points, fine.triangles)
    )


def boundary(fine: lattice.Fine) -> shape.Integers:
    """Return the nodes on edges that only one triangle has."""
    edges = np.sort(fine.triangles[:, [[0, 1], [1, 2], [0, 2]]].reshape(-1, 2), axis=1)
    found, count = np.unique(edges, axis=0, return_counts=True)
    return np.unique(found[count == 1])


@pytest.mark.parametrize("way", release.WAYS)
def test_both_ways_find_what_the_plain_program_finds(application: run.Domains, way: str) -> None:
    with al.Session(workers=2):
        ran = application.run(way)
    assert application.check(ran.answer) == ""
    assert application.fingerprint(ran.answer) == application.fingerprint(application.plain())
    kinds = [span.kind for span in ran.spans]
    counted = [kinds.count(kind) for kind in ("read", "condense", "fold", "root", "recover")]
    assert counted == [PARTS, PARTS, PARTS - 2, 1, 1]


def test_a_lazy_run_condenses_when_all_was_cut(application: run.Domains) -> None:
    with al.Session(workers=2):
        spans = application.run("lazy").spans
    cut_ns = max(span.end_ns for span in spans if span.kind == release.PRODUCER)
    assert cut_ns < min(span.start_ns for span in spans if span.kind == "condense")


def test_neighbours_fold_as_soon_as_both_are_there() -> None:
    seen: list[str] = []

    def fold(one: str, other: str) -> tuple[str, str]:
        seen.append(one + other)
        return one + other, one + other

    folder = app.Folder(fold, 7)
    for count, name in enumerate("abcdefg", 1):
        folder.add(name)
        assert seen == ["ab", "cd", "abcd", "ef", "efg"][: (0, 0, 1, 1, 3, 3, 4, 5)[count]]
    assert folder.rest == ["abcd", "efg"]
    assert folder.folded == seen


def test_the_check_finds_what_is_not_equal(
    application: run.Domains, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = plain.run(application.job)
    changed = right.copy()
    changed[7] = np.nextafter(changed[7], 1)
    assert application.check(changed) == "the temperatures of 1 nodes"
    wrong = right * (1 + 1e-8)
    monkeypatch.setattr(application, "expected", wrong)
    assert application.check(wrong).startswith("no solution of one system for all nodes")
    assert plain.residual(application.job, right + 1e-3) >= 1e-3


def test_the_command_checks_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--parts", "4", "--coarse", "20", "--side", "4"]
    assert run.main([*sizes, "--check", "--layers", "disk", "--out", str(tmp_path)]) == 0
    assert "check: 2 of 2 runs equal the plain run" in capsys.readouterr().out
    assert (tmp_path / "domains.png").stat().st_size > 10_000
    assert np.load(tmp_path / "temperatures.npy").max() > 0.5


@pytest.mark.parametrize("bad", ["1", "x"])
def test_fewer_than_two_subdomains_are_refused(
    bad: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run.parse(["--parts", bad])
    assert "is not a number of at least 2" in capsys.readouterr().err
