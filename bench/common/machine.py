"""Where a benchmark ran, and what else used the processors meanwhile."""

from __future__ import annotations

import os
import platform
import resource
import time
from pathlib import Path


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def describe() -> str:
    """One line: processors, kernel, Python."""
    model = platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    python = platform.python_version()
    kernel = platform.release().split("-")[0]
    return f"{cores()} processors ({model}), Linux {kernel}, Python {python}"


class Disturbance:
    """How much of the processors others had, and the hypervisor took, since this was made."""

    def __init__(self) -> None:
        """Begin now."""
        self._started = time.monotonic()
        self._busy_s, self._stolen_s = _system_s()
        self._own_s = _own_s()

    def others(self) -> float:
        """The share of the processors that others (and the kernel's threads) had, 0 to 1.

        Only descendants of this process that are over count as its own.
        """
        busy_s, _ = _system_s()
        others_s = (busy_s - self._busy_s) - (_own_s() - self._own_s)
        return max(0.0, others_s) / self._whole_s()

    def text(self) -> str:
        """The shares, in a sentence; figures from a busy machine are to be read with care."""
        stolen = (_system_s()[1] - self._stolen_s) / self._whole_s()
        return (
            f"Meanwhile others (and the kernel's threads) used {self.others():.0%} of the "
            f"processors, and the hypervisor took {stolen:.1%}."
        )

    def _whole_s(self) -> float:
        return max(1e-9, (time.monotonic() - self._started) * (os.cpu_count() or 1))


def unseen_s() -> float:
    """Processor time of interrupt handlers and of the hypervisor, since the machine started.

    It takes processors from a program without being in the processor time of any process.
    """
    *_, interrupts, soft_interrupts, stolen = _system_fields()
    return interrupts + soft_interrupts + stolen


def _system_fields() -> tuple[float, ...]:
    """The first eight figures of /proc/stat, in seconds: user, nice, ..., softirq, steal."""
    fields = Path("/proc/stat").read_text().split("\n")[0].split()[1:9]
    return tuple(float(field) / os.sysconf("SC_CLK_TCK") for field in fields)


def _system_s() -> tuple[float, float]:
    """Processor time of all processes and kernel threads, and time stolen."""
    user, nice, system, *_, stolen = _system_fields()
    return user + nice + system, stolen


def _own_s() -> float:
    """Processor time of this process and of all its descendants that are over."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)
