"""The way of one call from its arguments to a submitted task, when it is not the plain one.

Directed parameters, keyword arguments, tracked objects and values that need pickling by value
come through here; `Task.__call__` has the short way for everything else.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

from alongside import _context, _native, serial, tracking, units
from alongside.directions import IN, INOUT, OUT
from alongside.errors import (
    ConstraintError,
    DirectionError,
    Error,
    SerializationError,
    SessionError,
)
from alongside.future import Future
from alongside.signature import Parameter, Table
from alongside.tracking import UNCHANGEABLE, Entry

if TYPE_CHECKING:
    from alongside.session import Session
    from alongside.task import Task

Files = list[tuple[int, int]]
Builtin = tuple[str, int, int | None]


def spawn(
    session: Session,
    task: Task[Any],
    number: int,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    builtin: Builtin | None = None,
) -> Any:
    """Submit a call. Gives its future, or the tuple of its futures.

    With `builtin` the engine does it by itself, if it can.
    """
    table = task.table
    table.check(args, kwargs)
    files: Files = []
    _native.slots_open()
    try:
        call: tuple[Any, Any] = (args, kwargs)
        if table.directed:
            call = _directed(session, task, args, kwargs, files)
            if builtin is not None and _is_inside(call) and builtin[0] != "persist":
                builtin = None  # the engine takes whole files
        data, buffers = _packed(session, task, call)
        made = session.native.spawn(number, data, buffers, files, builtin)
        if task.options.buffer is None:
            return made
        from alongside.stream import Stream

        first, native = made
        return Stream(first, native, task.options.buffer)
    except _native.Refused as error:
        raise refusal(error, task, args, kwargs) from None
    finally:
        _native.slots_close()


def mapped(
    stream: _native.Stream,
    following: Future[Any],
    task: Task[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    ahead: int,
) -> bool:
    """Have the scheduler call `task(value, *args, **kwargs)` for each value of a stream.

    `following` is the future of the next one. False, and nothing was done: the program has to,
    because there is more to do for each call than to name the value.
    """
    session = _context.current or _context.session()
    if session is None or task.table.directed or task.options.buffer is not None:
        return False
    args = (following, *args)
    task.table.check(args, kwargs)
    _native.slots_open()
    try:
        packed = _packed(session, task, (args, kwargs))
        return session.native.map(stream, following, task.number_in(session), packed, ahead)
    finally:
        _native.slots_close()


def _is_inside(call: tuple[Any, Any]) -> bool:
    return any(isinstance(one, serial.Place) and one.inside for one in call[0])


def _packed(session: Session, task: Task[Any], call: tuple[Any, Any]) -> serial.Packed:
    try:
        if not tracking.is_used():
            return serial.pack(call)
        return serial.pack_tracked(call, lambda obj: _tracked_input(session, obj))
    except Error:
        raise
    except Exception as error:
        args, kwargs = call
        named = [*zip(task.table.argument_names(args), args, strict=False), *kwargs.items()]
        found = serial.culprit(named)
        if found is None:
            text = f"{task.name}(): its arguments cannot be sent: {error}"
            raise SerializationError(text) from error
        name, value, reason = found
        raise SerializationError(
            f"{task.name}(): argument {name!r} (a {type(value).__name__}) cannot be sent to a "
            f"worker: {reason}. Pass the data that it is made from, and make it inside the task"
        ) from reason


def _tracked_input(session: Session, obj: Any) -> int | None:
    entry = _entry(session, obj)
    return None if entry is None else _native.slots_note_object(entry.datum, IN)


def _entry(session: Session, obj: Any) -> Entry | None:
    """What a session knows of an object. It begins with what the last one that ended left of it.

    Raises SessionError for an object that another session tracks, and what the tasks failed of
    that were to change it in one that ended.
    """
    entry = session.objects.find(obj)
    if entry is not None or isinstance(obj, Future):
        return entry
    for other in list(_context.live.values()):
        if other is not session and other.objects.find(obj) is not None:
            raise SessionError(
                f"a {type(obj).__name__} was changed by tasks of another session, which goes on; "
                "pass what alongside.wait() gives for it"
            )
    left = tracking.last_of(obj)
    if left is None:
        return None
    final: Any = left.final
    return session.objects.track(obj, session.stored(final.result(), serial.pack_writable))


def _directed(
    session: Session,
    task: Task[Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    files: Files,
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments with placeholders for those that have a direction."""
    positional, named = task.table.complete(args, kwargs)

    def replaced(parameter: Parameter, value: Any) -> Any:
        if parameter.path:
            return _paths(session, task, parameter, value, files)
        return _object(session, task, parameter, value)

    for parameter in task.table.directed:
        if parameter.variadic:
            for index in range(parameter.position, len(positional)):
                positional[index] = replaced(parameter, positional[index])
        elif 0 <= parameter.position < len(positional):
            positional[parameter.position] = replaced(parameter, positional[parameter.position])
        elif parameter.name in named:
            named[parameter.name] = replaced(parameter, named[parameter.name])
    return positional, named


