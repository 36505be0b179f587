"""A slower disk for one program: `slow_disk`, or else a limit of a control group. Both need root.

A limit of a control group (cgroup v1, blkio) is a token bucket: while a program that waits for its
writes computes, it saves what its next write spends at once. So a blocking program overlaps already
and there is little to gain. `slow_disk` serves a transfer for as long as it takes on a slower disk,
whatever came before it; bench/README.md has the model.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.common.native import BuildError, compile_program, last_words
from bench.tiom import plan
from bench.tiom.plan import Cell

SOURCE = Path(__file__).parent / "slow_disk.c"
TRIAL_TIMEOUT_S = 10.0

GROUPS = Path("/sys/fs/cgroup/blkio")
DEVICES = Path("/sys/dev/block")
FILES = {"write": "blkio.throttle.write_bps_device", "read": "blkio.throttle.read_bps_device"}

JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class LimitUnavailableError(Exception):
    """Why there is no limit here."""


@dataclass(frozen=True)
class Limit:
    """What to put before a command so that its disk is slower, and what that is, for people."""

    prefix: tuple[str, ...]
    words: str


def slow_disk(program: Path, file: Path, channels: int, channel_bytes_s: int) -> Limit:
    """A disk with channels that serve one transfer each, for commands that use this file."""
    if os.geteuid() != 0:
        raise LimitUnavailableError("not root")
    try:
        compile_program(program, [SOURCE], ["-pthread"])
    except BuildError as error:
        raise LimitUnavailableError(str(error).splitlines()[0]) from error
    disk = (f"--channels={channels}", f"--channel-bytes-s={channel_bytes_s}")
    prefix = (str(program), *disk, str(file), "--")
    try:
        tried = subprocess.run(
            [*prefix, "true"], capture_output=True, text=True, timeout=TRIAL_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise LimitUnavailableError(f"no answer in {TRIAL_TIMEOUT_S:.0f} s") from error
    if tried.returncode != 0:
        raise LimitUnavailableError(last_words(tried.stderr, tried.returncode))
    words = f"slow_disk, {channels} x {channel_bytes_s / plan.MIB:.1f} MiB/s"
    return Limit(prefix, words)


def disk_of(file: Path) -> str:
    """`major:minor` of the whole disk that the file is on."""
    number = file.stat().st_dev
    device = DEVICES / f"{os.major(number)}:{os.minor(number)}"
    if not device.exists():
        raise LimitUnavailableError(f"{file} is not on a block device")
    if (device / "partition").exists():
        device = device.resolve().parent
    return (device / "dev").read_text().strip()


@contextmanager
def control_group(file: Path, direction: str, bytes_s: int) -> Iterator[Limit]:
    """A control group with a limit, while this lasts."""
    if os.geteuid() != 0:
        raise LimitUnavailableError("not root")
    if not (GROUPS / FILES[direction]).exists():
        raise LimitUnavailableError("no cgroup v1 blkio")
    disk = disk_of(file)
    group = GROUPS / f"alongside-tiom-{os.getpid()}"
    try:
        try:
            group.mkdir()
            (group / FILES[direction]).write_text(f"{disk} {bytes_s}\n")
        except OSError as error:
            raise LimitUnavailableError(f"{group}: {error.strerror}") from error
        words = f"blkio control group, {bytes_s / plan.MIB:.1f} MiB/s"
        yield Limit(("sh", "-c", JOIN, str(group)), words)
    finally:
        if group.exists():
            group.rmdir()


@contextmanager
def limited(program: Path, file: Path, cell: Cell, workers: int) -> Iterator[Limit]:
    """The best limit that there is here: a worker's I/O takes as long as its computation.

    `program` is where `slow_disk` is built.
    """
    bytes_s = plan.limit_bytes_s(cell, workers)
    try:
        limit = slow_disk(program, file, workers, round(bytes_s / workers))
    except LimitUnavailableError as reason:
        try:
            with control_group(file, cell.direction, bytes_s) as group:
                yield Limit(group.prefix, f"{group.words} (no slow_disk: {reason})")
        except LimitUnavailableError as other:
            raise LimitUnavailableError(f"slow_disk: {reason}; control group: {other}") from other
    else:
        yield limit
