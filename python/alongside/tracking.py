"""Objects of the program that tasks change: which datum each is, found by identity."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from alongside import _native

UNCHANGEABLE = (int, float, complex, bool, str, bytes, tuple, frozenset, range, type(None))


class Entry:
    """One tracked object. Held weakly where its type allows it, else until the session ends."""

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

    def keep_last(self) -> bool:
        """Names the last version of each, for the time after the session. Whether any."""
        for entry in list(self.entries.values()):
            entry.final = self.native.current(entry.datum)
        return bool(self.entries)
