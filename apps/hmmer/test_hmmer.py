"""The application's promises: fragmentation changes nothing, checkpoints are whole or refused."""

# ruff: noqa: D103 - the names of the tests say what they promise
from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from apps.common import report, wheels
from apps.common.checkpoints import Checkpoints
from apps.common.spans import Span

from . import application, balance, checkpoint, data, records, search
from .data import Fragment
from .hits import first_difference

ROOT = Path(__file__).resolve().parents[2]
EVERY = 24  # profiles used by the tests that search in this process


@pytest.fixture(scope="module")
def given() -> data.Input:
    """Every 24th profile, and all sequences."""
    return data.find_input(every_hmm=EVERY)


@pytest.fixture(scope="module")
def plain(given: data.Input) -> list[records.Hit]:
    """Search with pyhmmer.hmmsearch and its defaults."""
    return search.plain_search(
        data.read_hmms(given.hmm_files), data.read_sequences(given.sequence_file)
    )


def cut(given: data.Input, hmm_parts: int, sequence_parts: int) -> tuple[list[Fragment], ...]:
    """Return the fragments of both inputs."""
    sizes = [file.stat().st_size for file in given.hmm_files]
    hmms = [
        data.digitise_hmms(part.start, given.hmm_files[part.start : part.stop])
        for part in data.split(sizes, hmm_parts)
    ]
    sequences = [
        data.digitise_sequences(given.sequence_file, part)
        for part in data.split(given.residues, sequence_parts)
    ]
    return hmms, sequences


@pytest.fixture(scope="module")
def one_pair(given: data.Input) -> tuple[Fragment, Fragment, list[records.Hit]]:
    """One pair of fragments that has hits, and these."""
    hmms, sequences = cut(given, 4, 3)
    for hmm in hmms:
        found = search.search_pair(hmm, sequences[1], given.database_size)
        if found:
            return hmm, sequences[1], found
    raise AssertionError("no pair has hits")


def written(pair: tuple[Fragment, Fragment, list[records.Hit]], size: int = 0) -> bytes:
    """Return the bytes of the pair's checkpoint."""
    hmms, sequences, hits = pair
    out = io.BytesIO()
    name = checkpoint.Pair(3, 1, 2100.0)
    told = checkpoint.write(out, name, records.pack(hits), hmms, sequences, size)
    assert told == len(out.getvalue())
    return out.getvalue()


@pytest.mark.parametrize("grid", [(1, 1), (4, 3), (7, 2), (2, 11)])
def test_the_hits_do_not_depend_on_the_fragmentation(
    given: data.Input, plain: list[records.Hit], grid: tuple[int, int]
) -> None:
    hmms, sequences = cut(given, *grid)
    pairs = [(hmm, part) for hmm in reversed(hmms) for part in reversed(sequences)]
    found = [hit for pair in pairs for hit in search.search_pair(*pair, given.database_size)]
    assert len(plain) > 20
    assert search.conclude(found) == plain
    assert first_difference(plain, search.conclude(found)) == ""


def test_without_the_database_s_numbers_the_hits_would_differ(
    given: data.Input, plain: list[records.Hit]
) -> None:
    hmms, sequences = cut(given, 1, 3)
    own_size = [
        hit for part in sequences for hit in search.search_pair(hmms[0], part, float(part.items))
    ]
    assert search.conclude(own_size) != plain
    right_size = [
        hit for part in sequences for hit in search.search_pair(hmms[0], part, given.database_size)
    ]
    assert search.in_order(right_size) != plain, "conclude() has nothing to do"


def test_a_difference_is_named(plain: list[records.Hit]) -> None:
    changed = [plain[0]._replace(score=-1.0), *plain[1:]]
    assert "score is -1.0" in first_difference(plain, changed)
    assert "hits, expected" in first_difference(plain, plain[:-1])


