"""A progress bar on a terminal; nothing in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from alongside import units

if TYPE_CHECKING:
    from alongside.session import Session

REFRESHES_PER_S = 8


def bar(wanted: bool) -> Bar:
    """The bar, which shows itself only on a terminal."""
    if wanted and sys.stderr.isatty():
        try:
            return TerminalBar()
        except ImportError:  # rich is not installed
            return Bar()
    return Bar()


class Bar:
    """The bar that shows nothing."""

    def show(self, session: Session) -> None:
        """A session began."""

    def close(self) -> None:
        """All ended."""


class TerminalBar(Bar):
    """Tasks that are over, of those submitted; and what was moved."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self.session: Session | None = None
        self.progress = Progress(
            TextColumn("tasks"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}")
        )
        self.task = self.progress.add_task("", total=None)
        self.live: Any = Live(
            get_renderable=self.drawn,
            console=Console(stderr=True),
            refresh_per_second=REFRESHES_PER_S,
            transient=True,
            redirect_stdout=sys.stdout.isatty(),
        )

    def show(self, session: Session) -> None:
        """From now on, this session."""
        first = self.session is None
        self.session = session
        if first:
            self.live.start()

    def close(self) -> None:
        """Wipes the bar."""
        if self.session is not None:
            self.live.refresh()
            self.live.stop()
            self.session = None

    def drawn(self) -> Any:
        """The bar as it stands."""
        if self.session is not None:
            now = self.session.statistics()
            over = now.done + now.failed + now.cancelled
            words = [units.seconds(now.elapsed_ns)]
            if now.failed:
                words.append(f"{now.failed} failed")
            if now.bytes_read or now.bytes_written:
                moved = (
                    f"{units.size(now.bytes_read)} read, {units.size(now.bytes_written)} written"
                )
                words.append(moved)
            text = ", ".join(words)
            self.progress.update(
                self.task, completed=over, total=now.submitted or None, description=text
            )
        return self.progress
