"""Tests of the task-I/O meter's C: what it moves arrives, and what does not arrive is noticed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.common.native import BuildError, compile_program
from bench.tiom.measure import SOURCES

FILE_BYTES = 16 << 20
BLOCK_BYTES = 8192
TIMEOUT_S = 60.0
HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="gcc is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the program, a filled file, and the calls that go wrong."""
    made = tmp_path_factory.mktemp("tiom")
    names = ("alone.c", "common.c", "blocks.c")
    compile_program(made / "tiom_alone", [SOURCES / name for name in names], ["-pthread"])
    compile_program(made / "faulty.so", [HERE / "faulty_calls.c"], ["-shared", "-fPIC", "-ldl"])
    assert meter(made, "--version=prepare", "--block-bytes=1048576").returncode == 0
    return made


def meter(folder: Path, *options: str, faulty: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program on the file, through the page cache: not every disk has O_DIRECT."""
    common = (f"--file={folder / 'blocks'}", f"--file-bytes={FILE_BYTES}", "--buffered")
    preload = {"LD_PRELOAD": str(folder / "faulty.so"), "FAULTY": faulty} if faulty else {}
    return subprocess.run(
        [str(folder / "tiom_alone"), *common, *options],
        env={**os.environ, **preload},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def transfers(direction: str, mode: str = "fjio", rounds: int = 2) -> tuple[str, ...]:
    """The options of a run that goes so often through the whole file."""
    total = f"--total-bytes={rounds * FILE_BYTES}"
    return ("--version=io", f"--mode={mode}", direction, f"--block-bytes={BLOCK_BYTES}", total)


@pytest.mark.parametrize("mode", ["mix", "1to1", "fjio", "fjc"])
@pytest.mark.parametrize("direction", ["--write", "--read"])
def test_all_blocks_are_moved(folder: Path, mode: str, direction: str) -> None:
    done = meter(folder, *transfers(direction, mode))
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["bytes"] == 2 * FILE_BYTES
    assert answer["verified_bytes"] == (FILE_BYTES if direction == "--write" else 0)
    assert not answer["is_cut"]


def test_a_write_that_is_lost_is_noticed(folder: Path) -> None:
    done = meter(folder, *transfers("--write", rounds=1), faulty="pwrite")
    assert done.returncode == 1
    assert "bytes lost or altered" in done.stderr


def test_a_read_from_the_wrong_place_is_noticed(folder: Path) -> None:
    done = meter(folder, *transfers("--read"), faulty="pread")
    assert done.returncode == 1
    assert "without its stamp" in done.stderr


def test_a_run_can_be_cut_short(folder: Path) -> None:
    options = ("--compute-ms=1000", "--loops-per-ms=1000000", "--seconds-max=0.1")
    done = meter(folder, "--version=compute", *options)
    assert done.returncode == 0
    answer = json.loads(done.stdout)
    assert answer["is_cut"]
    assert 1 <= answer["computed"] <= 2


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("--block-bytes=1000", "whole pages"),
        ("--mode=mixed", "no mode"),
        ("--total-bytes=-1", "not a whole number"),
        ("--workers=0", "at least one"),
        (f"--block-bytes={FILE_BYTES}", "need 8"),
    ],
)
def test_options_that_make_no_sense_are_refused(folder: Path, wrong: str, words: str) -> None:
    done = meter(folder, "--version=io", wrong)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_program_that_gcc_refuses_is_told_in_its_words(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text("int main(void) { return nothing; }\n")
    with pytest.raises(BuildError, match="nothing"):
        compile_program(tmp_path / "wrong", [source], [])
