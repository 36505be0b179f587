"""The application's promises: reads lie where it says, and every mode writes the same bytes."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

import os
import re
from importlib import metadata
from pathlib import Path

import mappy  # type: ignore[import-not-found]
import numpy as np
import pytest

import alongside as al
from apps.common import wheels
from apps.common.checkpoints import Checkpoints
from apps.variants import sam

from . import alignment, app, data, plain, run

SAMPLES, PAIRS = 3, 200
Found = list[tuple[alignment.Placed, alignment.Placed]]


@pytest.fixture(scope="module")
def given() -> data.Input:
    return data.find_input()


@pytest.fixture(scope="module", params=[0, 1])
def genome(given: data.Input, request: pytest.FixtureRequest) -> data.Genome:
    return given.genome(request.param)


@pytest.fixture(scope="module")
def found(given: data.Input, genome: data.Genome) -> Found:
    return alignment.align(genome, data.pairs_of(data.compressed(given, 0, PAIRS)))


def make(folder: Path, samples: int = SAMPLES, detail: str = "full") -> run.Align:
    return run.Align(samples, PAIRS, detail, folder / "sequences")


def test_samples_are_different_draws_with_replacement(given: data.Input) -> None:
    samples = [data.pairs_of(data.compressed(given, at, PAIRS)) for at in range(SAMPLES)]
    assert all(len(pairs) == PAIRS for pairs in samples)
    assert len({tuple(pair.first.sequence for pair in pairs) for pairs in samples}) == SAMPLES
    many = data.pairs_of(data.compressed(given, 0, 4000))
    assert len({pair.first.name for pair in many}) == 4000, "each draw has a name of its own"
    assert data.compressed(given, 1, PAIRS) == data.compressed(given, 1, PAIRS)


def test_most_reads_lie_on_either_reference(found: Found, genome: data.Genome) -> None:
    fit = alignment.summary(genome, found)
    assert fit.reads == 2 * PAIRS
    assert fit.aligned > 0.8 * fit.reads
    assert fit.differences < 0.01 * fit.bases
    assert fit.depth.sum() == pytest.approx(fit.bases, rel=0.01)
    assert len(fit.depth) == len(genome.sequence)


def test_no_read_lies_on_the_gene_that_is_inserted_in_the_second_reference(
    given: data.Input,
) -> None:
    genome = given.genome(1)
    all_reads = alignment.align(genome, data.pairs_of(data.compressed(given, 0, 1500)))
    depth = alignment.summary(genome, all_reads).depth
    assert not depth[3600:4200].any()
    assert depth[2000:3000].mean() > 5


def test_the_long_form_is_the_reference_and_the_read(found: Found, genome: data.Genome) -> None:
    for placed in (one for pair in found for one in pair):
        for place in placed.places:
            ours = alignment.long_form(genome, place)
            base = r"=([A-Z]+)|\*([a-z])([a-z])|\+([a-z]+)|-([a-z]+)"
            reference = read = ""
            for equal, old, new, inserted, deleted in re.findall(base, ours):
                reference += (equal + old + deleted).upper()
                read += (equal + new + inserted).upper()
            assert reference == genome.sequence[place.r_st : place.r_en]
            own = placed.read.sequence[place.q_st : place.q_en]
            assert read == (own if place.strand > 0 else mappy.revcomp(own))


def test_records_are_whole_and_tell_of_their_mates(found: Found, genome: data.Genome) -> None:
    text = alignment.sam_text(genome, found, "one", "full")
    records = sam.parse(text)
    assert len(records) == 2 * PAIRS
    for first, second in zip(records[::2], records[1::2], strict=True):
        assert first.name == second.name
        assert first.mate_position == second.position
        given = {tag[:2]: tag[5:] for tag in first.tags}
        mate = mappy.revcomp(second.sequence) if second.is_reverse else second.sequence
        assert given["R2"] == mate
        assert len(given["Q2"]) == len(mate)


def test_more_detail_is_more_to_write(found: Found, genome: data.Genome) -> None:
    sizes = [
        (len(alignment.paf(genome, found, detail)),
         len(alignment.sam_text(genome, found, "one", detail)))
        for detail in alignment.DETAILS
    ]  # fmt: skip
    assert sizes == sorted(sizes)
    assert sum(sizes[-1]) > 2 * sum(sizes[0])
    assert all(2.5 * first < second for first, second in sizes)


@pytest.mark.parametrize("as_io", [True, False])
def test_a_session_writes_what_the_plain_program_computes(tmp_path: Path, as_io: bool) -> None:
    application, out = make(tmp_path, app.AHEAD + 2), tmp_path / "out"
    out.mkdir()
    with al.Session(workers=2):
        outcome = application.run(Checkpoints(as_io=as_io), out)
    assert application.check(outcome.answer, out) == ""
    kinds = [span.kind for span in outcome.spans]
    assert kinds.count("read") == app.AHEAD + 2
    assert kinds.count("checkpoint") == len(list(out.iterdir())) == 2 * (app.AHEAD + 2)


def test_declared_sizes_hold_for_every_sample(tmp_path: Path) -> None:
    application = make(tmp_path, 6)
    for sample in range(6):
        contents = plain.one(application.job, sample).files
        for content, size in zip(contents, application.sizes, strict=True):
            assert 0.8 * size < len(content) <= size


def test_a_layer_with_too_little_room_for_the_larger_result_refuses_it(tmp_path: Path) -> None:
    application = make(tmp_path)
    first, second = application.sizes
    storage = tmp_path / "storage.toml"
    storage.write_text(
        f'[[layer]]\nname = "small"\npath = "{tmp_path}"\ncapacity = "{(first + second) // 2}B"\n'
    )
    with al.Session(workers=2, storage=storage), pytest.raises(al.ConstraintError, match="res2"):
        application.run(Checkpoints(), tmp_path)


def test_the_check_finds_a_changed_byte_and_a_changed_answer(tmp_path: Path) -> None:
    application = make(tmp_path, 2)
    outcome = application.run(Checkpoints(), tmp_path)
    assert application.check(outcome.answer, tmp_path) == ""
    first, second = outcome.answer[1]
    depth = first.depth.copy()
    depth[7] += 1
    changed = [outcome.answer[0], (first._replace(depth=depth), second)]
    assert application.check(changed, tmp_path) == "the summaries of sample-001"
    path = app.file_of(tmp_path, 1, 1)
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    lines = content.count(b"\n")
    assert application.check(outcome.answer, tmp_path) == f"line {lines} of {path.name}"
    os.truncate(path, 0)
    assert "0 bytes, not" in application.check(outcome.answer, tmp_path)
    path.unlink()
    assert application.check(outcome.answer, tmp_path) == f"{path.name} is not there"


def test_the_table_says_which_reference_fits_better(tmp_path: Path) -> None:
    application = make(tmp_path, 2)
    outcome = application.run(Checkpoints(), tmp_path)
    written = application.finish(outcome.answer, tmp_path)
    head, *lines = written[0].read_text().splitlines()
    place = head.split("\t").index("differences_per_1000_bases")
    rates = np.array([float(line.split("\t")[place]) for line in lines]).reshape(-1, 2)
    assert (rates[:, 0] > rates[:, 1]).all()


def test_a_missing_wheel_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(wheels.DataMissingError, match="pip install --no-deps sequana"):
        data.find_input()
    assert run.main(["--quick", "--out", str(tmp_path)]) == 2
    assert "pip install --no-deps sequana" in capsys.readouterr().err


def test_the_command_checks_every_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sizes = ["--samples", "2", "--pairs", str(PAIRS), "--detail", "tags"]
    arguments = [*sizes, "--check", "--layers", "disk", "--out", str(tmp_path)]
    assert run.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "check: 3 of 3 runs equal the plain run in every byte" in printed
    assert (tmp_path / "references.tsv").exists()
    assert not list((tmp_path / "checkpoints").glob("*/*")), "results are removed"
