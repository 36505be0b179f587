"""Kills processes at random while random programs run: `python -m tests.journey.soak`.

A round is one driver process with a seed of its own. In most rounds its workers are killed, one at
a time, compute and I/O, at moments that the seed gives, also while they start (but not so many
starting ones in a row that the session rightly gives up); the driver has to end in time, with
results equal to the sequential run. In the others the driver itself is killed. After each
round: no process of it is left, no file that was reported durable is damaged, /dev/shm is as it
was. Exit code 0 only if all of that held in every round.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.common import tree

ROOT = Path(__file__).resolve().parents[2]
ROUND_S_MAX = 120.0
ORPHAN_S_MAX = 5.0
KILL_PAUSE_S = (0.05, 0.6)
KILLS_MAX = 40
STARTING_KILLS_MAX = 3
DRIVER_LIFE_S = (0.0, 4.0)
DRIVER_KILLS_SHARE = 0.25
WORKER_VARIABLE = b"ALONGSIDE_WORKER="
KIND_WORD = 7


@dataclass
class Round:
    """What happened in one round."""

    seed: int
    driver_killed: bool
    kills: Counter[str] = field(default_factory=Counter)
    durable: int = 0
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list)

    def line(self) -> str:
        """For the log."""
        what = "driver killed" if self.driver_killed else "workers killed"
        killed = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kills.items()))
        end = "; ".join(self.faults) or "ok"
        return (
            f"seed {self.seed}: {what} ({killed or 'none'}), {self.durable} durable files, "
            f"{self.seconds:.1f} s: {end}"
        )


def kind_of(pid: int) -> str | None:
    """What a worker process is for, from what it inherited; None for another process."""
    try:
        variables = Path("/proc", str(pid), "environ").read_bytes().split(b"\0")
    except OSError:
        return None
    for variable in variables:
        if variable.startswith(WORKER_VARIABLE):
            return variable.removeprefix(WORKER_VARIABLE).split()[KIND_WORD].decode()
    return None


def is_starting(pid: int) -> bool:
    """Whether a worker has not come so far as to load the package's compiled part."""
    try:
        return "alongside/_native" not in Path("/proc", str(pid), "maps").read_text()
    except OSError:
        return True


