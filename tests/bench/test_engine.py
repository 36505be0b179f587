"""Tests of what the engine's benchmark makes of fio's report, and of its rows."""

from __future__ import annotations

import json

from bench.engine.measure import Plan, fio_command, fio_figures
from bench.engine.rows import WORKLOADS, question

PLAN = Plan(file="x", binary="y", seconds=1.0, depth=64, jobs=2)


def test_the_report_of_fio_is_read_behind_its_warnings() -> None:
    side = {
        "total_ios": 20,
        "iops": 10.5,
        "clat_ns": {"percentile": {"50.000000": 2000, "99.000000": 9000}},
    }
    report = {"jobs": [{"read": {"total_ios": 0}, "write": side}]}
    figures, count = fio_figures("fio: a note\n" + json.dumps(report))
    assert count == 20
    assert figures == {"iops": 10.5, "p50": 2.0, "p99": 9.0}


def test_fio_has_as_many_requests_in_flight_as_ours() -> None:
    for engine, threads, depth in (("io_uring", 2, 32), ("psync", 64, 1)):
        command = fio_command(engine, WORKLOADS[0], PLAN)
        assert f"--numjobs={threads}" in command
        assert f"--iodepth={depth}" in command


def test_each_workload_has_its_rows_and_their_goals() -> None:
    rows = [row for workload in WORKLOADS for row in workload.rows]
    judged = [row for row in rows if question(row).goal.target is not None]
    assert judged == [
        "randread_4k",
        "randread_4k_cpu",
        "write_128k",
        "write_128k_cpu",
        "write_1m",
        "write_1m_cpu",
    ]
    assert question("write_1m").goal.higher
    assert not question("write_1m_cpu").goal.higher
