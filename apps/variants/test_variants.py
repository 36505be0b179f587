"""The application's promises: each phase does what it says, the same bytes in every mode."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

import os
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import alongside as al
from apps.common import wheels
from apps.common.checkpoints import Checkpoints

from . import app, calling, data, duplicates, mapping, picture, pileup, recalibration, run, sam

SAMPLES = 3


@pytest.fixture(scope="module")
def given() -> data.Input:
    return data.find_input()


@pytest.fixture(scope="module")
def genome(given: data.Input) -> data.Genome:
    return data.read_genome(given.genome)


@pytest.fixture(scope="module")
def pairs(given: data.Input) -> list[data.Pair]:
    """All pairs, trimmed."""
    return [data.Pair(*map(mapping.trimmed, pair)) for pair in data.read_pairs(given.reads)]


@pytest.fixture(scope="module")
def records(genome: data.Genome, pairs: list[data.Pair]) -> list[sam.Record]:
    """All reads, mapped, marked and sorted."""
    mapped = (mapping.map_pair(genome, pair) for pair in pairs)
    marked = duplicates.marked(duplicates.mated(*both, "all") for both in mapped)
    return duplicates.by_coordinate(marked)


def mismatches(genome: data.Genome, record: sam.Record) -> int:
    """Count differences from the reference, as the tag NM does."""
    found, on_read, at = 0, 0, record.position - 1
    for length, operation in sam.operations(record.cigar):
        if operation == "M":
            aligned = record.sequence[on_read : on_read + length]
            found += sum(map(str.__ne__, aligned, genome.sequence[at : at + length]))
        found += length if operation in "ID" else 0
        on_read += length if operation in sam.ON_READ else 0
        at += length if operation in sam.ON_REFERENCE else 0
    return found


def test_samples_are_different_parts_of_the_pairs(given: data.Input) -> None:
    pairs = data.read_pairs(given.reads)
    samples = [[pair.first.name for pair in data.draw(pairs, at)] for at in range(SAMPLES)]
    for at, names in enumerate(samples):
        assert len(set(names)) == len(names) == round(data.SHARE * len(pairs))
        assert names == [pair.first.name for pair in data.draw(pairs, at)]
    assert len({tuple(names) for names in samples}) == SAMPLES


def test_the_bad_end_of_a_read_is_cut_off() -> None:
    read = data.Read("name", "A" * 100, "I" * 60 + "#" * 25 + "I" + "#" * 14)
    assert mapping.trimmed(read).sequence == "A" * 60
    assert mapping.trimmed(read._replace(quality="#" * 100)).sequence == "A" * mapping.LENGTH_MIN
    good = read._replace(quality="I" * 100)
    assert mapping.trimmed(good) == good


def test_pairs_survive_their_file(pairs: list[data.Pair]) -> None:
    assert data.pairs_of(data.fastq(pairs)) == pairs


def test_reads_lie_where_they_differ_as_little_as_the_aligner_says(
    genome: data.Genome, records: list[sam.Record]
) -> None:
    mapped = [record for record in records if record.is_mapped]
    assert len(mapped) > 2500
    kinds = set()
    for record in mapped:
        assert record.tags[0] == f"NM:i:{mismatches(genome, record)}", record
        kinds.add((bool(record.flag & sam.SECOND), record.is_reverse, "S" in record.cigar))
    assert len(kinds) == 8, "both reads, both strands, clipped or not"


def test_records_survive_their_file(genome: data.Genome, records: list[sam.Record]) -> None:
    assert sam.parse(sam.text(genome, "coordinate", "all", records)) == records


def test_the_reads_of_a_pair_tell_of_each_other(records: list[sam.Record]) -> None:
    first = {record.name: record for record in records if record.flag & sam.FIRST}
    second = {record.name: record for record in records if record.flag & sam.SECOND}
    assert first.keys() == second.keys()
    for name, one in first.items():
        other = second[name]
        assert (one.mate_position, other.mate_position) == (other.position, one.position)
        assert one.template_length == -other.template_length
        assert bool(one.flag & sam.MATE_REVERSE) == other.is_reverse


def test_of_copies_of_a_fragment_the_one_with_the_best_bases_stays(
    genome: data.Genome, pairs: list[data.Pair]
) -> None:
    mapped = [mapping.map_pair(genome, pair) for pair in pairs[:200]]
    mates = [duplicates.mated(*both, "all") for both in mapped]
    own = next(pair for pair in mates if all(record.is_mapped for record in pair))

    def copy(name: str, quality: str) -> duplicates.Pair:
        first, second = (
            record._replace(name=name, quality=quality * len(record.quality)) for record in own
        )
        return first, second

    marked = duplicates.marked([copy("bad", "5"), copy("best", "J"), *mates, copy("good", "I")])
    names = {pair[0].name for pair in marked if pair[0].flag & sam.DUPLICATE}
    assert {"bad", "good", own[0].name} <= names
    assert "best" not in names
    assert all(a.flag & sam.DUPLICATE == b.flag & sam.DUPLICATE for a, b in marked)


def test_where_the_reads_of_a_fragment_overlap_the_better_base_counts() -> None:
    tags = (60, "4M", "=", 1, 0)
    reads = [
        sam.Record("one", sam.PAIRED, "c", 1, *tags, "ACGT", "IIII", ()),
        sam.Record("one", sam.PAIRED | sam.REVERSE, "c", 3, *tags, "CTAA", "JHJJ", ()),
        sam.Record("two", sam.PAIRED, "c", 3, *tags, "GTAA", "IIII", ()),
    ]
    bases = pileup.bases_of(reads)
    assert bases.cycle.tolist() == [0, 1, 2, 3, 3, 2, 1, 0, 0, 1, 2, 3]
    once = pileup.once_a_fragment(pileup.pile(reads), bases)
    seen = sorted(zip(once.fragment.tolist(), once.position.tolist(), once.base.tolist(),
                      strict=True))  # fmt: skip
    first = [(0, 0, 0), (0, 1, 1), (0, 2, 4), (0, 3, 3), (0, 4, 6), (0, 5, 7)]
    assert seen == [*first, *((1, at, at + 6) for at in range(2, 6))]


def test_recalibrated_qualities_are_nearer_to_the_truth(
    genome: data.Genome, records: list[sam.Record]
) -> None:
    reference = pileup.codes(genome.sequence)

    def wrong_by(made: list[sam.Record]) -> float:
        bases, piled = pileup.bases_of(made), pileup.pile(made)
        differs = bases.code[piled.base] != reference[piled.position]
        depth = np.bincount(piled.position, minlength=len(reference))
        rare = np.bincount(piled.position, differs, len(reference)) < depth / 3
        base, differs = piled.base[rare[piled.position]], differs[rare[piled.position]]
        expected = (10 ** (-bases.quality[base] / 10)).mean()
        return abs(float(np.log10(differs.mean() / expected)))

    after = recalibration.recalibrated(genome, records)
    assert wrong_by(after) < 0.2 * wrong_by(records)
    restored = [
        one._replace(quality=one.tags[-1].removeprefix("OQ:Z:"), tags=one.tags[:-1])
        for one in after
    ]
    assert restored == records


def test_planted_variants_are_called_and_no_other_call_changes(
    genome: data.Genome, pairs: list[data.Pair]
) -> None:
    planted = range(2500, 14_500, 600)
    sequence = list(genome.sequence)
    for at in planted:
        sequence[at] = "ACGT"["ACGT".index(sequence[at]) - 1]
    changed = data.Genome(genome.name, "".join(sequence))

    def called(reference: data.Genome) -> dict[int, str]:
        mates = (duplicates.mated(*mapping.map_pair(reference, pair), "all") for pair in pairs)
        found = calling.evidence(reference, duplicates.by_coordinate(mates))
        lines = calling.joint(reference, ["all"], [found]).splitlines()
        columns = (line.split("\t") for line in lines if not line.startswith("#"))
        return {int(column[1]) - 1: column[4] for column in columns}

    before, after = called(genome), called(changed)
    assert not before.keys() & set(planted)
    new = {at: alternative for at, alternative in after.items() if at not in before}
    assert new == {at: genome.sequence[at] for at in planted}
    assert all(after[at] == alternative for at, alternative in before.items())


def test_a_file_of_a_sample_has_a_line_for_every_position(genome: data.Genome) -> None:
    small = data.Genome("c", "ACG")
    nothing = calling.evidence(small, [])
    lines = calling.gvcf(small, "s", nothing).splitlines()[-3:]
    assert lines[1] == "c\t2\t.\tC\tA,G,T\t0\t.\t.\tGT:DP:AD:PL\t.:0:0,0,0,0:0,0,0,0"


@pytest.mark.parametrize("as_io", [True, False])
def test_a_session_writes_what_the_plain_program_computes(tmp_path: Path, as_io: bool) -> None:
    application = run.Variants(SAMPLES)
    with al.Session(workers=2):
        outcome = application.run(Checkpoints(as_io=as_io), tmp_path)
    assert application.check(outcome.answer, tmp_path) == ""
    written = [span.bytes for span in outcome.spans if span.kind == "checkpoint"]
    assert len(list(tmp_path.iterdir())) == len(written) == SAMPLES * len(app.KINDS)
    sizes = [[path.stat().st_size for path in tmp_path.glob(f"*.{end}")]
             for end in app.KINDS.values()]  # fmt: skip
    for smaller, larger in pairwise(sizes):
        assert 1.1 * max(smaller) < min(larger), "each kind has a size of its own"


def test_tuning_sees_five_functions(tmp_path: Path) -> None:
    with al.Session(workers=2) as session:
        run.Variants(SAMPLES).run(Checkpoints(bandwidth="adaptive"), tmp_path)
        tuned = {one.function for one in session.statistics().tuned}
    assert tuned == {f"checkpoint_{kind}" for kind in app.KINDS}


def test_the_check_finds_a_changed_byte_and_a_changed_answer(tmp_path: Path) -> None:
    application = run.Variants(1)
    outcome = application.run(Checkpoints(), tmp_path)
    assert application.check(outcome.answer, tmp_path) == ""
    changed = outcome.answer.replace("PASS", "pass")
    assert application.check(changed, tmp_path) == "the variants of all samples"
    path = app.file_of(tmp_path, "marked", 0)
    content = bytearray(path.read_bytes())
    content[-2] ^= 1
    path.write_bytes(content)
    lines = content.count(b"\n")
    assert application.check(outcome.answer, tmp_path) == f"line {lines} of {path.name}"
    os.truncate(path, 0)
    assert "0 bytes, not" in application.check(outcome.answer, tmp_path)


def test_the_picture_shows_every_genotype() -> None:
    text = "##x\n#CHROM\nc\t7\t.\tA\tC,G\t99\tPASS\tNS=3\tGT:DP\t0:9\t2:8\t.:1\n"
    states = [picture.REFERENCE, picture.VARIANT, picture.UNKNOWN]
    assert picture.sites(text) == [picture.Site(7, states)]


def test_a_missing_wheel_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(wheels.DataMissingError, match="pip install --no-deps sequana"):
        data.find_input()
    assert run.main(["--quick"]) == 2
    assert "pip install --no-deps sequana" in capsys.readouterr().err


def test_the_command_checks_every_mode(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--samples", "2", "--check", "--layers", "disk", "--out", str(tmp_path)]
    assert run.main(arguments) == 0
    printed = capsys.readouterr().out
    assert "check: 3 of 3 runs equal the plain run in every byte" in printed
    assert (tmp_path / "variants.vcf").exists()
    assert not list((tmp_path / "checkpoints").glob("*/*")), "checkpoints are removed"
