"""Tests of the task-I/O meter's plan, bound and verdicts."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from bench.common import native
from bench.common.interleave import Run
from bench.common.sample import Sample
from bench.tiom import limit, maps, plan
from bench.tiom.judge import (
    LIMITED,
    NO_HARM,
    Judged,
    best_write,
    limited_row,
    paired,
    summary,
    worst_speed,
    worst_vs_bound,
)
from bench.tiom.limit import Limit, LimitUnavailableError
from bench.tiom.measure import WAYS, Programs, Samples, run_of
from bench.tiom.options import parse
from bench.tiom.plan import KIB, MIB, Cell, Setup, Work

CELL = Cell("mix", "write", 1.0, 64 * KIB)
SETUP = Setup("file", 1 << 30, workers=2, series=8, loops_per_ms=1000.0)
WORK = Work(CELL, series=8, steps=100)
PROGRAMS = Programs(Path("tiom"), Path("tiom_omp"), Path("tiom_alone"))
ALL_BYTES = float(WORK.total_bytes)


def of_way(*walls_s: float, cpu_s: float = 0.0, computed: float = 0.0) -> dict[str, Sample]:
    """The samples of a way that took these times."""
    count = len(walls_s)
    return {
        "wall_s": Sample(walls_s),
        "cpu_s": Sample((cpu_s,) * count),
        "bytes": Sample((ALL_BYTES,) * count),
        "computed": Sample((computed,) * count),
    }


def judged(
    nonblocking: float, blocking: float, again: float = 1.0, cell: Cell = CELL, io_s: float = 0.1
) -> Judged:
    """A cell whose standalone took a second and whose computation takes 0.8 s of a processor."""
    samples: Samples = {way: of_way(1.0, 1.0, 1.0) for way in WAYS}
    samples["nonblocking"] = of_way(*[nonblocking] * 3)
    samples["blocking"] = of_way(*[blocking] * 3)
    samples["standalone2"] = of_way(*[again] * 3)
    samples["io"] = of_way(*[io_s] * 3, cpu_s=0.08)
    samples["compute"] = of_way(*[0.05] * 3, cpu_s=0.1, computed=100.0)
    return Judged(Work(cell, WORK.series, WORK.steps), 2, samples)


def test_a_grid_has_every_combination() -> None:
    grid = plan.cells(("mix", "fjio"), ("write",), (1.0, 4.0), (4 * KIB, MIB))
    assert len(grid) == 8
    assert grid[0].name == "mix write 1 ms 4 KiB"
    assert grid[-1].name == "fjio write 4 ms 1 MiB"


def test_the_full_grid_is_that_of_the_paper() -> None:
    assert (plan.COMPUTES_MS[0], plan.COMPUTES_MS[-1]) == (1.0, 128.0)
    assert (plan.BLOCKS_BYTES[0], plan.BLOCKS_BYTES[-1]) == (4 * KIB, 8 * MIB)
    assert set(plan.QUICK_COMPUTES_MS) <= set(plan.COMPUTES_MS)
    assert set(plan.QUICK_BLOCKS_BYTES) <= set(plan.BLOCKS_BYTES)


def test_a_cell_has_as_many_steps_as_its_time_allows() -> None:
    # 8 series on 2 workers compute 4 ms a step, and transfer 8 x 0.125 ms
    assert plan.sized(CELL, SETUP, 0.125e-3, 1.0).steps == 200
    assert plan.sized(CELL, SETUP, 10.0, 1.0).steps == plan.STEPS_MIN
    assert plan.sized(CELL, SETUP, 0.0, 1e9).steps == plan.STEPS_MAX


def test_a_balanced_cell_has_steps_enough_to_hide_its_ends() -> None:
    balanced = plan.sized(CELL, SETUP, 0.5e-3, 0.01)
    assert balanced.steps == pytest.approx(1 / plan.EDGE_SHARE_MAX, abs=1)
    assert plan.sized(CELL, SETUP, 0.5e-5, 0.01).steps == plan.STEPS_MIN


def test_work_counts_what_the_mode_multiplies() -> None:
    fjio = Work(Cell("fjio", "write", 1.0, 4 * KIB), 8, 10)
    fjc = Work(Cell("fjc", "write", 1.0, 4 * KIB), 8, 10)
    assert (fjio.transfers, fjio.computations) == (320, 80)
    assert (fjc.transfers, fjc.computations) == (80, 320)
    assert fjio.total_bytes == 320 * 4 * KIB


def test_the_computation_alone_is_a_part_of_the_work() -> None:
    alone = plan.compute_alone(WORK, workers=2)
    assert alone.computations == pytest.approx(300, abs=8)
    short = Work(CELL, 8, 3)
    assert plan.compute_alone(short, 2).steps == 3


def test_the_limit_makes_the_io_as_long_as_the_computation() -> None:
    limit_bytes_s = plan.limit_bytes_s(CELL, workers=2)
    computing_s = WORK.computations * 1e-3 / 2
    assert WORK.total_bytes / limit_bytes_s == pytest.approx(computing_s)


def test_each_way_runs_its_program() -> None:
    commands = {way: run_of(PROGRAMS, way, SETUP, WORK, ()).arguments for way in WAYS}
    assert commands["standalone"][0] == "tiom"
    assert commands["standalone"] == commands["standalone2"]
    assert commands["blocking"][0] == "env"
    assert commands["blocking"][1].endswith("libalongside_preload.so")
    assert "--version=blocking" in commands["blocking"]
    assert commands["omp-nonblocking"][0] == "tiom_omp"
    assert commands["io"][:2] == ("tiom_alone", "--version=io")
    prefixed = run_of(PROGRAMS, "blocking", SETUP, WORK, ("sh",)).arguments
    assert prefixed[:2] == ("sh", "env")


def test_the_bound_is_the_larger_term() -> None:
    # 800 computations of 1 ms and 0.08 s for the I/O, on two processors
    megabytes = ALL_BYTES / MIB
    assert judged(0.5, 0.5, io_s=0.1).bound_rates == pytest.approx([megabytes / 0.44] * 3)
    assert judged(0.5, 0.5, io_s=0.6).bound_rates == pytest.approx([megabytes / 0.6] * 3)


def test_speeds_are_relative_to_standalone() -> None:
    cell = judged(0.5, 2.0)
    assert cell.speed("nonblocking") == pytest.approx(2.0)
    assert cell.speed("blocking") == pytest.approx(0.5)
    assert cell.speed("omp-nonblocking") == pytest.approx(1.0)
    assert cell.over_bound("nonblocking") == pytest.approx(0.5 / 0.44)
    assert cell.allowed == pytest.approx(1 / 0.44)


def test_ways_are_compared_within_a_repetition() -> None:
    assert paired([10.0, 5.0, 1.0], [10.0, 5.0, 1.0]) == 1.0
    assert paired([2.0, 2.0, 100.0], [1.0, 1.0, 1.0]) == 2.0
    assert paired([], [1.0]) is None


def test_the_worst_cell_counts_and_its_noise_is_allowed() -> None:
    other = Cell("mix", "write", 4.0, 4 * KIB)
    quiet, noisy = judged(0.9, 1.0), judged(1.05, 1.0, again=1.04, cell=other)
    row = worst_speed([quiet, noisy], "nonblocking")
    assert isinstance(row.ours, float)
    assert row.ours < 0.98
    assert row.against["cell"] == other.name
    assert row.against["noise"] == pytest.approx(1 - 1 / 1.04, abs=1e-4)
    assert row.ratio is not None
    assert NO_HARM.verdict(row.ratio) == "yes"
    harmed = worst_speed([judged(1.05, 1.0)], "nonblocking")
    assert NO_HARM.verdict(harmed.ratio) == "NO"


def test_only_cells_with_room_are_judged_against_the_bound() -> None:
    assert worst_vs_bound([judged(0.9, 0.9, io_s=0.95)]).ratio is None
    row = worst_vs_bound([judged(0.9, 0.9, io_s=0.95), judged(0.45, 0.46)])
    assert row.ratio == pytest.approx(0.46 / 0.44, abs=1e-3)
    assert row.against["cells"] == 1.0


def test_the_best_write_is_named() -> None:
    reads = Cell("mix", "read", 1.0, 4 * KIB)
    row = best_write([judged(0.8, 1.0), judged(0.5, 1.0, cell=reads)])
    assert row.ours == pytest.approx(1.25)
    assert row.against["cell"] == CELL.name


def test_a_way_that_failed_leaves_no_figure_but_its_words() -> None:
    cell = judged(0.5, 0.5)
    note = "failed: bytes lost or altered"
    cell.samples["blocking"] = {row: Sample(note=note) for row in cell.samples["io"]}
    assert cell.failures == [f"{CELL.name}, blocking: {note}"]
    assert cell.speed("blocking") is None
    assert worst_speed([cell], "blocking").ratio is None
    assert cell.json_row().against["blocking"] == note


def test_the_summary_has_its_rows_in_order() -> None:
    names = [row.row for row, _ in summary([judged(0.5, 0.5)])]
    assert names == ["worst_nonblocking", "worst_blocking", "best_write", "worst_vs_bound"]
    assert limited_row(None, "not root").ours == "not root"
    row = limited_row(judged(0.5, 0.5), "a slow disk")
    assert row.ratio == pytest.approx(2.0)
    assert row.against["limit"] == "a slow disk"
    assert LIMITED.verdict(2.0) == "yes"


def test_quick_is_a_smaller_grid() -> None:
    quick, full = parse(["--quick"], None), parse([], None)
    assert len(quick.computes) * len(quick.blocks) == 12
    assert len(full.computes) * len(full.blocks) == 96
    assert parse(["--computes=2", "--blocks=8"], None).blocks == (8 * KIB,)
    for wrong in ("--modes=mixed", "--computes=x", "--repetitions=0"):
        with pytest.raises(SystemExit):
            parse([wrong], None)
    assert isinstance(quick, argparse.Namespace)


def test_without_root_there_is_no_limit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(limit.os, "geteuid", lambda: 1000)
    with (
        pytest.raises(LimitUnavailableError, match="slow_disk: not root; control group: not root"),
        limit.limited(tmp_path / "slow_disk", tmp_path, CELL, 2),
    ):
        pass


def test_a_control_group_stands_in_where_there_is_no_slow_disk(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def nothing(*arguments: object) -> Limit:
        raise LimitUnavailableError("no FUSE")

    @contextmanager
    def group(file: Path, direction: str, bytes_s: int) -> Iterator[Limit]:
        yield Limit(("sh",), f"{direction} {bytes_s}")

    monkeypatch.setattr(limit, "slow_disk", nothing)
    monkeypatch.setattr(limit, "control_group", group)
    with limit.limited(tmp_path, tmp_path, CELL, 2) as found:
        assert found == Limit(("sh",), "write 131072000 (no slow_disk: no FUSE)")


def test_a_control_group_is_gone_when_it_is_interrupted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / limit.FILES["write"]).write_text("")
    monkeypatch.setattr(limit, "GROUPS", tmp_path)
    monkeypatch.setattr(limit.os, "geteuid", lambda: 0)
    monkeypatch.setattr(limit, "disk_of", lambda file: "254:0")
    monkeypatch.setattr(limit.Path, "rmdir", lambda group: (group / "removed").write_text("yes"))
    with (
        pytest.raises(KeyboardInterrupt),
        limit.control_group(tmp_path, "write", 1000) as found,
    ):
        group = Path(found.prefix[-1])
        assert (group / limit.FILES["write"]).read_text() == "254:0 1000\n"
        raise KeyboardInterrupt
    assert (group / "removed").exists()


def test_labels_of_gains_have_a_sign() -> None:
    assert [maps.label(gain, True) for gain in (12.4, -3.0, 0.2)] == ["+12", "-3", "0"]


def test_maps_are_drawn_for_each_mode(tmp_path: Path) -> None:
    fjio = Cell("fjio", "write", 1.0, 4 * KIB)
    paths = maps.draw([judged(0.5, 1.2), judged(0.5, 1.2, cell=fjio)], tmp_path, "note")
    assert [path.name for path in paths] == ["tiom-mix-write.png", "tiom-fjio-write.png"]
    assert all(path.stat().st_size > 1000 for path in paths)


def test_a_program_answers_with_a_line_of_json() -> None:
    answer = json.dumps({"wall_s": 1.5})
    assert native.execute(Run("a", ("echo", answer), ("wall_s", "cpu_s"), 10.0)) == {
        "wall_s": 1.5,
        "cpu_s": "no value",
    }
    failing = Run("a", ("sh", "-c", "echo first >&2; echo last >&2; exit 1"), ("wall_s",), 10.0)
    assert native.execute(failing) == {"wall_s": "failed: last"}
    assert native.execute(Run("a", ("sh", "-c", "exit 3"), ("w",), 10.0)) == {
        "w": "failed: exit code 3"
    }
