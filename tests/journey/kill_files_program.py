"""One program of kill_files: `python -m tests.journey.kill_files_program SEED FOLDER`.

Writes, changes, reads and copies files that a session keeps on three layers, as the seed says. In
its journal, a line each: `started NAME VERSION KIND SHA256` before a task that is to make a version
of a file is submitted, `reported NAME VERSION` when its result was there, `phase ending` before the
session ends, and `wrong ...` for a result that differs from what the program's order gives.
"""

from __future__ import annotations

import hashlib
import io
import os
import random
import sys
from collections import deque
from collections.abc import Callable
from pathlib import Path

import alongside as al

BLOCK = 4096
CALLS_MIN, CALLS_MAX = 14, 40
BEFORE = 4
TREE = ".d"
UNTOUCHED = 2


def names(seed: int) -> list[str]:
    """The files of a program; those that are there before it begins come first."""
    source = random.Random(f"names {seed}")
    layers = [source.choice(["slow", "slow", "mid"]) for _ in range(9)]
    folders = [source.choice(["", "new/", "new/deep/"]) for _ in range(9)]
    before = [f"{layers[number]}/old-{number}" for number in range(BEFORE)]
    new = [f"{layers[n]}/{folders[n]}file-{n}" for n in range(BEFORE, 9)]
    trees = [f"{source.choice(['slow', 'mid'])}/tree{TREE}", f"new/tree{TREE}"]
    return [*before, *new, "here", "below/here", *trees]


def content(name: str, version: int, seed: int) -> bytes:
    """What a version of a file has when it is written whole."""
    source = random.Random(f"{name} {version} {seed}")
    blocks = source.choice([1, 2, 5, 10, 10, 20, 60])
    mark = f"{name} {version} ".encode() * 8
    return (mark + source.randbytes(BLOCK)) * blocks + mark


def changed(data: bytes, version: int) -> bytes:
    """What a task makes of a file that it changes in place."""
    mark = f"changed {version} ".encode() * 8
    half = len(data) // 2
    return mark[: len(data)] + data[len(mark) : half] + data[half:] + mark


def leaves(name: str, data: bytes) -> dict[str, bytes]:
    """The files of a directory whose contents, in the order of their names, are this."""
    third = len(data) // 3
    return {
        "a": data[:third],
        "below/b": data[third : 2 * third],
        f"c-{len(data) % 3}": data[2 * third :],
    }


def whole(path: Path) -> bytes:
    """What is in a file, or in the files of a directory, in the order of their names."""
    if path.is_dir():
        below = sorted(str(one) for one in path.rglob("*") if one.is_file())
        return b"".join(Path(one).read_bytes() for one in below)
    return path.read_bytes()


def digest(data: bytes) -> str:
    """What is told of a content."""
    return hashlib.sha256(data).hexdigest()


def write_slowly(file: io.FileIO, data: bytes) -> None:
    """Writes in parts, and flushes some, so that a kill finds a file half written."""
    for number, start in enumerate(range(0, len(data), BLOCK)):
        file.write(data[start : start + BLOCK])
        if number % 4 == 0:
            os.fsync(file.fileno())


@al.io(bandwidth="10MB/s")
def save(path: al.FileOut, name: str, version: int, seed: int) -> None:
    """Writes a file."""
    with open(path, "wb", buffering=0) as file:
        write_slowly(file, content(name, version, seed))


save_large = al.io(bandwidth="10MB/s", size="90kB", name="save_large")(save.function)
"""It says how much it writes, so that it goes to its own layer where the others have no room."""


@al.io(bandwidth="10MB/s")
def change(path: al.FileInOut, version: int) -> None:
    """Changes a file in place: its begin, then its end."""
    with open(path, "r+b", buffering=0) as file:
        data = changed(file.read(), version)
        file.seek(0)
        write_slowly(file, data)


@al.io(bandwidth="10MB/s")
def save_tree(path: al.DirOut, name: str, version: int, seed: int) -> None:
    """Makes a directory."""
    for leaf, data in leaves(name, content(name, version, seed)).items():
        one = Path(path, leaf)
        one.parent.mkdir(exist_ok=True)
        with one.open("wb", buffering=0) as file:
            write_slowly(file, data)


@al.io(bandwidth="10MB/s")
def change_tree(path: al.DirInOut, name: str, version: int) -> None:
    """Changes a directory in place: its files anew, one by one."""
    data = changed(whole(Path(path)), version)
    for one in Path(path).glob("c-*"):
        one.unlink()
    for leaf, part in leaves(name, data).items():
        with Path(path, leaf).open("wb", buffering=0) as file:
            write_slowly(file, part)


@al.io(bandwidth="10MB/s")
def load_tree(path: al.DirIn, _after: object = None) -> str:
    """What is in a directory."""
    return digest(whole(Path(path)))


@al.io(bandwidth="10MB/s")
def load(path: al.FileIn, _after: object = None) -> str:
    """What is in a file."""
    return digest(Path(path).read_bytes())


