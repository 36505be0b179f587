"""Tests of the disk whose service takes time; of times the lower bounds only."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.tiom.limit import LimitUnavailableError, slow_disk

BLOCK_BYTES = 64 << 10
BLOCKS = 16
SERVICE_S = 0.02
CHANNEL_BYTES_S = round(BLOCK_BYTES / SERVICE_S)
TIMEOUT_S = 60.0

IDLE_THEN_BUSY = """
import mmap, os, sys, time
file = os.open(sys.argv[1], os.O_RDWR | os.O_DIRECT)
block = mmap.mmap(-1, int(sys.argv[2]))
os.pwrite(file, block, 0)
time.sleep(0.2)
begun_s = time.monotonic()
for place in range(5):
    os.pwrite(file, block, place * len(block))
print(time.monotonic() - begun_s)
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built program, where there can be such a disk."""
    folder = tmp_path_factory.mktemp("slow_disk")
    trial = folder / "trial"
    trial.write_bytes(bytes(BLOCK_BYTES))
    try:
        limit = slow_disk(folder / "slow_disk", trial, 1, CHANNEL_BYTES_S)
    except LimitUnavailableError as reason:
        pytest.skip(f"there is no slow disk here: {reason}")
    assert limit.words == "slow_disk, 1 x 3.1 MiB/s"
    return folder / "slow_disk"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A file of so many blocks of zeros."""
    made = tmp_path / "blocks"
    made.write_bytes(bytes(BLOCKS * BLOCK_BYTES))
    return made


def on_disk(
    program: Path, file: Path, command: Sequence[str], *options: str
) -> tuple[subprocess.CompletedProcess[str], float]:
    """Run a command on the disk; how it went, and how long it took."""
    speed = f"--channel-bytes-s={CHANNEL_BYTES_S}"
    begun_s = time.monotonic()
    done = subprocess.run(
        [str(program), speed, *options, str(file), "--", *command],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done, time.monotonic() - begun_s


def copy(source: Path, target: Path, *more: str) -> list[str]:
    """The command that copies by blocks."""
    return ["dd", f"if={source}", f"of={target}", f"bs={BLOCK_BYTES}", "conv=notrunc", *more]


def test_bytes_come_through_in_both_directions(program: Path, file: Path, tmp_path: Path) -> None:
    source, back = tmp_path / "source", tmp_path / "back"
    source.write_bytes(os.urandom(BLOCKS * BLOCK_BYTES))
    done, _ = on_disk(program, file, copy(source, file, "oflag=direct"), "--channels=4")
    assert done.returncode == 0, done.stderr
    assert file.read_bytes() == source.read_bytes()
    done, _ = on_disk(program, file, copy(file, back), "--channels=4")
    assert done.returncode == 0, done.stderr
    assert back.read_bytes() == source.read_bytes()


def test_a_transfer_takes_at_least_its_service(program: Path, file: Path) -> None:
    done, took_s = on_disk(program, file, copy(Path("/dev/zero"), file, f"count={BLOCKS}"))
    assert done.returncode == 0, done.stderr
    assert took_s >= BLOCKS * SERVICE_S


def test_every_transfer_has_the_latency(program: Path, file: Path) -> None:
    command = ["dd", "if=/dev/zero", f"of={file}", "bs=4096", "count=8", "conv=notrunc"]
    done, took_s = on_disk(program, file, command, "--latency-us=20000")
    assert done.returncode == 0, done.stderr
    assert took_s >= 8 * 0.02


def test_as_many_transfers_at_once_as_there_are_channels(program: Path, file: Path) -> None:
    writer = f"dd if=/dev/zero of={file} bs={BLOCK_BYTES} count=4 conv=notrunc & "
    done, took_s = on_disk(program, file, ["sh", "-c", 4 * writer + "wait"], "--channels=2")
    assert done.returncode == 0, done.stderr
    assert took_s >= 4 * 4 * SERVICE_S / 2


def test_there_is_no_credit_for_idle_time(program: Path, file: Path) -> None:
    command = [sys.executable, "-c", IDLE_THEN_BUSY, str(file), str(BLOCK_BYTES)]
    done, _ = on_disk(program, file, command)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) >= 5 * SERVICE_S


def test_the_program_dies_with_the_disk_and_nothing_stays_mounted(
    program: Path, file: Path
) -> None:
    # the program says who it is and waits for more input than it gets
    command = ["sh", "-c", f"exec 3<>{file}; echo $$; read more"]
    disk = subprocess.Popen(
        [str(program), str(file), "--", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert disk.stdout is not None
    victim = os.pidfd_open(int(disk.stdout.readline()))
    assert "slow_disk" not in Path("/proc/self/mountinfo").read_text()
    disk.send_signal(signal.SIGKILL)
    assert select.select([victim], [], [], TIMEOUT_S)[0]
    os.close(victim)
    disk.communicate(timeout=TIMEOUT_S)
    file.write_bytes(b"free")
    assert file.read_bytes() == b"free"


def test_the_exit_code_is_that_of_the_program(program: Path, file: Path) -> None:
    assert on_disk(program, file, ["sh", "-c", "exit 7"])[0].returncode == 7
    assert on_disk(program, file, ["sh", "-c", "kill -9 $$"])[0].returncode == 128 + 9
    assert on_disk(program, file, ["no-such-program"])[0].returncode == 127


def test_the_disk_does_not_grow(program: Path, file: Path) -> None:
    done, _ = on_disk(program, file, copy(Path("/dev/zero"), file, f"seek={BLOCKS}", "count=1"))
    assert done.returncode == 1
    assert "No space left" in done.stderr
    assert file.stat().st_size == BLOCKS * BLOCK_BYTES


@pytest.mark.parametrize(
    "options", [("--channels=0",), ("--channels=x",), ("--channel-bytes-s=0",), ("--nothing",)]
)
def test_wrong_options_are_refused(program: Path, file: Path, options: tuple[str, ...]) -> None:
    done, _ = on_disk(program, file, ["true"], *options)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_a_file_that_is_not_there_is_named(program: Path, tmp_path: Path) -> None:
    done, _ = on_disk(program, tmp_path / "none", ["true"])
    assert done.returncode == 125
    assert "none: No such file" in done.stderr


@pytest.mark.usefixtures("program")
def test_why_there_is_no_slow_disk_is_told(tmp_path: Path) -> None:
    with pytest.raises(LimitUnavailableError, match=r"slow_disk: .*none"):
        slow_disk(tmp_path / "slow_disk", tmp_path / "none", 1, CHANNEL_BYTES_S)
