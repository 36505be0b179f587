"""Kills programs whose files are on layers, and recovers: `python -m tests.journey.kill_files`.

A round is one program (kill_files_program.py) over three layers, a small one in memory and two on
disk, with flush and prefetch, half of them with watermarks. At a moment that the seed gives, its
process group is killed: while it starts, runs, or brings files home in the end. Then `alongside
recover` runs, and is killed too, up to twice, before it may finish. Each file has to be at its own
path with the content of the version that was reported last, or of a later one that was begun; one
that was being changed in place may be half changed if `recover` said so. Nothing else may be there.
Exit code 0 only if all of that held in every round.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import ctypes
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
from tests.journey.kill_files_program import BEFORE, TREE, content, names, whole

ROOT = Path(__file__).resolve().parents[2]
MEMORY = Path("/dev/shm")
ROUND_S_MAX = 60.0
GONE_S_MAX = 10.0
STARTING_S = (0.0, 0.35)
RUNNING_S = (0.0, 0.04)
LINES_MAX = 44
ENDING_S = (0.0, 0.06)
MOVING_S = (0.0, 0.006)
LOOK_S = 0.0005
RECOVERING_S = (0.0, 0.05)
RECOVER_KILLS_MAX = 2
SUBREAPER = 36
OLDER = b"nobody touches this\n"
RECOVER = """
import sys
from alongside.cli import main
print("ready", flush=True)
sys.exit(main(sys.argv[1:]))
"""
MARKS = """\
high_watermark = "60%"
low_watermark = "20%"
"""
LAYERS = """
[[layer]]
name = "fast"
path = "{fast}"
bandwidth = "1GB/s"
capacity = "{small}kB"
{marks}

[[layer]]
name = "mid"
path = "mid"
bandwidth = "400MB/s"
capacity = "{middle}kB"

[[layer]]
name = "slow"
path = "slow"
bandwidth = "100MB/s"
{limit}
"""


@dataclass
class Version:
    """A version of a file that was begun."""

    number: int
    kind: str
    digest: str


@dataclass
class Round:
    """What happened in one round."""

    seed: int
    phase: str = ""
    counts: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    said: str = ""
    catalog: bytes = b""
    journal: str = ""

    def line(self) -> str:
        """For the log."""
        counts = ", ".join(f"{what} {count}" for what, count in sorted(self.counts.items()))
        return f"seed {self.seed}: {self.phase}: {counts}: {'; '.join(self.faults[:4]) or 'ok'}"


def until_said(output: int, words: bytes, times: int = 1) -> bool:
    """Reads until that was said so often, or the output ended; False if time is up."""
    end = time.monotonic() + ROUND_S_MAX
    text = b""
    while (left := end - time.monotonic()) > 0:
        if select.select([output], [], [], left)[0]:
            data = os.read(output, 1 << 12)
            text += data
            if not data or text.count(words) >= times:
                return True
    return False


def ends_within(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Waits so long for the end of a process."""
    descriptor = os.pidfd_open(process.pid)
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


def until_moving(place: Place, process: subprocess.Popen[bytes]) -> None:
    """Waits until a file is being copied to its own path, or the program has ended."""
    end = time.monotonic() + ROUND_S_MAX
    homes = {(place.work / name).parent for name in names(place.seed)}
    while time.monotonic() < end and not ends_within(process, LOOK_S):
        for home in homes:
            with contextlib.suppress(FileNotFoundError):
                if any("-session-" in name and name[0] == "." for name in os.listdir(home)):
                    return


def kill_all(process: subprocess.Popen[bytes], mark: str) -> bool:
    """Kills a process group, and waits until none of the program's processes is left."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    try:
        while True:
            os.waitpid(-process.pid, 0)
    except ChildProcessError:
        pass  # none of the group is left
    end = time.monotonic() + GONE_S_MAX
    while tree.members(mark):
        if time.monotonic() > end:
            tree.end_all(mark)
            return False
        time.sleep(0.005)
    return True


class Place:
    """The folders of a round."""

    def __init__(self, seed: int, below: Path | None) -> None:
        self.seed = seed
        self.folder = Path(tempfile.mkdtemp(prefix="kill-files-", dir=below)).resolve()
        self.fast = Path(tempfile.mkdtemp(prefix="kill-files-", dir=MEMORY)).resolve()
        self.work = self.folder / "work"
        source = random.Random(f"layers {seed}")
        for folder in ("slow", "mid"):
            (self.work / folder).mkdir(parents=True)
            (self.work / folder / "untouched").write_bytes(OLDER)
        layers = LAYERS.format(
            fast=self.fast,
            small=source.choice([30, 100, 300]),
            middle=source.choice([30, 100, 600]),
            limit=source.choice(["", 'limit = "20MB/s"']),
            marks=source.choice(["", MARKS]),
        )
        (self.work / "storage.toml").write_text(layers)
        for name in names(seed)[:BEFORE]:
            (self.work / name).write_bytes(content(name, 0, seed))

    def sessions(self) -> list[Path]:
        """The folders of sessions."""
        return sorted((self.work / ".alongside").glob("*"))

    def found(self) -> dict[str, Path]:
        """All files, by their names seen from the working directory; directories of tasks whole."""
        below = [*self.work.rglob("*"), *self.fast.rglob("*")]
        trees = [path for path in below if path.name.endswith(TREE) and path.is_dir()]
        files = [path for path in below if not path.is_dir() or path.is_symlink()]
        files = [path for path in files if not any(map(path.is_relative_to, trees))] + trees
        inside = self.work
        return {
            str(path.relative_to(inside) if path.is_relative_to(inside) else path): path
            for path in files
        }

    def remove(self) -> None:
        """Deletes all."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.rmtree(self.fast, ignore_errors=True)


