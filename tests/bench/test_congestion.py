"""The congestion benchmark: layers are as described, and rows compare what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from alongside import _native
from bench.congestion import __main__ as bench
from bench.congestion import cases, picture


@pytest.mark.parametrize("layer", cases.LAYERS)
def test_a_layer_is_read_as_it_was_described(tmp_path, layer):
    words = cases.describe(layer, 20_000_000, tmp_path, tmp_path / "storage.toml")
    (read,) = _native.read_storage(str(tmp_path / "storage.toml"))
    assert read.name == layer
    assert words
    text = (tmp_path / "storage.toml").read_text()
    assert ("limit" in text) == (layer != "disk")
    assert text.count("writers =") == (len(cases.CURVE) if layer == "congested" else 0)


def test_static_constraints_let_so_many_run_at_once():
    best = 20_000_000
    for one in cases.contenders(best):
        if one.at_once is not None:
            assert best // float(one.checkpoints.bandwidth) == one.at_once


def case(layer, **totals):
    ways = {}
    for name in [one.name for one in cases.contenders(1_000_000)]:
        at_once = int(name.split("_")[1]) if name.startswith("static") else None
        ways[name] = bench.Way(at_once, [totals.get(name, 10.0)], [1.0], [1.0])
    return bench.Case("app", layer, "words", ways)


def test_rows_compare_with_the_best_static_constraint_and_the_baseline():
    made = case("congested", static_4=5.0, adaptive=5.2, auto=6.0, unconstrained=12.0)
    rows = {row.row: row for row in bench.rows_of(made)}
    assert made.best_static == "static_4"
    assert rows["app_adaptive"].against == {"static_4": 5.0}
    assert rows["app_adaptive"].ratio == pytest.approx(1.04)
    assert rows["app_auto"].ratio == pytest.approx(1.2)
    assert rows["app_best_static"].ratio == pytest.approx(0.5)
    assert rows["app_unconstrained"].against == {"baseline": 10.0}


@pytest.mark.parametrize(("application", "target"), [("kmeans3", 1.05), ("variants", 1.08)])
def test_an_application_with_many_kinds_of_checkpoints_may_lose_more(application, target):
    made = replace(case("congested", static_4=5.0), name=application)
    rows = {row.row: row for row in bench.rows_of(made)}
    assert rows[f"{application}_adaptive"].target == target


def test_on_a_layer_without_congestion_nothing_may_be_lost():
    made = case("disk", unconstrained=10.0, adaptive=10.2)
    rows = {row.row: row for row in bench.rows_of(made)}
    assert rows["app_adaptive_disk"].against == {"unconstrained": 10.0}
    assert rows["app_adaptive_disk"].target == bench.NO_HARM


def test_the_picture_has_a_panel_for_each_case(tmp_path):
    picture.draw([case("congested"), case("flat")], tmp_path / "a.png", "note " * 60)
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "bad", [["--applications", "nothing"], ["--layers", "x"], ["--workers", "0"]]
)
def test_impossible_options_are_refused(bad, capsys):
    with pytest.raises(SystemExit):
        bench.parse(bad)
    assert capsys.readouterr().err