@al.task
def compute(rounds: int) -> int:
    """Keeps a processor busy while files move."""
    data = b""
    for _ in range(rounds):
        data = hashlib.sha256(data * 1000).digest()
    return rounds


class Program:
    """The files, as the program's order makes them, and what is under way."""

    def __init__(self, seed: int, folder: Path) -> None:
        self.seed = seed
        self.source = random.Random(f"program {seed}")
        self.names = names(seed)
        self.journal = os.open(folder / "journal", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self.versions = dict.fromkeys(self.names[:BEFORE], 0)
        self.data = {name: content(name, 0, seed) for name in self.names[:BEFORE]}
        self.open: deque[tuple[al.Future[object], Callable[[object], str]]] = deque()

    def say(self, *words: object) -> None:
        """One line of the journal, in one write; also for who waits for a moment to kill."""
        line = (" ".join(map(str, words)) + "\n").encode()
        os.write(self.journal, line)
        os.write(sys.stdout.fileno(), line)

    def begins(self, name: str, kind: str, data: bytes | None = None) -> int:
        """A task is about to be submitted that makes another version."""
        version = self.versions.get(name, 0) + 1
        self.versions[name] = version
        self.data[name] = content(name, version, self.seed) if data is None else data
        self.say("started", name, version, kind, digest(self.data[name]))
        return version

    def reports(self, name: str, version: int) -> Callable[[object], str]:
        """What is said when that version is there."""
        return lambda _: f"reported {name} {version}"

    def compares(self, name: str) -> Callable[[object], str]:
        """What is said when what is in a file now was read."""
        wanted, version = digest(self.data[name]), self.versions[name]

        def compare(found: object) -> str:
            is_equal = (digest(found) if isinstance(found, bytes) else found) == wanted
            return f"{'read' if is_equal else 'wrong'} {name} {version}"

        return compare

    def call(self) -> None:
        """Submits one task, or a task and what waits for it."""
        source = self.source
        name = source.choice(self.names)
        if name.endswith(TREE):
            self.call_tree(name)
            return
        known = source.choice([one for one in self.versions if not one.endswith(TREE)])
        kind = source.choice(["save"] * 4 + ["write", "change", "change", "load", "late", "copy"])
        if kind == "save":
            version = self.begins(name, "out")
            saves = source.choice([save, save_large])
            self.open.append((saves(name, name, version, self.seed), self.reports(name, version)))
        elif kind == "write":
            version = self.begins(name, "out")
            written = al.write(name, self.data[name])
            self.open.append((written, self.reports(name, version)))
        elif kind == "copy" and name != known:
            version = self.begins(name, "out", self.data[known])
            self.open.append((al.copy(known, name), self.reports(name, version)))
        elif kind == "change":
            version = self.begins(
                known, "inout", changed(self.data[known], self.versions[known] + 1)
            )
            self.open.append((change(known, version), self.reports(known, version)))
        elif kind == "late":
            busy = compute(source.randrange(500, 4000))
            self.open.append((load(known, busy), self.compares(known)))
        else:
            self.open.append((al.read(known), self.compares(known)))

    def call_tree(self, name: str) -> None:
        """The same for a directory."""
        known = name in self.versions
        kind = self.source.choice(["save", "change", "load", "late"]) if known else "save"
        if kind == "save":
            version = self.begins(name, "out")
            made = save_tree(name, name, version, self.seed)
            self.open.append((made, self.reports(name, version)))
        elif kind == "change":
            data = changed(self.data[name], self.versions[name] + 1)
            version = self.begins(name, "inout", data)
            self.open.append((change_tree(name, name, version), self.reports(name, version)))
        else:
            busy = compute(self.source.randrange(500, 4000)) if kind == "late" else None
            self.open.append((load_tree(name, busy), self.compares(name)))

    def wait(self, most: int) -> None:
        """Takes results until at most so many are awaited."""
        while len(self.open) > most:
            future, line = self.open.popleft()
            self.say(line(future.result(60)))

    def run(self) -> None:
        """All of it."""
        for _ in range(self.source.randrange(CALLS_MIN, CALLS_MAX)):
            self.call()
            if self.source.random() < 0.2:
                self.wait(0)
                compute(self.source.randrange(1000, 5000)).result(60)  # the time for moves
            self.wait(6)
        self.wait(0)


def main() -> int:
    """Runs the program of a seed."""
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    os.chdir(folder / "work")
    program = Program(seed, folder)
    source = random.Random(f"session {seed}")
    policy = source.choice(["fcfs", "priority", "backfilling"])
    executors = source.choice([2, 4])
    with al.Session(
        workers=1,
        io_executors=executors,
        storage="storage.toml",
        io_policy=policy,
        flush=True,
        prefetch=True,
    ) as session:
        program.say("phase running")
        program.run()
        program.say("phase ending", session.statistics().files_moved)
    program.say("phase over")
    return 0


if __name__ == "__main__":
    sys.exit(main())
