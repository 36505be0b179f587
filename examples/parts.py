"""Eager release: summaries of the parts of a text begin while it is still being cut."""

from collections.abc import Iterator

import alongside as al

TEXT = "the cat sat on the mat and the dog sat on the cat and all slept well"
PARTS = 4


@al.task(returns=PARTS)
def cut(text: str) -> Iterator[list[str]]:
    """The parts of a text: each `yield` hands one over."""
    words = text.split()
    size = -(-len(words) // PARTS)
    for number in range(PARTS):
        yield words[number * size : (number + 1) * size]


@al.task
def longest(words: list[str]) -> str:
    """The longest word of a part; runs once that part is there."""
    return max(words, key=len)


@al.task(returns=2)
def count(text: str) -> tuple[None, int]:
    """How many words, at once, and later how many different ones."""
    words = text.split()
    al.release(0, len(words))
    return None, len(set(words))


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    words, different = count(TEXT)
    print("longest of each part:", al.wait([longest(part) for part in cut(TEXT)]))
    print("words:", al.wait(words), "different:", al.wait(different))


if __name__ == "__main__":
    main()