def start(arguments: list[str], mark: str, folder: Path) -> subprocess.Popen[bytes]:
    """A process in a group of its own."""
    with (folder / "errors").open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, *arguments],
            cwd=ROOT,
            env={**os.environ, tree.MARK: mark},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )


def run_and_kill(place: Place, result: Round) -> None:
    """The program, up to the moment of the kill."""
    source = random.Random(f"kill {place.seed}")
    mark = tree.new_mark()
    program = ["-m", "tests.journey.kill_files_program", str(place.seed), str(place.folder)]
    process = start(program, mark, place.folder)
    assert process.stdout is not None
    try:
        wanted = source.choices(["starting", "running", "moving", "ending"], [1, 4, 3, 3])[0]
        times = source.randrange(1, LINES_MAX) if wanted == "running" else 1
        said = {"running": b"ed ", "moving": b"ed ", "ending": b"phase ending"}
        words = said.get(wanted, b"")
        if words and not until_said(process.stdout.fileno(), words, times):
            result.faults.append(f"HANG: not {wanted} in {ROUND_S_MAX:.0f} s")
        if wanted == "moving":
            until_moving(place, process)
        moments = {
            "starting": STARTING_S, "running": RUNNING_S, "moving": MOVING_S, "ending": ENDING_S,
        }  # fmt: skip
        ended = ends_within(process, source.uniform(*moments[wanted]))
    finally:
        gone = kill_all(process, mark)
        process.stdout.close()
    if ended and process.returncode != 0:
        result.faults.append(f"PROGRAM: exit code {process.returncode}")
    if not gone:
        result.faults.append("ORPHANS: processes were left")


def note_state(place: Place, result: Round) -> None:
    """Where the kill fell, by the journal and the catalog."""
    journal = place.folder / "journal"
    result.journal = journal.read_text() if journal.exists() else ""
    for folder in place.sessions():
        if (folder / "catalog").exists():
            result.catalog = (folder / "catalog").read_bytes()
    phases = [line.split()[1] for line in result.journal.splitlines() if line[:5] == "phase"]
    result.phase = phases[-1] if phases else "starting"
    leaving = changing = 0
    for line in result.catalog.decode(errors="replace").splitlines()[1:]:
        verb = line.split()[1:2]
        leaving += (verb == ["leaving"]) - (verb == ["home"])
        changing += verb == ["changing"]
        result.counts["catalog copies"] += verb == ["copy"]
    if result.phase == "running":
        begun = result.journal.count("started ") - result.journal.count("reported ")
        result.phase = "flushing" if leaving > 0 else "writing" if begun else "idle"
    elif result.phase == "ending":
        result.phase = "bringing home" if result.catalog else "ended"


def recover(place: Place, result: Round) -> None:
    """`alongside recover`, killed as often as the seed says, and then up to its end."""
    source = random.Random(f"recover {place.seed}")
    kills = source.choice([0, 0, 1, RECOVER_KILLS_MAX])
    for attempt in range(RECOVER_KILLS_MAX + 1):
        for folder in place.sessions():
            mark = tree.new_mark()
            process = start(["-c", RECOVER, "recover", str(folder)], mark, place.folder)
            assert process.stdout is not None
            try:
                until_said(process.stdout.fileno(), b"ready")
                patience = source.uniform(*RECOVERING_S) if attempt < kills else ROUND_S_MAX
                ended = ends_within(process, patience)
            finally:
                kill_all(process, mark)
            result.said += process.stdout.read().decode()
            process.stdout.close()
            if not ended and attempt < kills:
                result.counts["recover killed"] += 1
            elif not ended:
                result.faults.append("HANG: recover does not end")
            elif process.returncode != 0:
                said = (place.folder / "errors").read_text().strip().splitlines()[-1:]
                result.faults.append(f"RECOVER: exit code {process.returncode}: {said}")


