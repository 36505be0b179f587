"""Which session calls go to. One for the whole process: threads share it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from alongside.session import Session

current: Session | None = None
"""The session whose block was entered last, or None: calls run inline."""

entered: list[Session] = []
"""Sessions whose blocks are open, in the order in which they were entered."""

autostart: Callable[[], Session] | None = None
"""Set by `alongside run`: makes the session when the first task is called outside of any."""

opened: Callable[[Session], None] | None = None
closed: Callable[[Session], None] | None = None
"""Set by `alongside run`: told of every session that begins and ends."""

session_options: dict[str, Any] = {}
record = False
"""Set by `alongside run`: arguments that go before those the program gives a session."""

in_worker = False
"""Whether this process runs task bodies. There, calls of tasks run inline."""

live: dict[int, Session] = {}
"""Sessions that are not closed, by number, to find the one that a future belongs to."""


def session() -> Session | None:
    """The session that a call goes to now."""
    if current is None and autostart is not None and not in_worker:
        return autostart()
    return current
