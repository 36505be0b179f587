"""Objects of the program that tasks change: which datum each is, found by identity."""

from __future__ import annotations

import sys
import threading
import weakref
from typing import Any

from alongside import _context, _native

UNCHANGEABLE = (int, float, complex, bool, str, bytes, tuple, frozenset, range, type(None))


class Entry:
    """One tracked object.

    Held weakly where its type allows it, else until nobody else has it and a session ends.
    """

    __slots__ = ("__weakref__", "datum", "final", "strong", "weak")

    def __init__(self, obj: Any, datum: int) -> None:
        self.datum = datum
        self.final: _native.Handle | None = None  # after the session: its last version
        self.strong: Any = None
        self.weak: weakref.ref[Any] | None = None
        try:
            self.weak = weakref.ref(obj)
        except TypeError:
            self.strong = obj

    def is_for(self, obj: Any) -> bool:
        """Whether it is this very object, not a later one in the same memory."""
        return (self.weak() if self.weak is not None else self.strong) is obj


class Objects:
    """The tracked objects of one session."""

    def __init__(self, native: _native.Session) -> None:
        self.native = native
        self.entries: dict[int, Entry] = {}
        self.lock = threading.RLock()

    def find(self, obj: Any) -> Entry | None:
        """The entry of an object, if it is tracked."""
        entry = self.entries.get(id(obj))
        return entry if entry is not None and entry.is_for(obj) else None

    def track(self, obj: Any, initial: _native.Handle) -> Entry:
        """Begins to track an object with this first version."""
        with self.lock:
            entry = self.find(obj)
            if entry is None:
                entry = Entry(obj, self.native.object(initial))
                self.entries[id(obj)] = entry
                _in_use.add(self)
                if entry.weak is not None:
                    weakref.finalize(obj, self._dropped, id(obj), weakref.ref(entry)).atexit = False
            return entry

    def forget(self, obj: Any) -> bool:
        """Stops tracking an object."""
        with self.lock:
            entry = self.find(obj)
            if entry is None:
                return False
            del self.entries[id(obj)]
            self.native.forget_datum(entry.datum)
            return True

    def _dropped(self, key: int, reference: weakref.ref[Entry]) -> None:
        entry = reference()
        if entry is not None and self.entries.get(key) is entry:
            del self.entries[key]
            self.native.forget_datum(entry.datum)

    def end(self) -> None:
        """The session is over: nothing of it is newer than what it left (`keep_last`)."""
        _in_use.discard(self)

    def keep_last(self) -> None:
        """Names the last version of each, for the time after the session."""
        _drop_unheld()
        for key, entry in list(self.entries.items()):
            obj = entry.weak() if entry.weak is not None else entry.strong
            if entry.weak is not None and obj is None:
                continue
            entry.final = self.native.current(entry.datum)
            _last[key] = entry
            if entry.weak is not None:
                weakref.finalize(obj, _drop, key, weakref.ref(entry)).atexit = False


_in_use: set[Objects] = set()
"""Those of sessions that are not over and have tracked something: every call of a task looks."""

_last: dict[int, Entry] = {}
"""By identity: objects that tasks of sessions have changed that ended, with the last versions."""


def last_of(obj: Any) -> Entry | None:
    """What the last session that tracked an object and ended left of it."""
    entry = _last.get(id(obj))
    return entry if entry is not None and entry.is_for(obj) else None


def forget_last(obj: Any) -> bool:
    """Forgets what a session left of an object. Whether it left anything."""
    return last_of(obj) is not None and _last.pop(id(obj), None) is not None


def is_used() -> bool:
    """Whether any object may have a newer value than itself."""
    return bool(_in_use or _last)


def holders() -> list[Objects]:
    """What may have newer values, that of the session that was entered last first."""
    sessions = [*reversed(_context.entered), *reversed(list(_context.live.values()))]
    return [session.objects for session in sessions if session.objects in _in_use]


def newest(obj: Any, objects: list[Objects]) -> Any:
    """The future of an object's newest value. None: no task changed it.

    Of the first of `objects` (`holders()`) that tracks it, or of the session that ended last.
    """
    for one in objects:
        entry = one.find(obj)
        if entry is not None:
            return entry.final or one.native.current(entry.datum)
    left = last_of(obj)
    return None if left is None else left.final


def _drop(key: int, reference: weakref.ref[Entry]) -> None:
    entry = reference()
    if entry is not None and _last.get(key) is entry:
        del _last[key]


def _drop_unheld() -> None:
    """Objects without weak references go once nobody but this table has them."""
    for key, entry in list(_last.items()):
        if entry.weak is None and sys.getrefcount(entry.strong) <= HELD_BY_US:
            del _last[key]


HELD_BY_US = 2
"""References to an object that an entry and the look at it have."""
