"""A directory as one datum: a task fills it, others read parts of it, a last one adds an index."""

import os
import tempfile
from pathlib import Path

import alongside as al

WORDS = ["storage", "tasks", "overlap", "layers", "bytes", "files", "engine", "ring", "graph"]


@al.io
def partition(words: list[str], parts: al.DirOut) -> int:
    """One file for each first letter. The directory is there, and empty."""
    letters = sorted({word[0] for word in words})
    for letter in letters:
        Path(parts, letter).write_text("\n".join(one for one in words if one[0] == letter))
    return len(letters)


@al.io
def count(part: al.FileIn) -> int:
    """How many words are in one file of the directory."""
    return len(Path(part).read_text().split())


@al.io
def index(parts: al.DirInOut, counts: list[int]) -> None:
    """Runs after those that read: it changes the directory."""
    names = sorted(os.listdir(parts))
    lines = [f"{name} {number}" for name, number in zip(names, counts, strict=True)]
    Path(parts, "index").write_text("\n".join(lines))


def main() -> None:
    """Leaves `parts/` with an index."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with al.Session(workers=1):
            partition(WORDS, "parts")
            letters = sorted({word[0] for word in WORDS})
            index("parts", [count(f"parts/{letter}") for letter in letters])
        print(Path("parts/index").read_text().replace("\n", ", "))
        os.chdir("/")


if __name__ == "__main__":
    main()