def check(place: Place, result: Round) -> None:
    """What the journal promises, against what is there."""
    begun: dict[str, list[Version]] = {
        name: [Version(0, "out", hashlib.sha256(content(name, 0, place.seed)).hexdigest())]
        for name in names(place.seed)[:BEFORE]
    }
    last = dict.fromkeys(begun, 0)
    for line in result.journal.splitlines():
        match line.split():
            case ["started", name, number, kind, digest]:
                begun.setdefault(name, []).append(Version(int(number), kind, digest))
            case ["reported", name, number]:
                last[name] = max(last.get(name, 0), int(number))
                result.counts["reported"] += 1
            case ["wrong", *words]:
                result.faults.append(f"WRONG: read {' '.join(words)}")
    found = place.found()
    for name, versions in begun.items():
        check_file(name, versions, last.get(name), found.pop(name, None), result)
    for name in ("slow/untouched", "mid/untouched"):
        path = found.pop(name, None)
        if path is None or path.read_bytes() != OLDER:
            result.faults.append(f"TOUCHED: {name}")
    found.pop("storage.toml", None)
    result.faults += [f"LEFT: {name}" for name in found]
    folders = [*place.work.rglob(".alongside/*"), *place.fast.rglob("*"), *place.fast.glob(".a*")]
    result.faults += [f"LEFT: {folder}/" for folder in folders if folder.is_dir()]


def check_file(
    name: str, versions: list[Version], last: int | None, path: Path | None, result: Round
) -> None:
    """One file: `last` is the version that was reported last."""
    if path is None:
        if last is not None:
            result.faults.append(f"LOST: {name} {last}")
        return
    data = whole(path)
    digest = hashlib.sha256(data).hexdigest()
    number = -1 if last is None else last
    later = [version for version in versions if version.number > number]
    if any(version.digest == digest for version in versions if version.number >= number):
        result.counts["files"] += 1
        return
    told = any(
        line.startswith(f"{path}:") and "half changed" in line for line in result.said.splitlines()
    )
    if told and later:
        result.counts["half changed, told"] += 1
        return
    if last is None and later:
        # Nobody heard that it is done, and nothing else was there.
        result.counts["new, half written"] += 1
        return
    older = [version.number for version in versions if version.digest == digest]
    kinds = sorted({version.kind for version in later})
    what = f"has version {older[-1]}" if older else f"is half made ({len(data)} bytes)"
    result.faults.append(f"CONTENT: {name} {last} {what}; begun: {', '.join(kinds) or 'nothing'}")


def run_round(seed: int, keep: Path, below: Path | None) -> Round:
    """One program, from start to end; what it left is kept below `keep` if something was wrong."""
    result = Round(seed)
    place = Place(seed, below)
    try:
        run_and_kill(place, result)
        note_state(place, result)
        recover(place, result)
        check(place, result)
        if result.faults:
            folder = keep / f"seed-{seed}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "journal").write_text(result.journal)
            (folder / "catalog").write_bytes(result.catalog)
            (folder / "said").write_text(f"{result.line()}\n{result.said}")
            shutil.copy(place.folder / "errors", folder / "errors")
    finally:
        place.remove()
    return result


def main() -> int:
    """All rounds; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="rounds (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the first (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=2, help="at once (default: %(default)s)")
    parser.add_argument("--below", type=Path, help="folder on a disk for two of the layers")
    parser.add_argument("--keep", type=Path, default=Path("out/kill-files"), help="for violations")
    options = parser.parse_args()
    ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)  # orphans are ours, and are waited for
    began = time.monotonic()
    phases: Counter[str] = Counter()
    counts: Counter[str] = Counter()
    bad: list[int] = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        seeds = range(options.seed, options.seed + options.kills)
        for result in pool.map(lambda seed: run_round(seed, options.keep, options.below), seeds):
            phases[result.phase] += 1
            counts.update(result.counts)
            if result.faults:
                bad.append(result.seed)
                print(result.line(), flush=True)
            elif result.seed % 100 == 0:
                print(f"seed {result.seed}: {time.monotonic() - began:.0f} s", flush=True)
    fell = ", ".join(f"{phase} {count}" for phase, count in phases.most_common())
    print(
        f"kill-files: {options.kills} kills in {time.monotonic() - began:.0f} s ({fell}); recover "
        f"killed {counts['recover killed']} times; {counts['reported']} versions reported; "
        f"{counts['files']} files whole, {counts['half changed, told']} half changed and told, "
        f"{counts['new, half written']} new ones half written. "
        + (f"FAILED: {len(bad)} seeds; again: --seed {bad[0]}" if bad else "Everything held.")
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
