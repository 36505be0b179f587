"""The eager release benchmark: cases do their work, rows compare what they say, gaps are told."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

import alongside as al
from apps.common import release
from apps.common.spans import Span
from apps.warc import pages
from bench.common.sample import Sample
from bench.eager import __main__ as bench
from bench.eager import applications, bodies, cases, measure, on_ray, ours, picture, rows

SECOND = 1_000_000_000
WORK = cases.Work("warc", 200, "hpc-node", True)


def samples():
    """Overheads of 1.01 and 1.5, and an application that takes half of the lazy time."""

    def of(lazy, eager, stream, ray=None):
        found = {"lazy": lazy, "eager": eager, "stream": stream, "ray": ray}
        return {name: Sample((value,)) for name, value in found.items() if value is not None}

    ideal = {name: {"lazy": Sample((4.5,))} for name in ("warc:ideal", "warc:producer")}
    return {
        "returns_10": of(1.0, 1.01, 1.5, 9.0),
        "integers_1M": of(2.0, 1.0, 1.0, 0.5),
        "warc": of(10.0, 5.0, None, 6.0),
        "release_1": of(None, 40e-6, None),
        "release_1:serialising": of(None, 2e-6, None),
        **ideal,
    }


LISTED = [cases.Overhead("returns_10", 1, 10), cases.Overhead("integers_1M", 1, 200, 1_000_000)]


def test_the_published_series_are_all_there():
    names = [case.name for case in cases.overheads(quick=False)]
    assert names[:4] == ["returns_10", "returns_100", "returns_1000", "returns_10000"]
    assert names[4:9] == [f"integers_{count}M" for count in range(1, 6)]
    assert names[9:] == ["producers_1", "producers_2", "producers_4", "producers_8"]
    assert all(case.words for case in cases.overheads(quick=True))


def test_each_size_has_a_row_and_the_largest_one_on_every_layer():
    made = cases.works({"warc": (5, 9)}, ("hpc-node", "disk"))
    assert [work.name for work in made] == ["warc_5", "warc", "warc_disk"]


@pytest.mark.parametrize("contender", ["lazy", "eager", "stream"])
@pytest.mark.parametrize("case", [cases.Overhead("a", 1, 30), cases.Overhead("b", 3, 5, 100)])
def test_every_value_of_every_producer_reaches_a_consumer(contender, case, monkeypatch):
    seen = []
    take = al.task(lambda value: value if isinstance(value, int) else sum(value))

    def noting(value):
        future = take(value)
        seen.append(future)
        return future

    with ours.session(2):
        monkeypatch.setattr(ours, "take", noting)
        assert ours.once(contender, case) > 0
        found = sorted(future.result() for future in seen)
    values = bodies.values(case.returns, case.integers)
    one = [value if isinstance(value, int) else sum(value) for value in values]
    assert found == sorted(one * case.producers)


def test_a_release_and_serialising_the_value_are_timed_in_the_task():
    with ours.session(1):
        taken, serialising = ours.release_cost(50)
    assert 0 < serialising < 1
    assert 0 < taken < 1


def test_rows_tell_totals_gains_the_ideal_and_the_worst():
    found = {row.row: row for row in rows.all_rows(LISTED, [WORK], samples())}
    assert found["returns_10"].ratio == 1.01
    assert found["returns_10"].against == {"lazy": 1.0, "ray": 9.0}
    assert found["returns_10_stream"].ratio == 1.5
    assert (found["warc"].ratio, found["warc"].target) == (0.5, 0.65)
    assert found["warc_gain"].ours == 50.0
    assert found["warc_vs_ideal"].ratio == pytest.approx(1.111)
    assert found["warc_vs_ideal"].against["producer"] == 4.5
    assert found["worst_release_overhead"].ours == 1.01
    assert found["worst_overhead"].ours == 1.5
    assert found["worst_overhead"].against == {"row": "returns_10_stream"}
    assert (found["release_1"].ratio, found["release_1"].target) == (1.25, 1.0)
    assert found["worst_vs_ray"].ratio == 2.0
    missed = {name for name, row in found.items() if rows.is_missed(row)}
    late = {"returns_10_stream", "warc_vs_ideal", "worst_overhead", "worst_vs_ray"}
    assert missed == {*late, "release_1"}


def test_a_ratio_is_that_of_the_runs_beside_each_other():
    ours, theirs = Sample((1.0, 3.0, 2.0)), Sample((2.0, 3.0, 1.0))
    assert rows.ratio(ours, theirs) == 1.0
    assert rows.ratio(Sample((1.0, 3.0, 4.0)), Sample((2.0, 6.0, 1.0))) == 0.5
    assert rows.ratio(ours, Sample(note="not run")) is None
    assert rows.ratio(ours, Sample((4.0,))) == 0.5, "of the medians, where one ran more often"


def test_what_was_not_run_says_why():
    gap = {"warc": {"lazy": Sample((1.0,)), "eager": Sample(note="failed: why")}}
    found = {row.row: row for row in rows.all_rows([], [WORK], gap)}
    assert found["warc"].ours == "failed: why"
    assert found["warc"].ratio is None
    assert found["warc_gain"].ours == found["worst_overhead"].ours == "no figure"


class Parted:
    """An application with two consumers a thing and a final task."""

    consumers = ("a", "b")
    final = ("end",)


def spans(*listed):
    return [Span(kind, int(start * SECOND), int(end * SECOND), int(cpu * SECOND))
            for kind, start, end, cpu in listed]  # fmt: skip


def test_the_ideal_is_the_producer_and_the_last_consumers_or_all_work():
    listed = spans(
        ("read", 1, 2, 0.5), ("read", 2, 5, 0.5), ("a", 6, 8, 2), ("b", 6, 7, 1), ("fold", 8, 9, 1),
        ("end", 9, 11, 2),
    )  # fmt: skip
    lazy = release.Ran(None, listed, SECOND, 12 * SECOND)
    parts = release.parts(Parted(), lazy, 2)
    assert parts == release.Parts(5.0, 1.0, 4.0, 1.5, 3.0, 2)
    assert parts.ideal_s == 5.0 + 1.5 + 3.0
    assert parts._replace(consumers_s=19.0).ideal_s == 20.0 / 2 + 3.0


def test_contenders_run_in_turns_for_their_time_and_often_enough_unless_that_takes_long():
    order = []

    def run(name, seconds):
        return lambda: order.append(name) or seconds

    runs = {"lazy": run("lazy", 5.0), "eager": run("eager", 3.0)}
    counts = {0.1: 1, 1.0: 3, 5.0: measure.ROUNDS_MIN, 60.0: 15}
    for seconds, rounds in counts.items():
        order.clear()
        assert measure.repeated(runs, seconds) == {"lazy": 5.0, "eager": 3.0}
        assert len(order) == 2 * rounds
    turns = [order[at : at + 2] for at in range(0, len(order), 2)]
    assert turns[:2] == [["lazy", "eager"], ["eager", "lazy"]]
    order.clear()
    measure.repeated(runs, 60.0)
    assert order == [name for turn in turns for name in turn], "drawn, the same each time"
    assert ["lazy", "eager"] in turns
    assert ["eager", "lazy"] in turns
    assert all(set(turn) == {"lazy", "eager"} for turn in turns)
    count = iter(range(1, 10_000))
    most = measure.ROUNDS_MAX
    once = {"lazy": lambda: 1e-9 * next(count)}
    assert measure.repeated(once, 1.0) == {"lazy": pytest.approx((most + 1) / 2 * 1e-9)}


class Inline:
    """What of ray the programs use; a call runs at once."""

    def remote(self, body=None, **options):
        if body is None:
            return self.remote
        return SimpleNamespace(remote=body)

    def get(self, values):
        return values


def on_ray_inline(name, folder):
    """A small input's answer by the program for ray, and by the plain one."""
    made = applications.make(name, applications.QUICK_SIZES[name][0], folder, quick=True)
    return on_ray.RUNS[name](Inline(), made.job, None).answer, made.plain()


