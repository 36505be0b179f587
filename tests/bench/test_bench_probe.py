"""The comparison of probes: what is compared, and one whole run of it with tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench.probe import __main__ as bench


def found(write: dict[int, float], read: dict[int, float]) -> dict[str, Any]:
    """What a probe says, with these curves."""

    def side(curve: dict[int, float]) -> dict[str, Any]:
        best = max(curve, key=lambda writers: curve[writers])
        points = [{"writers": key, "bandwidth": value} for key, value in curve.items()]
        return {"best": {"writers": best, "bandwidth": curve[best]}, "curve": points}

    return {"write": side(write), "read": side(read)}


def test_the_best_and_the_worst_point_of_the_curves_are_compared() -> None:
    one = found({1: 50e6, 2: 100e6}, {1: 80e6, 2: 70e6})
    other = found({1: 60e6, 2: 102e6}, {1: 78e6, 2: 70e6})
    rows = {row.row: row for row in bench.rows_of("disk", [one, other, one])}
    assert set(rows) == {"disk_write", "disk_write_curve", "disk_read", "disk_read_curve"}
    assert (rows["disk_write"].ours, rows["disk_write"].ratio) == (102.0, 1.02)
    curve = rows["disk_write_curve"]
    assert (curve.ours, curve.against, curve.ratio) == (60.0, {"lowest": 50.0}, 1.2)
    assert bench.GOAL.verdict(curve.ratio) == "NO"
    assert bench.GOAL.verdict(rows["disk_read_curve"].ratio) == "yes"


def test_a_disk_is_probed_as_often_as_asked_and_keeps_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise bench.SlowDiskUnavailableError("not here")

    monkeypatch.setattr(bench, "kernel_disk", none)
    tiny = ["--block", "4KiB", "--writers", "1,2", "--rounds", "2", "--space", "64KiB"]
    assert bench.main(["--out", str(tmp_path), "--times", "3", "--", *tiny, "--data", "4MB"]) == 0
    rows = json.loads((tmp_path / "probe.json").read_text())
    assert [row["row"] for row in rows] == [
        "disk_write",
        "disk_write_curve",
        "disk_read",
        "disk_read_curve",
    ]
    assert all(row["ratio"] >= 1 for row in rows)
    assert {path.name for path in tmp_path.iterdir()} == {"probe.json", "probe.png"}


def test_a_probe_that_fails_says_why(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="gone"):
        bench.probe(tmp_path / "gone", [])