def _paths(
    session: Session, task: Task[Any], parameter: Parameter, value: Any, files: Files
) -> Any:
    direction = parameter.direction
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return type(value)([_paths(session, task, parameter, one, files) for one in value])
    if not isinstance(value, (str, os.PathLike)):
        what = "a future; take its result first" if isinstance(value, Future) else repr(value)
        raise DirectionError(
            f"{task.name}(): parameter {parameter.name!r} is {direction.name} and has to "
            f"be the name of a {'directory' if direction.directory else 'file'}, not {what}"
        )
    path = os.fspath(value)
    only = None if direction.file and direction.directory else direction.directory
    try:
        datum, known, _, inside, anew = session.native.file(path, direction.number != IN, only)
    except (OSError, DirectionError) as error:
        raise _named(task, parameter, error) from None
    if direction.number != OUT and not known:
        one, other = ("directory", "DirOut") if direction.directory else ("file", "FileOut")
        text = (
            f"the {one} does not exist and no task before this one writes it (a task that writes "
            f"it needs the direction {other})"
        )
        raise _named(task, parameter, FileNotFoundError(errno.ENOENT, text, path))
    if direction.number == OUT and direction.directory and not anew:
        text = (
            "the directory has something in it that no task of this session made, and would be "
            "replaced; delete it first, or use DirInOut"
        )
        raise _named(task, parameter, FileExistsError(errno.EEXIST, text, path))
    files.append((datum, direction.number))
    as_path = not isinstance(value, str)
    directory = direction.directory and not direction.file
    return serial.Place(len(files) - 1, as_path, direction.number, directory, inside)


def _named(task: Task[Any], parameter: Parameter, error: Exception) -> Exception:
    """The same error, which says whose argument it is about."""
    about = f"{task.name}(): parameter {parameter.name!r} is {parameter.direction.name}, but "
    if isinstance(error, OSError):
        return type(error)(error.errno, f"{about}{error.strerror}", error.filename)
    return type(error)(f"{about}{error}")


def _object(session: Session, task: Task[Any], parameter: Parameter, value: Any) -> Any:
    direction = parameter.direction.number
    if direction == IN:
        return value  # tracked ones are found while pickling
    if isinstance(value, UNCHANGEABLE):
        raise DirectionError(
            f"{task.name}(): parameter {parameter.name!r} is {parameter.direction.name}, but a "
            f"{type(value).__name__} cannot be changed in place; return the new value instead"
        )
    if isinstance(value, Future):
        session.own(value)
        entry = session.objects.find(value) or session.objects.track(value, value)
        direction = INOUT if direction == OUT else direction  # its shape is not known yet
        return serial.Slot(_native.slots_note_object(entry.datum, direction))
    found = _entry(session, value)
    if found is None:
        first = None if direction == OUT else _alone(session, task, parameter, value)
        initial = session.stored(first, serial.pack_writable)
        found = session.objects.track(value, initial)
    index = _native.slots_note_object(found.datum, direction)
    return serial.Template(index, value) if direction == OUT else serial.Slot(index)


def _alone(session: Session, task: Task[Any], parameter: Parameter, value: Any) -> Any:
    """The value, if it stands alone: its first version cannot wait for other tasks."""
    before = _native.slots_count()
    try:
        serial.pack(value)
    except Exception:
        return value  # `put` says what is wrong
    if _native.slots_count() != before:
        _native.slots_truncate(before)
        raise DirectionError(
            f"{task.name}(): parameter {parameter.name!r} is {parameter.direction.name}, and what "
            "was given contains futures: a cycle would be possible; use al.wait on it first"
        )
    return value


def refusal(
    error: _native.Refused, task: Task[Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Exception:
    """What the scheduler refused, in the words of the program."""
    kind, *details = error.args
    name = task.name
    if kind == "processors":
        asked, most = details
        return ConstraintError(
            f"{name}(): cpus={asked}, but this session has {most} (workers=); "
            f"ask for at most {most}"
        )
    if kind == "layer":
        bandwidth, size, nearest = details
        asked_for = [f"bandwidth={units.rate(bandwidth)}"] if bandwidth else []
        asked_for += [f"size={units.size(size)}"] if size else []
        return ConstraintError(
            f"{name}(): no storage layer can ever give {' and '.join(asked_for)}: {nearest}"
        )
    if kind == "conflict":
        return DirectionError(
            f"{name}(): the same object or file is given twice and the task writes it, a cycle "
            f"through {_written(task.table)}; give it once, or give a copy"
        )
    if kind == "direction":
        return DirectionError(f"{name}(): a future cannot be written through; see alongside.InOut")
    if kind in ("other_session", "stale"):
        return SessionError(
            f"{name}(): an argument contains a future of another session, or of one that is "
            "closed; take its result() and pass that"
        )
    return SessionError(f"{name}(): {details[0] if details else kind}")


def _written(table: Table) -> str:
    names = [f"{one.name!r} ({one.direction.name})" for one in table.directed]
    return ", ".join(names) or "its arguments"


def written_paths(
    table: Table, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[tuple[Parameter, str]]:
    """The files and directories that a call writes, by its own names for them."""
    positional, named = table.complete(args, kwargs)
    paths: list[tuple[Parameter, str]] = []
    for parameter in table.directed:
        if not parameter.path or parameter.direction.number == IN:
            continue
        given: list[Any] = []
        if parameter.variadic:
            given = positional[parameter.position :]
        elif 0 <= parameter.position < len(positional):
            given = [positional[parameter.position]]
        elif parameter.name in named:
            given = [named[parameter.name]]
        for value in given:
            many = value if isinstance(value, (list, tuple)) else [value]
            paths.extend((parameter, os.fspath(one)) for one in many if one is not None)
    return paths
