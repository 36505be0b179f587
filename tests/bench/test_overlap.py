"""Tests of the balance and of the bound."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.common import machine
from bench.common.interleave import run_once
from bench.common.sample import Sample
from bench.overlap.__main__ import prepare, run_of, turns
from bench.overlap.bodies import START
from bench.overlap.judge import WAYS, judge
from bench.overlap.plan import PIECE_BYTES, Program, balanced, sized

PROGRAM = Program(
    folder="x",
    processors=2,
    chains=4,
    steps=25,
    files=25,
    rounds=100,
    file_bytes=4 << 20,
    writers=4,
    direct=True,
)


def samples(
    io: float, io_cpu: float, compute_cpu: float, ours: float
) -> dict[str, dict[str, Sample]]:
    """One value each."""
    values = {
        "io_alone": (io, io_cpu),
        "compute_alone": (compute_cpu / 2, compute_cpu),
        "side_by_side": (ours, 0.0),
        "alongside": (ours, 0.0),
        "by_hand": (ours, 0.0),
        "blocking": (ours, 0.0),
    }
    return {
        way: {"wall_s": Sample((wall,)), "cpu_s": Sample((cpu,))}
        for way, (wall, cpu) in values.items()
    }


def test_a_program_travels_as_json() -> None:
    assert Program.from_json(PROGRAM.to_json()) == PROGRAM


def test_files_are_sized_to_the_time_wanted() -> None:
    assert sized(PROGRAM, 0.5, 1.0, 10**12).file_bytes == 8 << 20
    assert sized(PROGRAM, 1e9, 1.0, 10**12).file_bytes == PIECE_BYTES


def test_files_stay_within_what_the_disk_may_hold_and_are_taken_in_turn() -> None:
    bytes_max = 1200 << 20
    program = sized(PROGRAM, 0.5, 4.0, bytes_max)
    assert program.chains * program.files * program.file_bytes <= bytes_max
    assert program.bytes_written == pytest.approx(8 * PROGRAM.bytes_written, rel=0.1)
    assert program.steps > program.files
    assert program.name(1, 0) == program.name(1, program.files)


def test_computation_is_balanced_against_the_io() -> None:
    program = balanced(PROGRAM, io_s=2.0, round_cpu_s=1e-5, share=0.5)
    seconds_on_all_processors = program.tasks * program.rounds * 1e-5 / program.processors
    assert seconds_on_all_processors == pytest.approx(1.0, rel=0.01)


def test_the_bound_is_the_larger_term() -> None:
    by_io = judge("equal", samples(io=2.0, io_cpu=0.2, compute_cpu=3.0, ours=2.1), cores=2)
    assert (by_io.bound_s, by_io.bound_is) == (2.0, "I/O")
    assert by_io.ratio == pytest.approx(1.05)
    by_processors = judge("equal", samples(2.0, 0.4, 4.0, 2.42), cores=2)
    assert by_processors.bound_s == pytest.approx(2.2)
    assert by_processors.bound_is == "processors"
    assert by_processors.ratio == pytest.approx(1.1)
    row = by_processors.json_row()
    assert (row.row, row.unit, row.target) == ("equal", "s", 1.05)
    assert row.ratio == pytest.approx(1.1)
    assert row.against["bound"] == pytest.approx(2.2)


def test_what_ours_is_divided_by_runs_directly_beside_it() -> None:
    order = turns(PROGRAM)
    assert sorted(order) == sorted(WAYS)
    ours = order.index("alongside")
    assert order[ours - 1 : ours + 2] == ["io_alone", "alongside", "side_by_side"]
    limited = replace(PROGRAM, limit="200MB/s")
    assert turns(limited) == ["io_alone", "alongside", "compute_alone"]


def test_side_by_side_is_told_and_changes_neither_bound_nor_ratio() -> None:
    measured = samples(io=2.0, io_cpu=0.2, compute_cpu=3.0, ours=2.1)
    measured["side_by_side"] = {"wall_s": Sample((4.2,)), "cpu_s": Sample((3.3,))}
    judged = judge("equal", measured, cores=2)
    assert (judged.bound_s, judged.ratio) == (2.0, pytest.approx(1.05))
    assert judged.over("side_by_side") == pytest.approx(0.5)
    assert judged.json_row().against["side_by_side"] == 4.2
    measured["side_by_side"] = dict.fromkeys(("wall_s", "cpu_s"), Sample(note="without a limit"))
    assert judge("equal", measured, cores=2).over("side_by_side") is None


def test_side_by_side_lasts_until_both_parts_have_ended(tmp_path: Path) -> None:
    short_io = replace(
        PROGRAM, folder=str(tmp_path), steps=4, files=2, file_bytes=PIECE_BYTES, direct=False
    )
    program = replace(short_io, rounds=1000)
    prepare(program)
    outcome = run_once(run_of("side_by_side", program))
    wall_s, cpu_s = float(outcome["wall_s"]), float(outcome["cpu_s"])
    assert wall_s * machine.cores() > 0.8 * cpu_s  # that of the I/O alone would be far less
    computing = run_once(run_of("compute_alone", program))
    assert cpu_s > 0.5 * float(computing["cpu_s"])
    for chain in range(program.chains):
        assert Path(program.path(chain, 1)).read_bytes().startswith(START)


@pytest.mark.parametrize("way", ["io_alone", "alongside"])
def test_a_layer_with_a_limit_holds_the_files(tmp_path: Path, way: str) -> None:
    small = replace(PROGRAM, steps=2, files=2, file_bytes=PIECE_BYTES, direct=False)
    program = replace(small, folder=str(tmp_path), limit="200MB/s")
    prepare(program)
    outcome = run_once(run_of(way, program))
    assert float(outcome["wall_s"]) > 0.5 * program.bytes_written / 200e6
    assert Path(program.path(0, 1)).read_bytes().strip(bytes(1))


def test_without_ours_there_is_a_bound_and_no_ratio() -> None:
    measured = samples(1.0, 0.1, 1.0, 1.0)
    measured["alongside"] = dict.fromkeys(("wall_s", "cpu_s"), Sample(note="not installed"))
    judged = judge("equal", measured, cores=2)
    assert judged.bound_s == 1.0
    assert judged.ratio is None
    assert judged.json_row().ours == "not installed"
