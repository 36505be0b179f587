"""What a task does with an argument: annotations for parameters.

    def step(state: al.InOut, grid: al.In, path: al.FileOut) -> None: ...
    def step(state: al.InOut[np.ndarray], path: Annotated[Path, al.FileOut]) -> None: ...

A type checker sees the plain type (`FileOut` is `str`). A parameter without one is `In`.
"""

from __future__ import annotations

import typing
from typing import Annotated, Any, NamedTuple, TypeVar

T = TypeVar("T")

IN, OUT, INOUT, CONCURRENT, COMMUTATIVE = range(5)


class Direction(NamedTuple):
    """One direction: its name, its number for the runtime, and what its arguments name.

    `file`: the path of a file, `directory`: of a directory; both: of either.
    """

    name: str
    number: int
    file: bool = False
    directory: bool = False

    @property
    def path(self) -> bool:
        """Whether its arguments are paths."""
        return self.file or self.directory


In = Annotated[T, Direction("In", IN)]
"""The task reads it (what a parameter without a direction does)."""

Out = Annotated[T, Direction("Out", OUT)]
"""The task fills it without looking at what was there. The object must be changed in place."""

InOut = Annotated[T, Direction("InOut", INOUT)]
"""The task reads it and changes it in place; `al.wait(obj)` gives the new value."""

Concurrent = Annotated[T, Direction("Concurrent", CONCURRENT)]
"""Neighbouring tasks change it in place at the same time, in shared memory (NumPy arrays).

Each has to keep to its own part, or the result depends on chance.
"""

Commutative = Annotated[T, Direction("Commutative", COMMUTATIVE)]
"""Neighbouring tasks read and change it one at a time, in any order."""

FileIn = Annotated[str, Direction("FileIn", IN, file=True)]
"""The name of a file that the task reads. It must exist, or a task must write it."""

FileOut = Annotated[str, Direction("FileOut", OUT, file=True)]
"""The name of a file that the task writes whole. The task gets the real place."""

FileInOut = Annotated[str, Direction("FileInOut", INOUT, file=True)]
"""The name of a file that the task reads and changes."""

DirIn = Annotated[str, Direction("DirIn", IN, directory=True)]
"""The name of a directory that the task reads. It must exist, or a task must make it."""

DirOut = Annotated[str, Direction("DirOut", OUT, directory=True)]
"""The name of a directory that the task makes: it finds it empty, and leaves all of it."""

DirInOut = Annotated[str, Direction("DirInOut", INOUT, directory=True)]
"""The name of a directory that the task reads and changes."""

PathIn = Annotated[str, Direction("PathIn", IN, file=True, directory=True)]
"""Either (`persist`)."""

NAMES = (
    *("In", "Out", "InOut", "Concurrent", "Commutative"),
    *("FileIn", "FileOut", "FileInOut", "DirIn", "DirOut", "DirInOut"),
)


def found_in(annotation: Any) -> list[Direction]:
    """The directions that an annotation names: in `Annotated`, nested, or in a union."""
    found: list[Direction] = []
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, Direction):
            found.append(item)
        else:
            found.extend(found_in(item))
    if hasattr(annotation, "__metadata__"):
        found.extend(found_in(annotation.__origin__))
    elif not isinstance(annotation, type):
        for part in typing.get_args(annotation):
            if hasattr(part, "__metadata__"):
                found.extend(found_in(part))
    return found
