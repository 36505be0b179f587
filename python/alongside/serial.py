"""How values become bytes: pickle protocol 5, with large buffers out of band.

A call is one pickle of `(args, kwargs)`. What cannot be in it stands there as a placeholder:
`slot(i)` for the i-th input (a future's value, a tracked object), `place(i)` for the i-th file,
`template(i, obj)` for an object that the task fills. Futures put themselves into the list of
inputs while they are pickled (`_native.Handle.__reduce_ex__`), so nesting costs no search.

Whatever belongs to `__main__`, and whatever the plain pickler refuses, is pickled by value.
"""

from __future__ import annotations

import functools
import io
import pickle
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from alongside import _native

if TYPE_CHECKING:
    from pathlib import Path

PROTOCOL = 5

Packed = tuple[bytes, list[pickle.PickleBuffer]]


class Arriving(threading.local):
    """What the placeholders of the call that this thread is reading stand for."""

    inputs: Callable[[int], Any]
    places: list[str]
    paths: list[tuple[Place, str]]
    templates: dict[int, Any]


arriving = Arriving()


def slot(index: int) -> Any:
    """The value of an input."""
    return arriving.inputs(index)


def place(index: int, as_path: bool, number: int, directory: bool, inside: str) -> str | Path:
    """Where a file or directory of the task really is."""
    text = arriving.places[index]
    if inside:
        text = f"{text}/{inside}"
    arriving.paths.append((Place(index, as_path, number, directory, inside), text))
    if not as_path:
        return text
    from pathlib import Path

    return Path(text)


def template(index: int, data: bytes, lengths: list[int]) -> Any:
    """An object that the task fills: its new value is what is in it afterwards."""
    value = pickle.loads(data, buffers=[bytearray(length) for length in lengths])
    arriving.templates[index] = value
    return value


class Slot:
    """Stands for an input in the arguments of a call."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index

    def __reduce__(self) -> tuple[Any, ...]:
        return (slot, (self.index,))


class Place:
    """Stands for a path in the arguments of a call: the path `inside` of one of its files.

    `number` is that of its direction.
    """

    __slots__ = ("as_path", "directory", "index", "inside", "number")

    def __init__(
        self, index: int, as_path: bool, number: int, directory: bool, inside: str
    ) -> None:
        self.index = index
        self.as_path = as_path
        self.number = number
        self.directory = directory
        self.inside = inside

    def __reduce__(self) -> tuple[Any, ...]:
        return (place, (self.index, self.as_path, self.number, self.directory, self.inside))


class Template:
    """Stands for an object with the direction `Out` in the arguments of a call.

    What its buffers hold is not sent: nobody looks at it.
    """

    __slots__ = ("index", "value")

    def __init__(self, index: int, value: Any) -> None:
        self.index = index
        self.value = value

    def __reduce__(self) -> tuple[Any, ...]:
        data, buffers = pack_writable(self.value)
        return (template, (self.index, data, [buffer.raw().nbytes for buffer in buffers]))


def pack(value: Any) -> Packed:
    """A value as bytes and buffers. Raises what the picklers raise."""
    buffers: list[pickle.PickleBuffer] = []
    marks = _native.slots_count()
    try:
        data = pickle.dumps(value, PROTOCOL, buffer_callback=buffers.append)
        if b"__main__" not in data:
            return data, buffers
    except Exception:  # by value, then
        pass
    _native.slots_truncate(marks)
    return pack_by_value(value)


def pack_writable(value: Any) -> Packed:
    """As `pack`, for an object that tasks change: read-only buffers arrive as writable ones."""
    data, buffers = pack(value)
    if not any(buffer.raw().readonly for buffer in buffers):
        return data, buffers
    import pickletools

    kept = bytearray()
    last = 0
    for opcode, _, at in pickletools.genops(data):
        cut = {"READONLY_BUFFER": 1, "FRAME": 9}.get(opcode.name, 0)  # frames are optional
        if cut and at is not None:
            kept += data[last:at]
            last = at + cut
    return bytes(kept + data[last:]), buffers


def pack_by_value(value: Any) -> Packed:
    """The same, with functions and classes of `__main__` (and nameless ones) sent whole."""
    import cloudpickle  # type: ignore[import-untyped]

    buffers: list[pickle.PickleBuffer] = []
    data: bytes = cloudpickle.dumps(value, PROTOCOL, buffer_callback=buffers.append)
    return data, buffers


def pack_result(value: Any) -> Packed:
    """As `pack`, in a worker: there, nothing has its home in `__main__`."""
    buffers: list[pickle.PickleBuffer] = []
    try:
        return pickle.dumps(value, PROTOCOL, buffer_callback=buffers.append), buffers
    except Exception:
        return pack_by_value(value)


class _Tracked:
    """A call some of whose objects are tracked: an inner pickle that names them by number."""

    def __init__(self, data: bytes, buffers: list[pickle.PickleBuffer]) -> None:
        self.data = data
        self.buffers = buffers

    def __reduce__(self) -> tuple[Any, ...]:
        return (_tracked, (self.data, self.buffers))


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, index: Any) -> Any:
        return slot(index)


def _tracked(data: bytes, buffers: list[Any]) -> Any:
    return _Unpickler(io.BytesIO(data), buffers=buffers).load()


@functools.cache
def _tracking(by_value: bool) -> type[Any]:
    """A pickler that asks of every object whether it is tracked."""
    import cloudpickle

    class Tracking(cloudpickle.Pickler if by_value else pickle.Pickler):  # type: ignore[misc]
        def __init__(self, number_of: Callable[[Any], int | None], *args: Any, **kw: Any) -> None:
            super().__init__(*args, **kw)
            self.number_of = number_of

        def persistent_id(self, obj: Any) -> int | None:
            return self.number_of(obj)

    return Tracking


def pack_tracked(value: Any, number_of: Callable[[Any], int | None]) -> Packed:
    """As `pack`; `number_of(obj)` is the input that an object found anywhere stands for."""
    marks = _native.slots_count()
    for by_value in (False, True):
        file = io.BytesIO()
        buffers: list[pickle.PickleBuffer] = []
        pickler = _tracking(by_value)(number_of, file, PROTOCOL, buffer_callback=buffers.append)
        try:
            pickler.dump(value)
        except Exception:
            if by_value:
                raise
        else:
            if by_value or b"__main__" not in file.getvalue():
                return pack(_Tracked(file.getvalue(), buffers))
        _native.slots_truncate(marks)
    raise AssertionError("unreachable: the last pickler returns or raises")


def culprit(named: list[tuple[str, Any]]) -> tuple[str, Any, Exception] | None:
    """The first of these arguments that cannot be pickled, with the reason."""
    for name, value in named:
        try:
            pack_by_value(value)
        except Exception as error:
            return name, value, error
    return None