@pytest.mark.parametrize(("weights", "parts"), [([1] * 7, 7), ([100, 1, 1, 1], 3), ([5] * 10, 4)])
def test_split_gives_runs_without_gaps(weights: list[int], parts: int) -> None:
    pieces = data.split(weights, parts)
    assert len(pieces) == parts
    assert all(len(piece) > 0 for piece in pieces)
    assert [i for piece in pieces for i in piece] == list(range(len(weights)))


def test_split_refuses_more_fragments_than_items() -> None:
    with pytest.raises(ValueError, match="cannot cut 3 items into 4 fragments"):
        data.split([1, 1, 1], 4)


def test_a_missing_wheel_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "distribution", absent)
    with pytest.raises(wheels.DataMissingError, match="pip install --no-deps bigecyhmm"):
        data.find_input()


@pytest.mark.parametrize("extra", [0, 1, 1_000_003])
def test_a_checkpoint_comes_back_as_it_was_written(
    one_pair: tuple[Fragment, Fragment, list[records.Hit]], extra: int
) -> None:
    natural = len(written(one_pair))
    content = written(one_pair, natural + extra)
    assert len(content) == natural + extra
    read = checkpoint.read(content)
    assert read.hits == one_pair[2]
    assert read.hmms == one_pair[0].data.tobytes()
    assert read.sequences == one_pair[1].data.tobytes()


def test_the_search_can_be_repeated_from_a_checkpoint_alone(
    one_pair: tuple[Fragment, Fragment, list[records.Hit]],
) -> None:
    read = checkpoint.read(written(one_pair))
    header = read.header
    span = Span("split", 0, 0)
    parts = [
        Fragment(first, items, data.as_bytes_array(part), data.as_bytes_array(b""), span)
        for first, items, part in (
            (header.hmm_first, header.hmm_count, read.hmms),
            (header.sequence_first, header.sequence_count, read.sequences),
        )
    ]
    assert search.search_pair(parts[0], parts[1], header.database_size) == one_pair[2]


