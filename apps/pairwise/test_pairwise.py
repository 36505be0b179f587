"""The application's promises: groups hold every read once, and both ways agree."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

from importlib import metadata
from pathlib import Path

import pytest

import alongside as al
from apps.common import release
from apps.variants import data as variants

from . import data, plain, run

PAIRS, GROUP, PART = 260, 40, 4


@pytest.fixture
def application(tmp_path: Path) -> run.Pairwise:
    """13 groups in 4 parts; the last part is one group."""
    return run.Pairwise(tmp_path / "input", PAIRS, GROUP, PART)


def test_groups_hold_every_read_once_and_pairs_together(application: run.Pairwise) -> None:
    with application.job.reads.open("rb") as file:
        texts = list(data.groups(file, GROUP))
    assert len(texts) == application.job.groups == 13
    pairs = [pair for text in texts for pair in variants.pairs_of(text.decode())]
    assert len(pairs) == PAIRS
    assert all(pair.first.name == pair.second.name for pair in pairs)
    assert [text.count(b"\n") for text in texts] == [4 * GROUP] * 13


def test_a_file_that_does_not_divide_has_a_smaller_last_group(tmp_path: Path) -> None:
    job = run.Pairwise(tmp_path, 50, 33).job
    assert (job.group, job.groups) == (34, 3)
    with job.reads.open("rb") as file:
        assert [text.count(b"\n") // 4 for text in data.groups(file, job.group)] == [34, 34, 32]


@pytest.mark.parametrize("way", release.WAYS)
def test_both_ways_find_what_the_plain_program_finds(application: run.Pairwise, way: str) -> None:
    with al.Session(workers=2):
        ran = application.run(way)
    assert application.check(ran.answer) == ""
    assert application.fingerprint(ran.answer) == application.fingerprint(application.plain())
    kinds = [span.kind for span in ran.spans]
    assert [kinds.count(kind) for kind in ("read", "align", "total")] == [13, 13, 1]
    assert ran.answer.reads == 2 * PAIRS
    assert ran.answer.aligned > 1.6 * PAIRS


def test_a_part_is_read_when_the_one_before_it_was_aligned(application: run.Pairwise) -> None:
    with al.Session(workers=2):
        spans = application.run("lazy").spans
    reads = sorted(span.start_ns for span in spans if span.kind == "read")
    aligned = sorted(span.end_ns for span in spans if span.kind == "align")
    for number in range(PART, application.job.groups, PART):
        assert aligned[number - 1] < reads[number]


def test_the_check_finds_what_is_not_equal(application: run.Pairwise) -> None:
    right = plain.run(application.job)
    assert application.check(right._replace(aligned=1)).startswith("counts (520, 1,")
    depth = right.depth.copy()
    depth[7] += 1
    assert application.check(right._replace(depth=depth)) == "the depth"


def test_the_command_checks_both_ways(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--pairs", "200", "--group", "50", "--part", "3"]
    assert run.main([*sizes, "--check", "--layers", "disk", "--out", str(tmp_path)]) == 0
    assert "check: 2 of 2 runs equal the plain run" in capsys.readouterr().out
    assert (tmp_path / "depth.txt").exists()


def test_a_missing_wheel_is_named_with_its_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    assert run.main(["--quick", "--out", str(tmp_path)]) == 2
    assert "pip install --no-deps sequana" in capsys.readouterr().err