def test_the_programs_of_ray_find_what_the_plain_ones_do(tmp_path):
    fit, plain = on_ray_inline("pairwise", tmp_path)
    for found, expected in zip(fit, plain, strict=True):
        np.testing.assert_array_equal(found, expected)
    temperatures, plain = on_ray_inline("domains", tmp_path)
    np.testing.assert_allclose(temperatures, plain, rtol=1e-12)


def test_lanes_keep_bodies_apart():
    made = picture.lanes([("a", 0.0, 2.0), ("b", 1.0, 3.0), ("c", 2.0, 4.0)])
    assert [[bar[0] for bar in lane] for lane in made] == [["a", "c"], ["b"]]


def test_the_picture_is_drawn_with_and_without_figures(tmp_path):
    timeline = tmp_path / "lazy.json"
    timeline.with_suffix(".spans").write_text(json.dumps([["read", 0, 1], ["a", 1, 2]]))
    measured = samples()
    measured["returns_10"]["ray"] = Sample((8.0, 9.0, 10.0))
    picture.draw(LISTED, [WORK], measured, [timeline], tmp_path / "a.png", "note")
    assert not timeline.with_suffix(".spans").exists()
    picture.draw([], [], {}, [], tmp_path / "b.png", "note")
    assert (tmp_path / "a.png").stat().st_size > (tmp_path / "b.png").stat().st_size > 5000


@pytest.mark.parametrize("bad", [["--applications", "x"], ["--workers", "0"], ["--seconds", "0"]])
def test_impossible_options_are_refused(bad, capsys):
    with pytest.raises(SystemExit):
        bench.parse(bad)
    assert capsys.readouterr().err


def test_an_application_without_its_input_is_told(tmp_path, monkeypatch):
    def absent(*args, **options):
        raise pages.PagesMissingError("no pages here")

    monkeypatch.setattr(applications, "make", absent)
    options = bench.parse(["--quick", "--no-overheads", "--out", str(tmp_path)])
    made = bench.Bench(options, tmp_path)
    made.prepare()
    assert made.groups() == []
    found = {row.row: row for row in rows.all_rows([], made.works, made.complete({}))}
    for name in ("warc", "pairwise", "domains"):
        assert found[name].ours == "PagesMissingError: no pages here"


def test_the_command_writes_its_files(tmp_path, capsys):
    options = ["--quick", "--applications", "none", "--repetitions", "1", "--seconds", "0.001"]
    assert bench.main([*options, "--out", str(tmp_path)]) == 0
    found = {row["row"]: row for row in json.loads((tmp_path / "eager.json").read_text())}
    assert found["returns_10"]["against"]["lazy"] > 0
    assert found["returns_10"]["against"]["ray"] == "left out by --quick"
    assert (tmp_path / "eager.png").exists()
    assert "worst_overhead" in capsys.readouterr().out