def kill(pid: int) -> bool:
    """Kill a process of ours; False if it is over already."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


class Driver:
    """A driver process: started, listened to, ended."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.mark = tree.new_mark()
        self.lines: list[str] = []
        self.errors = folder / "errors.txt"
        self._rest = b""
        with self.errors.open("wb") as errors:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.journey.soak_driver", str(seed), str(folder)],
                cwd=ROOT,
                env={**os.environ, tree.MARK: self.mark},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert self.process.stdout is not None
        self.output = self.process.stdout.fileno()

    def listen(self, seconds: float) -> bool:
        """Take what the driver says for so long; False once it has closed its output."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if not select.select([self.output], [], [], left)[0]:
                break
            data = os.read(self.output, 1 << 16)
            if not data:
                return False
            *whole, self._rest = (self._rest + data).split(b"\n")
            self.lines += [line.decode() for line in whole]
        return True

    def said(self, word: str) -> list[list[str]]:
        """The lines that begin with that word, split."""
        return [line.split() for line in self.lines if line.split()[:1] == [word]]

    def workers(self) -> list[tuple[int, str]]:
        """Its worker processes alive, each with its kind."""
        kinds = [(pid, kind_of(pid)) for pid in tree.members(self.mark)]
        return [(pid, kind) for pid, kind in kinds if kind is not None]


def kill_workers(driver: Driver, source: random.Random, result: Round) -> None:
    """Kill one worker after the other until the driver is done, or time is up."""
    until = time.monotonic() + ROUND_S_MAX
    starting = 0
    while time.monotonic() < until:
        if not driver.listen(source.uniform(*KILL_PAUSE_S)):
            return
        wanted = source.choice(["compute", "compute", "io"])
        victims = sorted(pid for pid, kind in driver.workers() if kind == wanted)
        if not victims or not driver.said("started") or result.kills.total() >= KILLS_MAX:
            continue
        victim = source.choice(victims)
        starting = starting + 1 if is_starting(victim) else 0
        if starting <= STARTING_KILLS_MAX and kill(victim):
            result.kills[wanted] += 1
    result.faults.append(f"HANG: no end in {ROUND_S_MAX:.0f} s")


def kill_driver(driver: Driver, source: random.Random, result: Round) -> None:
    """Let the driver live for a while, then kill it; what it has said by then counts."""
    until = time.monotonic() + ROUND_S_MAX
    while not driver.said("started") and driver.listen(0.05) and time.monotonic() < until:
        pass
    driver.listen(source.uniform(*DRIVER_LIFE_S))
    if kill(driver.process.pid):
        result.kills["driver"] += 1
    driver.listen(ORPHAN_S_MAX)


def check_end(driver: Driver, result: Round) -> None:
    """After a driver is gone: its exit code, no orphans, durable files whole."""
    if any(fault.startswith("HANG") for fault in result.faults):
        driver.process.kill()
    code = driver.process.wait()
    if not result.driver_killed and not result.faults and (code != 0 or not driver.said("equal")):
        words = driver.said("different") or [driver.errors.read_text().strip().splitlines()[-1:]]
        result.faults.append(f"exit code {code}: {' '.join(map(str, words[0]))}")
    until = time.monotonic() + ORPHAN_S_MAX
    while (left := tree.members(driver.mark)) and time.monotonic() < until:
        time.sleep(0.02)
    if left:
        result.faults.append(f"ORPHANS: {len(left)} processes left after {ORPHAN_S_MAX:.0f} s")
        tree.end_all(driver.mark)
    for _, name, digest in driver.said("durable"):
        result.durable += 1
        place = Path(name)
        data = place.read_bytes() if place.exists() else b""
        if hashlib.blake2b(data, digest_size=16).hexdigest() != digest:
            result.faults.append(f"LOST: {place.name} was reported durable, and is not whole")


def run_round(seed: int, keep: Path) -> Round:
    """One driver, from start to end; its folder is kept below `keep` if something was wrong."""
    source = random.Random(seed)
    result = Round(seed, driver_killed=source.random() < DRIVER_KILLS_SHARE)
    shared = set(os.listdir("/dev/shm"))
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    started = time.monotonic()
    driver = Driver(seed, folder)
    try:
        if result.driver_killed:
            kill_driver(driver, source, result)
        else:
            kill_workers(driver, source, result)
        check_end(driver, result)
    finally:
        tree.end_all(driver.mark)
        driver.process.wait()
    new = set(os.listdir("/dev/shm")) - shared
    if new:
        result.faults.append(f"LEAK: {', '.join(sorted(new))} left in /dev/shm")
    result.seconds = time.monotonic() - started
    if result.faults:
        keep.mkdir(parents=True, exist_ok=True)
        shutil.copy(driver.errors, keep / f"seed-{seed}.txt")
    shutil.rmtree(folder, ignore_errors=True)
    return result


def shared_memory_bytes() -> int:
    """Shared memory in use on the whole machine: what a memory file without a process is not in."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("Shmem:"):
            return int(line.split()[1]) * 1024
    return 0


def main() -> int:
    """Rounds until the time is up; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0, help="default: %(default)s")
    parser.add_argument("--seed", type=int, help="of the first round; default: from the clock")
    parser.add_argument("--rounds", type=int, default=1 << 30, help="at most so many")
    parser.add_argument("--keep", type=Path, default=Path("out/soak"), help="for what went wrong")
    options = parser.parse_args()
    first = options.seed if options.seed is not None else int(time.time()) * 1000
    print(f"soak: {options.seconds:.0f} s, first seed {first}", flush=True)
    before = shared_memory_bytes()
    until = time.monotonic() + options.seconds
    rounds: list[Round] = []
    while time.monotonic() < until and len(rounds) < options.rounds:
        rounds.append(run_round(first + 10 * len(rounds), options.keep))
        print(rounds[-1].line(), flush=True)
    kills: Counter[str] = Counter()
    for result in rounds:
        kills.update(result.kills)
    bad = [result for result in rounds if result.faults]
    words = Counter(fault.split(":")[0] for result in bad for fault in result.faults)
    grown = (shared_memory_bytes() - before) / 1e6
    print(
        f"soak: {len(rounds)} rounds; killed: {kills['compute']} compute workers, {kills['io']} "
        f"I/O workers, {kills['driver']} drivers; {sum(r.durable for r in rounds)} durable files "
        f"checked; shared memory of the machine {grown:+.1f} MB. "
        f"{'Everything held.' if not bad else f'FAILED: {dict(words)}'} "
        f"Again: --seed {bad[0].seed if bad else first}"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
