"""Progress of a run: one line on a terminal that is rewritten, nothing elsewhere."""

from __future__ import annotations

import sys
import threading
from types import TracebackType
from typing import Self


class Progress:
    """Counts pairs; may be told from any thread."""

    def __init__(self, title: str, pairs: int, verbose: bool) -> None:
        self.title = title
        self.pairs = pairs
        self.verbose = verbose
        self.shown = sys.stderr.isatty()
        self.lock = threading.Lock()
        self.counts = [0, 0]

    def __enter__(self) -> Self:
        self._show()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def searched(self, name: str) -> None:
        """Count a pair that was searched."""
        self._count(0)

    def durable(self, name: str) -> None:
        """Count a pair whose checkpoint is durable."""
        self._count(1)
        if self.verbose:
            print(f"durable {name}", flush=True)

    def _count(self, which: int) -> None:
        with self.lock:
            self.counts[which] += 1
            self._show()

    def _show(self) -> None:
        if self.shown:
            searched, durable = self.counts
            text = f"{self.title}: {searched} of {self.pairs} pairs searched, {durable} durable"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
