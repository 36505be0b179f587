"""Progress of a long benchmark: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


class Tell(Protocol):
    """What a benchmark calls before each of its steps."""

    def __call__(self, words: str) -> None:
        """Another step begins; `words` say which."""


@contextmanager
def steps(console: Console, count: int) -> Iterator[Tell]:
    """A function to call before each of `count` steps."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as bar:
        shown = bar.add_task("starting", total=count)
        begun = 0

        def tell(words: str) -> None:
            nonlocal begun
            bar.update(shown, description=words, completed=begun)
            begun += 1

        yield tell