def test_a_truncated_checkpoint_is_refused(
    one_pair: tuple[Fragment, Fragment, list[records.Hit]],
) -> None:
    content = written(one_pair, len(written(one_pair)) + 5000)
    sizes = [0, 1, checkpoint.HEADER_BYTES, len(content) // 2, len(content) - 1]
    for size in sizes:
        with pytest.raises(checkpoint.CheckpointError, match=r"it has (only )?\d+ bytes"):
            checkpoint.read(content[:size])
    with pytest.raises(checkpoint.CheckpointError, match="bytes of"):
        checkpoint.read(content + b"\0")


def test_a_changed_byte_anywhere_is_refused(
    one_pair: tuple[Fragment, Fragment, list[records.Hit]],
) -> None:
    content = written(one_pair, len(written(one_pair)) + 5000)
    places = {*range(checkpoint.HEADER_BYTES), *range(0, len(content), len(content) // 200)}
    for place in (*sorted(places), *range(len(content) - checkpoint.END_BYTES, len(content))):
        changed = bytearray(content)
        changed[place] ^= 0x40
        with pytest.raises(checkpoint.CheckpointError):
            checkpoint.read(bytes(changed))


def test_a_checkpoint_of_other_work_is_refused(
    one_pair: tuple[Fragment, Fragment, list[records.Hit]], given: data.Input
) -> None:
    hmms, sequences, hits = one_pair
    content = written(one_pair)
    name = checkpoint.Pair(3, 1, 2100.0)
    assert checkpoint.read_for(content, name, hmms, sequences) == hits
    with pytest.raises(checkpoint.CheckpointError, match="another pair"):
        checkpoint.read_for(content, name._replace(hmm_index=2), hmms, sequences)
    other = cut(given, 2, 2)
    with pytest.raises(checkpoint.CheckpointError, match="other fragments"):
        checkpoint.read_for(content, name, other[0][0], other[1][0])


def test_the_published_balance() -> None:
    assert round(balance.PAIR_IO_S, 2) == 30.93
    assert balance.checkpoint_bytes(balance.PAIR_IO_S) == balance.PAIR_BYTES
    gains = {c: 1 - max(4 * c + 1, c + 4) / (4 * c + 4) for c in (0.5, 0.9, 1.0, 1.1, 2.0)}
    assert max(gains, key=lambda c: gains[c]) == 1.0
    assert gains[1.0] == balance.GAIN_AT_BALANCE


def test_the_hidden_share_counts_processors_that_compute_during_io() -> None:
    io_span = Span("checkpoint", 10, 20)
    assert report.hidden_share([Span("search", 0, 10), io_span], 1) == 0.0
    assert report.hidden_share([Span("search", 0, 15), io_span], 1) == 0.5
    both = [Span("search", 0, 30), Span("search", 5, 20), io_span]
    assert report.hidden_share(both, 2) == 1.0
    assert report.hidden_share([both[0], io_span], 2) == 0.5


def command(out: Path, mode: str, *more: str) -> list[str]:
    """Return the command of a small run in one mode."""
    shared = ["--quick", "--layers", "disk", "--checkpoint-size", "natural", "--out", str(out)]
    return [sys.executable, "-m", "apps.hmmer", "--modes", mode, *shared, *more]


def completed(arguments: list[str]) -> subprocess.CompletedProcess[str]:
    """Run a command in the repository's root."""
    return subprocess.run(
        arguments, check=False, cwd=ROOT, capture_output=True, text=True, timeout=100
    )


def complete(out: Path, mode: str, *more: str) -> str:
    """Run it to its end and return what it printed."""
    done = completed(command(out, mode, "--check", *more))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hits of 1 of 1 runs equal the plain run's in every field" in done.stdout
    return done.stdout


@pytest.mark.parametrize("mode", ["sequential", "io"])
def test_a_killed_run_is_resumed_from_its_whole_checkpoints(tmp_path: Path, mode: str) -> None:
    durable: list[str] = []
    arguments = command(tmp_path, mode, "--verbose")
    with subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("durable "):
                durable.append(line.split()[1])
            if len(durable) == 4:
                break
        process.send_signal(signal.SIGKILL)
    assert len(durable) == 4
    folder = tmp_path / "checkpoints" / f"disk-{mode}"
    torn, changed = folder / durable[0], folder / durable[1]
    os.truncate(torn, torn.stat().st_size // 2)
    with changed.open("r+b") as file:
        file.seek(changed.stat().st_size // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 1]))

    printed = complete(tmp_path, mode, "--resume", "--keep")
    restored = int(printed.split(" pairs from whole checkpoints")[0].split()[-3])
    assert 2 <= restored <= 10, "what was reported durable is used, what was damaged is not"
    assert f"refused {torn.name}: it has" in printed
    assert f"refused {changed.name}: its content does not match its checksum" in printed

    again = complete(tmp_path, mode, "--resume")
    assert "12 of 12 pairs from whole checkpoints" in again
    assert not list(folder.glob("*.checkpoint")), "finished: the checkpoints are no longer needed"


def test_every_mode_finds_the_same_on_every_layer(tmp_path: Path) -> None:
    arguments = [sys.executable, "-m", "apps.hmmer", "--quick", "--check", "--out", str(tmp_path)]
    arguments += ["--trace", str(tmp_path / "timelines")]
    done = completed(arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hits of 6 of 6 runs equal the plain run's in every field" in done.stdout
    assert "emulated" in done.stdout
    assert done.stderr == "", "no progress outside of a terminal"
    assert len(list((tmp_path / "timelines").glob("*.json"))) == 4


def test_a_damaged_checkpoint_does_not_pass_the_check(tmp_path: Path) -> None:
    whole = application.Hmmer(EVERY, (3, 2), 20_000)
    outcome = whole.run(Checkpoints(), tmp_path)
    assert whole.check(outcome.answer, tmp_path) == ""
    assert "hits, expected" in whole.check(outcome.answer[:-1], tmp_path)
    path = next(tmp_path.glob("*.checkpoint"))
    os.truncate(path, path.stat().st_size - 1)
    assert path.name in whole.check(outcome.answer, tmp_path)
