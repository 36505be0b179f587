"""Tests of what the benchmarks share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bench.common import interleave, machine, tree
from bench.common.interleave import Run, run_once, run_rounds
from bench.common.report import Goal, Row, make_row, number, write_json
from bench.common.sample import Sample, combine, significant

ANSWER = "import json, sys; json.dump({{'row': {value}}}, open(sys.argv[-1], 'w'))"


def script(value: str, timeout_s: float = 30.0) -> Run:
    """Make a contender that answers with that expression."""
    return Run("one", ("-c", ANSWER.format(value=value)), ("row",), timeout_s)


def test_median_and_spread() -> None:
    sample = Sample((1.0, 3.0, 2.0))
    assert (sample.median, sample.low, sample.high, sample.spread) == (2.0, 1.0, 3.0, 0.5)
    assert sample.shown() == 2.0


def test_a_sample_without_values_says_why() -> None:
    sample = Sample(note="not installed")
    assert sample.median is None
    assert sample.shown() == "not installed"
    with pytest.raises(ValueError, match="either values or a note"):
        Sample()


def test_one_failure_leaves_no_figure() -> None:
    assert combine([1.0, "failed: it broke", 2.0]) == Sample(note="failed: it broke")
    assert combine([]) == Sample(note="not run")


@pytest.mark.parametrize(("value", "rounded"), [(123456.0, 123500.0), (0.0012345, 0.001234)])
def test_significant(value: float, rounded: float) -> None:
    assert significant(value) == pytest.approx(rounded, rel=1e-3)


def test_ratio_is_over_the_best_of_the_peers() -> None:
    peers = {"a": Sample((4.0,)), "b": Sample((2.0,)), "c": Sample(note="not installed")}
    lower, higher = Goal(("a", "b", "c"), 1.0), Goal(("a", "b"), 1.0, higher=True)
    assert lower.ratio(Sample((1.0,)), peers) == 0.5
    assert higher.ratio(Sample((8.0,)), peers) == 2.0
    assert Goal(("c",), 1.0).ratio(Sample((1.0,)), peers) is None
    assert Goal(("a",), 1.0).ratio(Sample(note="failed"), peers) is None


def test_verdicts() -> None:
    assert [Goal((), 1.3).verdict(ratio) for ratio in (1.3, 1.31, None)] == ["yes", "NO", ""]
    assert [Goal((), 4.0, higher=True).verdict(ratio) for ratio in (4.0, 3.9)] == ["yes", "NO"]


def test_json_has_the_agreed_fields_in_order(tmp_path: Path) -> None:
    peers = {"processes": Sample((2.0,)), "ray": Sample(note="not installed")}
    row = make_row("noop", "tasks/s", Sample((8.0,)), peers, Goal(("processes",), 4.0, True))
    write_json(tmp_path / "deep" / "noop.json", [row])
    written = json.loads((tmp_path / "deep" / "noop.json").read_text())
    assert written == [
        {
            "row": "noop",
            "unit": "tasks/s",
            "ours": 8.0,
            "against": {"processes": 2.0, "ray": "not installed"},
            "ratio": 4.0,
            "target": 4.0,
        }
    ]
    assert list(written[0]) == ["row", "unit", "ours", "against", "ratio", "target"]
    assert isinstance(row, Row)
    assert os.listdir(tmp_path / "deep") == ["noop.json"]


def test_numbers_for_people() -> None:
    assert [number(value) for value in (12345.6, 123.4, 12.34, 1.234, 0.01234)] == [
        "12,346",
        "123",
        "12.3",
        "1.23",
        "0.0123",
    ]


def test_contenders_take_turns() -> None:
    order: list[str] = []

    def execute(run: Run) -> interleave.Outcome:
        order.append(run.contender)
        return {"row": float(len(order))}

    group = [Run(name, (), ("row",), 1.0) for name in "abc"]
    samples = run_rounds([group], 2, lambda run, repetition: None, execute)
    assert "".join(order) == "abcabc"
    assert samples["row"]["b"].values == (2.0, 5.0)


def test_another_contender_begins_each_round_that_rotates() -> None:
    order: list[str] = []

    def execute(run: Run) -> interleave.Outcome:
        order.append(run.contender)
        return {"row": float(len(order))}

    group = [Run(name, (), ("row",), 1.0) for name in "abc"]
    samples = run_rounds([[], group], 4, lambda run, repetition: None, execute, rotates=True)
    assert "".join(order) == "abcbcacababc"
    assert samples["row"]["b"].values == (2.0, 4.0, 9.0, 11.0)


def test_a_failed_contender_is_not_asked_again() -> None:
    calls: list[str] = []

    def execute(run: Run) -> interleave.Outcome:
        calls.append(run.contender)
        return {"row": "failed: it broke"} if run.contender == "a" else {"row": 1.0}

    group = [Run("a", (), ("row",), 1.0), Run("b", (), ("row",), 1.0, repetitions_max=2)]
    samples = run_rounds([group], 3, lambda run, repetition: None, execute)
    assert calls == ["a", "b", "b"]
    assert samples["row"]["a"].note == "failed: it broke"
    assert samples["row"]["b"].values == (1.0, 1.0)


def test_a_process_answers() -> None:
    assert run_once(script("1.5")) == {"row": 1.5}


def test_a_process_that_fails_says_why() -> None:
    outcome = run_once(Run("one", ("-c", "raise SystemExit('no such thing')"), ("row",), 30.0))
    assert outcome == {"row": "failed: no such thing"}


def test_a_process_that_hangs_is_ended_with_its_children() -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'input()'], stdin=0)"
    code = code.replace("stdin=0", "stdin=subprocess.PIPE").replace("run(", "Popen(")
    started = time.monotonic()
    outcome = run_once(Run("one", ("-c", code + "; import time; time.sleep(60)"), ("row",), 0.5))
    assert outcome == {"row": "no answer in 0 s"}
    assert time.monotonic() - started < 20


def test_the_wall_time_is_not_rounded_to_a_polling_interval() -> None:
    run = Run("one", ("-S", "-c", "pass"), ("startup",), 30.0, outside=True)
    times = [float(run_once(run)["startup"]) for _ in range(5)]
    assert min(times) < 0.5
    assert len({round(value, 4) for value in times}) > 1


def test_memory_of_a_tree_is_seen() -> None:
    code = "import sys; held = bytearray(b'x') * 60_000_000; import time; time.sleep(0.5); " + (
        ANSWER.format(value="0")
    )
    outcome = run_once(Run("one", ("-c", code), ("row",), 30.0, memory=True))
    assert 60 < float(outcome["row"]) < 200


def test_marked_processes_are_found_and_ended() -> None:
    mark = tree.new_mark()
    with subprocess.Popen(
        [sys.executable, "-c", "input()"],
        stdin=subprocess.PIPE,
        env={**os.environ, tree.MARK: mark},
    ) as process:
        while process.pid not in tree.members(mark):
            assert process.poll() is None
        assert tree.memory_bytes(process.pid) > 0
        assert tree.end_all(mark) == 1
        assert process.wait() == -9
    assert tree.members(mark) == []
    assert tree.memory_bytes(process.pid) == 0


def test_patience_repeats_what_others_disturbed(monkeypatch: pytest.MonkeyPatch) -> None:
    shares = iter([0.0, 0.5, 0.0, 0.0])  # free, disturbed run, free, undisturbed run
    monkeypatch.setattr(machine.Disturbance, "others", lambda self: next(shares))
    monkeypatch.setattr(interleave, "LOOK_S", 0.0)
    outcomes = iter([1.0, 2.0])
    patience = interleave.Patience(60.0, lambda run: {"row": next(outcomes)})
    assert patience(script("0")) == {"row": 2.0}
    assert patience.thrown_away == 1


def test_without_patience_a_run_counts_as_it_comes() -> None:
    patience = interleave.Patience(0.0, lambda run: {"row": 1.0})
    assert patience(script("0")) == {"row": 1.0}
    assert patience.thrown_away == 0
