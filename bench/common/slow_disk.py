"""A slow, shared disk: a file with a file system in it, and a limit of the kernel on its device.

A loop device over a file, by O_DIRECT (its content is cached once), ext4 without a journal on it
(so that the bandwidth is that of the files), and a rule of the control groups for block I/O (cgroup
v1, `blkio.throttle`) for the device: so many bytes a second, writing and reading apart, for
everybody together. The rule stands in the group of this process and in the root group. What was
measured with 20 MB/s on Linux 6.18 (`python -m bench.common.slow_disk` measures it again):

- `write` and `fsync` by a process of a limited group: limited (19.6 MB/s, one file or four at
  once), since a process that flushes a file submits its pages itself;
- pages that the kernel writes later, and a file system's journal: submitted by threads of the
  kernel, which are of the root group. Limited in the group alone, they are not (316 MB/s);
  limited in the root group they are (19.8 MB/s);
- reading what is not cached: limited (20.0 MB/s).

A group that is neither of the two is not limited. A limit has credit for about 0.1 s.

Needs root, loop devices, mkfs.ext4 and cgroup v1. Without one of them there is no such disk, and
`slow_disk` gives a folder and what the runtime's own throttle (`limit` of a storage description) is
to be set to: that slows files that are opened with `al.open`, and nothing else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.common.native import last_words, orderly_end

GROUPS = Path("/sys/fs/cgroup/blkio")
MEMBERSHIPS = Path("/proc/self/cgroup")
RULES = ("blkio.throttle.write_bps_device", "blkio.throttle.read_bps_device")
TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")

TOOL_TIMEOUT_S = 60.0
BUSY_TRIES = 50
BUSY_WAIT_S = 0.1
TRIAL_S, TRIAL_MAX = 0.5, 1.8
"""How long a limit is tried, and how far above it a moment may be."""

RATE_FILE = "rate"
ROOM_BYTES = 64 << 20
"""What the file system itself needs for its tables."""

FORMAT = ("-q", "-F", "-m", "0", "-O", "^has_journal", "-E", "lazy_itable_init=0")
OPTIONS = "noatime,nodiscard"


class SlowDiskUnavailableError(Exception):
    """Why there is no slow disk here."""


@dataclass
class SlowDisk:
    """A folder on a slow disk.

    `limit` is what a storage description has to say of it, in bytes a second: None where the
    kernel limits the device, else the bandwidth. `words` say what it is.
    """

    folder: Path
    bandwidth: int
    device: str = ""
    rules: tuple[Path, ...] = field(default=(), repr=False)

    @property
    def limit(self) -> int | None:
        """The bandwidth that the runtime has to emulate, if any."""
        return None if self.device else self.bandwidth

    @property
    def words(self) -> str:
        """What it is, for people."""
        if self.device:
            return (
                f"{self.bandwidth / 1e6:.1f} MB/s, by the kernel: ext4 on a loop device over a "
                "file, its writes and reads limited (cgroup v1 blkio)"
            )
        return (
            f"{self.bandwidth / 1e6:.1f} MB/s, by the runtime's software throttle, which slows "
            "files opened with al.open"
        )

    def set_bandwidth(self, bandwidth: int) -> None:
        """Make it as fast as that, in bytes a second."""
        self.bandwidth = bandwidth
        self._rule(bandwidth)

    @contextmanager
    def at_full_speed(self) -> Iterator[None]:
        """While this lasts nothing is limited; for what is not measured. It ends with a flush."""
        self._rule(0)
        try:
            yield
            if self.device:
                _run("sync", "--file-system", str(self.folder))
        finally:
            self._rule(self.bandwidth)

    def forget(self, path: Path) -> None:
        """Have the next reader of this file read the disk: it is flushed, and not cached."""
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

    def _rule(self, bandwidth: int) -> None:
        for rule in self.rules:
            rule.write_text(f"{self.device} {bandwidth}\n")


def _run(*command: str) -> str:
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=TOOL_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SlowDiskUnavailableError(f"{command[0]}: {error}") from error
    if done.returncode != 0:
        said = last_words(done.stderr, done.returncode)
        raise SlowDiskUnavailableError(f"{command[0]}: {said}")
    return done.stdout.strip()


def groups() -> tuple[Path, ...]:
    """The root group and that of this process, which may be one."""
    if not (GROUPS / RULES[0]).exists():
        raise SlowDiskUnavailableError("no cgroup v1 blkio")
    own = GROUPS
    for line in MEMBERSHIPS.read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "blkio" in controllers.split(","):
            own = GROUPS / path.lstrip("/")
    return tuple(dict.fromkeys((GROUPS, own)))


def clean_up(image: Path) -> None:
    """Remove what a killed run has left of the disk in this file: rule, mount, device, file."""
    if not image.exists():
        return
    for line in _run("losetup", "-n", "-O", "NAME,MAJ:MIN", "-j", str(image)).splitlines():
        name, device = line.split()
        with suppress(SlowDiskUnavailableError, OSError):
            _lift(device)
        with suppress(SlowDiskUnavailableError):
            _run("umount", "--lazy", name)
        _run("losetup", "-d", name)
    image.unlink()


def _lift(device: str) -> None:
    for group in groups():
        for rule in RULES:
            (group / rule).write_text(f"{device} 0\n")


def _unmount(folder: Path) -> None:
    """Unmount; if somebody holds on to a file there for seconds, as soon as they let go."""
    for _ in range(BUSY_TRIES):
        with suppress(SlowDiskUnavailableError):
            _run("umount", str(folder))
            return
        time.sleep(BUSY_WAIT_S)
    _run("umount", "--lazy", str(folder))


@contextmanager
def kernel_disk(folder: Path, bandwidth: int, size: int) -> Iterator[SlowDisk]:
    """A disk in a file in `folder`, with room for `size` bytes, mounted beside the file.

    Bandwidth in bytes a second. Raises SlowDiskUnavailableError where there can be none. All of it
    is gone afterwards, also after an error, Ctrl-C or SIGTERM; what `kill -9` leaves, the next one
    in the same folder removes.
    """
    if os.geteuid() != 0:
        raise SlowDiskUnavailableError("not root")
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        raise SlowDiskUnavailableError(f"{missing[0]} is not installed")
    folder = folder.absolute()
    image, mounted = folder / "slow-disk.img", folder / "slow-disk"
    with ExitStack() as stack:
        stack.enter_context(orderly_end())
        rules = [group / rule for group in groups() for rule in RULES]
        folder.mkdir(parents=True, exist_ok=True)
        clean_up(image)
        try:
            stack.callback(image.unlink, missing_ok=True)
            with image.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, size + ROOM_BYTES)
            _run("mkfs.ext4", *FORMAT, str(image))
            stack.callback(clean_up, image)
            name = _run("losetup", "--show", "--find", "--direct-io=on", str(image))
            device = _run("losetup", "-n", "-O", "MAJ:MIN", name).strip()
            mounted.mkdir(exist_ok=True)
            stack.callback(mounted.rmdir)
            _run("mount", "-o", OPTIONS, name, str(mounted))
            stack.callback(_unmount, mounted)
            stack.callback(_lift, device)
            disk = SlowDisk(mounted, bandwidth, device, tuple(rules))
            disk.set_bandwidth(bandwidth)
            _try(disk, size)
        except OSError as error:
            reason = f"{error.filename}: {error.strerror}"
            raise SlowDiskUnavailableError(reason) from error
        yield disk


def _try(disk: SlowDisk, size: int) -> None:
    """Refuse a limit that does not hold; one that is too fast for the room is not tried."""
    trial = round(TRIAL_S * disk.bandwidth)
    if trial > size + ROOM_BYTES // 2:
        return
    found = rate(disk, trial, flush=True)
    (disk.folder / RATE_FILE).unlink()
    if found > TRIAL_MAX * disk.bandwidth:
        raise SlowDiskUnavailableError(
            f"the limit does not hold: {found / 1e6:.0f} MB/s instead of {disk.bandwidth / 1e6:.0f}"
        )


@contextmanager
def slow_disk(folder: Path, bandwidth: int, size: int) -> Iterator[SlowDisk]:
    """The kernel's slow disk if there can be one, else a folder for the software throttle."""
    with ExitStack() as stack:
        try:
            disk = stack.enter_context(kernel_disk(folder, bandwidth, size))
        except SlowDiskUnavailableError as reason:
            print(f"no disk with a limit by the kernel: {reason}", file=sys.stderr)
            plain = folder.absolute() / "slow-folder"
            plain.mkdir(parents=True, exist_ok=True)
            stack.callback(shutil.rmtree, plain, ignore_errors=True)
            disk = SlowDisk(plain, bandwidth)
        yield disk


def rate(disk: SlowDisk, size: int, flush: bool) -> float:
    """Bytes a second that a file is written with: flushed by this process, or by the kernel."""
    path, content = disk.folder / RATE_FILE, os.urandom(size)
    begun = time.perf_counter()
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        if flush:
            os.fsync(file.fileno())
    if not flush:
        _run("sync", "--file-system", str(disk.folder))
    taken_s = time.perf_counter() - begun
    disk.forget(path)
    return size / taken_s


def main() -> int:
    """Measure a slow disk, whatever can be had here."""
    bandwidth, size = 20_000_000, 40 << 20
    with (
        tempfile.TemporaryDirectory(dir=".") as folder,
        slow_disk(Path(folder), bandwidth, 4 * size) as disk,
    ):
        print(disk.words)
        if disk.limit:
            return 1
        for flush, words in ((True, "write, fsync"), (False, "write, flushed by the kernel")):
            print(f"{words}: {rate(disk, size, flush) / 1e6:.1f} MB/s")
        begun = time.perf_counter()
        read = len((disk.folder / RATE_FILE).read_bytes())
        print(f"read: {read / (time.perf_counter() - begun) / 1e6:.1f} MB/s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
