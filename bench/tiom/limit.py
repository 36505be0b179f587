"""A limit on the disk for one program: a control group of cgroup v1's blkio, made and removed here.

Needs root. The kernel then holds back writes, however they are asked for, which is the balance of a
node whose disk is shared by many processors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path("/sys/fs/cgroup/blkio")
DEVICES = Path("/sys/dev/block")
FILES = {"write": "blkio.throttle.write_bps_device", "read": "blkio.throttle.read_bps_device"}

JOIN = 'echo $$ > "$0/cgroup.procs" && exec "$@"'


class LimitUnavailableError(Exception):
    """Why there is no limit here."""


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
def limited(file: Path, direction: str, bytes_s: int) -> Iterator[tuple[str, ...]]:
    """What to put before a command so that it runs under the limit, while this lasts."""
    if os.geteuid() != 0:
        raise LimitUnavailableError("not root")
    if not (ROOT / FILES[direction]).exists():
        raise LimitUnavailableError("no cgroup v1 blkio")
    disk = disk_of(file)
    group = ROOT / f"alongside-tiom-{os.getpid()}"
    try:
        try:
            group.mkdir()
            (group / FILES[direction]).write_text(f"{disk} {bytes_s}\n")
        except OSError as error:
            raise LimitUnavailableError(f"{group}: {error.strerror}") from error
        yield ("sh", "-c", JOIN, str(group))
    finally:
        if group.exists():
            group.rmdir()
