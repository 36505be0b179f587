"""A process with all that it started: found by a mark in the environment, measured, ended.

Parent links break when a process in between dies (daemons do that on purpose), so a run is marked
by a variable that every descendant inherits.
"""

from __future__ import annotations

import os
import signal
import threading
import time
import uuid
from pathlib import Path

MARK = "ALONGSIDE_BENCH_RUN"
SAMPLE_INTERVAL_S = 0.04
END_WAIT_S_MAX = 5.0


def new_mark() -> str:
    """A value for the variable `MARK` that no other run has."""
    return uuid.uuid4().hex


def members(mark: str) -> list[int]:
    """The processes alive whose environment carries `mark`, zombies left out."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit():
            continue
        try:
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile, or belongs to somebody else
            continue
    return found


def memory_bytes(pid: int) -> int:
    """The process's share of physical memory (PSS: shared pages counted once in a tree); 0 if over.

    Where the kernel does not tell the PSS, the resident set is taken.
    """
    for source, key in (("smaps_rollup", "Pss:"), ("status", "VmRSS:")):
        try:
            text = Path("/proc", str(pid), source).read_text()
        except OSError:
            continue
        for line in text.splitlines():
            if line.startswith(key):
                return int(line.split()[1]) * 1024
    return 0


def resident_bytes(pid: int) -> int:
    """The resident set of the process without pages that are shared memory; 0 if it is over.

    Cheap enough to be read often.
    """
    try:
        _, resident, shared = Path("/proc", str(pid), "statm").read_text().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGESIZE")


class PeakMemory(threading.Thread):
    """Samples the memory of everything marked, until `stop`; keeps the highest sum."""

    def __init__(self, mark: str) -> None:
        """Begin with `start()`."""
        super().__init__(daemon=True, name="peak-memory")
        self.mark = mark
        self.peak_bytes = 0
        self._over = threading.Event()

    def run(self) -> None:
        """Sample until told to stop."""
        while not self._over.wait(SAMPLE_INTERVAL_S):
            total = sum(memory_bytes(pid) for pid in members(self.mark))
            self.peak_bytes = max(self.peak_bytes, total)

    def stop(self) -> int:
        """The highest sum seen, bytes."""
        self._over.set()
        self.join()
        return self.peak_bytes


def end_all(mark: str, grace_s: float = 0.0) -> int:
    """End whatever of the run is still alive after `grace_s`; how many processes that were."""
    deadline = time.monotonic() + grace_s
    left = members(mark)
    while left and time.monotonic() < deadline:
        time.sleep(SAMPLE_INTERVAL_S)
        left = members(mark)
    ended = len(left)
    deadline = time.monotonic() + END_WAIT_S_MAX
    while left and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(SAMPLE_INTERVAL_S)
        left = members(mark)
    return ended


def cpu_s(pid: int) -> float:
    """The processor time of a process that is alive, children not included; 0 if it is over."""
    try:
        fields = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
