"""A stream: words of a text of any length, counted a line at a time while it is being read."""

import collections
import tempfile
from collections.abc import Iterator

import alongside as al

LINES = 200


@al.io(returns=al.Stream, buffer=4)
def lines(path: al.FileIn) -> Iterator[str]:
    """The lines of a file. Four are in memory at most: the reader waits for its consumers."""
    with al.open(path) as file:
        yield from file


@al.task
def count(line: str) -> collections.Counter[str]:
    """The words of a line."""
    return collections.Counter(line.split())


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.writelines(
            f"line {number} is {'odd' if number % 2 else 'even'}\n" for number in range(LINES)
        )
        file.flush()
        total: collections.Counter[str] = collections.Counter()
        for counted in lines(file.name).map(count, ordered=False):
            total += al.wait(counted)
        print("most frequent:", sorted(total.items(), key=lambda item: (-item[1], item[0]))[:4])
        first = next(iter(lines(file.name)))  # the rest is not read
        print("first line:", al.wait(first).strip())


if __name__ == "__main__":
    main()
