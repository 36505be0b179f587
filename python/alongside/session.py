"""`Session`: where calls of tasks go, and the processes that run them."""

from __future__ import annotations

import atexit
import collections
import concurrent.futures
import itertools
import os
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

from alongside import _context, _native, away, errors, serial, tracking
from alongside.future import Future
from alongside.options import Options, checked
from alongside.task import Task, unbound

T = TypeVar("T")

POLICIES = ("fcfs", "priority", "backfilling")
SUBMITTED_FUNCTIONS_MAX = 256

_BOOT = (
    "import signal, sys; signal.signal(signal.SIGINT, lambda *_: None); "
    "sys.path[:] = sys.argv[1:]; from alongside._worker import main; main()"
)

Statistics = _native.Statistics


class Session(concurrent.futures.Executor):
    """Worker processes, and the calls that go to them. Use it as a context manager:

        with al.Session() as session:
            total = al.wait(add(square(2), square(3)))

    Inside the block calls of tasks go to it. Leaving the block waits for every task, and then
    raises the error of the first failed one whose future nobody looked at; leaving it by an
    exception cancels what has not begun and ends the workers. It is also a
    `concurrent.futures.Executor`.

    `workers`: compute processes, one task each (default: the processors of this process).
    `io_executors`: how many I/O tasks run at once, besides the built-in ones (default: 4 for each
    processor, at least 8, and up to 256 of those whose number their layer's bandwidth limits: with
    a `bandwidth` of their own, or `"adaptive"`).
    `storage`: a TOML file that describes the storage layers (default: the working directory).
    `io_policy`: in which order ready I/O tasks get bandwidth: `"fcfs"`, `"priority"` or
        `"backfilling"`.
    `flush`: move files that no task will use any more to the layer of their own path while no I/O
        goes on.
    `prefetch`: copy files that tasks are about to read to a faster layer while no I/O goes on.
    `trace`: a file to write the timeline to at the end, for Perfetto; True only records it.
    `memory`: bytes that values may take together, a number or `"4GB"` (default: 60 % of memory).
    `learned`: a JSON file of what `bandwidth="auto"` has learned: read at the start where it is
    there, written at the end, so that the next session learns nothing again.

    Raises `StorageError` (with file and line), `ConstraintError` for an argument that makes no
    sense, and `SessionError` when the processes cannot be started.
    """

    def __init__(
        self,
        workers: int | None = None,
        io_executors: int | None = None,
        storage: str | os.PathLike[str] | None = None,
        io_policy: str | None = None,
        trace: str | os.PathLike[str] | bool | None = None,
        *,
        flush: bool = False,
        prefetch: bool = False,
        memory: int | str | None = None,
        learned: str | os.PathLike[str] | None = None,
    ) -> None:
        given: dict[str, Any] = {
            "workers": workers,
            "io_executors": io_executors,
            "storage": storage,
            "io_policy": io_policy,
            "flush": flush,
            "prefetch": prefetch,
            "trace": trace,
            "memory": memory,
            "learned": learned,
        }
        given.update(_context.session_options)
        arguments = arguments_of(given)
        self.trace: str | None = arguments.pop("trace")
        self.learned: str | None = arguments.pop("learned")
        registries = _native.read_learned(self.learned) if self.learned else []
        self.native = _native.Session(command=_command(), future_type=Future, **arguments)
        self.native.load_learned(registries)
        self.number = self.native.number
        self.objects = tracking.Objects(self.native)
        self.closed = False
        self._shut = False
        self.pid = os.getpid()
        self._lock = threading.RLock()
        self._closing = threading.Lock()
        self._numbers: weakref.WeakKeyDictionary[Task[Any], int] = weakref.WeakKeyDictionary()
        self._submitted: collections.OrderedDict[Any, Task[Any]] = collections.OrderedDict()
        self._tags = itertools.count(1)
        self._callbacks: dict[int, Callable[[], None]] = {}
        self._notifier: threading.Thread | None = None
        _context.live[self.number] = self
        self._warn(4)
        if _context.opened is not None:
            _context.opened(self)

    # The block.

    def __enter__(self) -> Self:
        self._alive()
        _context.entered.append(self)
        _context.current = self
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is not None:
                self._close_after(error, cancel=True)
                return
            self._drain()
            failure = self.native.first_failure()
            if failure is not None:
                failed = errors.of(failure)
                self._close_after(failed, cancel=False)
                raise failed
            self.close()
        finally:
            _leave(self)
            self.close(cancel=True)

    def _close_after(self, error: BaseException, cancel: bool) -> None:
        """Ends the session. What goes wrong there is noted with the error that came before."""
        try:
            self.close(cancel)
        except Exception as another:
            error.add_note(f"{_IN_CLOSING}{another}")

    def _drain(self, timeout: float | None = None) -> bool:
        """Waits until all tasks are over. Whether they are; raises if the session broke down."""
        self.native.close_streams()
        try:
            return self.native.drain(timeout)
        except BaseException as error:
            if self.closed and isinstance(error, errors.SessionError):
                return True  # another thread closed it meanwhile
            self.close(cancel=True)
            raise

    def close(self, cancel: bool = False) -> None:
        """End the session and its processes: after all its tasks, or at once with `cancel`.

        Nothing is raised for failed tasks. Futures that are done stay readable.
        """
        if os.getpid() != self.pid:
            return  # a forked child leaves it alone
        if cancel:
            self._end(cancel=True)
        else:
            with self._closing:
                if not self.closed:
                    self._drain()
                    self._end(cancel=False)

    def _end(self, cancel: bool) -> None:
        with self._lock:
            if self.closed:
                return
            self.closed = True
        if not cancel:
            self.objects.keep_last()
        self.objects.end()
        left = self.native.stop(cancel, away.progress())
        _context.live.pop(self.number, None)
        self._warn(5)
        self._keep_learned()
        if _context.closed is not None:
            _context.closed(self)
        found = errors.StorageError(away.message(left)) if left else None
        if self.trace:
            try:
                self.native.export_trace(self.trace)
            except OSError as error:
                if found is None:
                    raise
                found.add_note(f"{_IN_CLOSING}{error}")
        if found is not None:
            raise found

    def _warn(self, level: int) -> None:
        for text in self.native.take_warnings():
            warnings.warn(text, RuntimeWarning, stacklevel=level)

    def _keep_learned(self) -> None:
        """The program's own results and errors matter more than what was learned."""
        if self.learned:
            try:
                _native.write_learned(self.learned, self.native.learned())
            except errors.StorageError as error:
                warnings.warn(str(error), RuntimeWarning, stacklevel=2)

    def _alive(self) -> None:
        if self.closed or self._shut:
            raise errors.SessionError(
                "the session is closed: its block was left, or shutdown() was called; "
                "make a new one with alongside.Session()"
            )
        broken = self.native.broken()
        if broken:
            raise errors.SessionError(f"the session broke down: {broken}")

    # Calls.

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        """Call a function as a compute task; a decorated one with its own options."""
        from alongside import calls

        self._alive()
        fn, args, kwargs = unbound(fn, args, kwargs)
        task = self._as_task(fn)
        future: Future[T] = calls.spawn(self, task, self.number_of(task), args, kwargs)
        return future

    def map(
        self,
        fn: Callable[..., T],
        *iterables: Iterable[Any],
        timeout: float | None = None,
        chunksize: int = 1,
    ) -> Iterator[T]:
        """As the built-in `map`, every call (or `chunksize` of them together) a task.

        Calls are submitted at once; the results come in order. `timeout` is for all, in seconds.
        """
        if chunksize < 1:
            raise ValueError(f"map(): chunksize={chunksize} has to be at least 1")
        end = None if timeout is None else time.monotonic() + timeout
        if chunksize == 1:
            futures = [self.submit(fn, *args) for args in zip(*iterables, strict=False)]
            return _results(futures, end)
        calls = zip(*iterables, strict=False)
        chunks = iter(lambda: list(itertools.islice(calls, chunksize)), [])
        inner = fn.function if isinstance(fn, Task) else fn
        many: list[Future[Iterable[T]]] = [self.submit(_apply, inner, chunk) for chunk in chunks]
        return itertools.chain.from_iterable(_results(many, end))

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls, and end the processes after the last task.

        With `wait=False` it returns at once, and they end later. With `cancel_futures` tasks that
        have not begun are cancelled. Streams end as if they were cancelled.
        """
        self._shut = True
        if cancel_futures and not self.closed:
            self.native.cancel_all()
        if wait:
            self.close()
        elif not self.closed:
            threading.Thread(target=self.close, name="alongside-shutdown").start()

    def put(self, value: T) -> Future[T]:
        """Store a value once, to pass it to many tasks. Gives a future that is done."""
        return self.stored(value, serial.pack)

    def stored(self, value: T, pack: Callable[[Any], serial.Packed]) -> Future[T]:
        """As `put`, pickled in the given way."""
        self._alive()
        try:
            data, buffers = pack(value)
        except Exception as error:
            raise errors.SerializationError(
                f"put(): a {type(value).__name__} cannot be sent to a worker: {error}"
            ) from error
        future: Future[T] = self.native.put(data, buffers)
        return future

    def forget(self, obj: object) -> bool:
        """Stop tracking an object that tasks changed. Whether it was tracked."""
        was_left = tracking.forget_last(obj)
        return self.objects.forget(obj) or was_left

    def statistics(self) -> Statistics:
        """What was done until now: tasks, times in nanoseconds, bytes, by function."""
        return self.native.statistics()

    # For the rest of the package.

    def number_of(self, task: Task[Any]) -> int:
        """The number that the runtime knows a function by, told to it at the first time."""
        with self._lock:
            number = self._numbers.get(task)
            if number is None:
                self._alive()
                number = self._numbers[task] = self._tell(task)
                weakref.finalize(task, _forget, weakref.ref(self), number).atexit = False
            return number

    def _tell(self, task: Task[Any]) -> int:
        try:
            by_name = task.is_found_by_name()
            body = task if by_name else task.function
            told = (body, by_name, task.name, task.asynchronous, task.generates)
            data, buffers = serial.pack_by_value(told)
        except Exception as error:
            raise errors.SerializationError(
                f"{task.name}() cannot be sent to a worker: {error}. It may use a global or outer "
                "variable that cannot; make that inside the function"
            ) from error
        options = task.options
        return self.native.function(
            task.name,
            data,
            buffers,
            io=options.kind == "io",
            cpus=options.cpus,
            priority=options.priority,
            retries=options.retries,
            timeout=options.timeout,
            on_failure=options.on_failure,
            bandwidth=options.bandwidth,
            tuning=options.tuning,
            size=options.size,
            durable=options.durable,
            asynchronous=task.asynchronous,
            returns=options.returns,
            buffer=options.buffer,
        )

    def _as_task(self, fn: Callable[..., Any]) -> Task[Any]:
        if isinstance(fn, Task):
            return fn
        if getattr(fn, "__func__", None).__class__ is Task:
            raise TypeError("submit(): pass the task of the class, and the object as an argument")
        if getattr(type(fn), "__hash__", None) is None:
            return Task(fn, _DEFAULTS)
        with self._lock:
            task = self._submitted.get(fn)
            if task is None:
                task = self._submitted[fn] = Task(fn, _DEFAULTS)
                if len(self._submitted) > SUBMITTED_FUNCTIONS_MAX:
                    self._submitted.popitem(last=False)
            else:
                self._submitted.move_to_end(fn)
        return task

    def own(self, future: Future[Any]) -> None:
        """Refuse a future of another session."""
        if future.session != self.number:
            raise errors.SessionError(
                f"{future!r} belongs to another session; take its result() and pass that"
            )

    def notify(self, future: Future[Any], callback: Callable[[], None]) -> None:
        """Call `callback()` in this session's thread once a future is done."""
        with self._lock:
            tag = next(self._tags)
            self._callbacks[tag] = callback
            if self._notifier is None:
                self._notifier = threading.Thread(
                    target=_notifications,
                    args=(self.native, self._callbacks),
                    name="alongside-callbacks",
                    daemon=True,
                )
                self._notifier.start()
        self.native.notify(future, tag)


_DEFAULTS = Options("compute")

_IN_CLOSING = "and while the session ended: "
"""Begins the note of an error that another one hides."""


def _leave(session: Session) -> None:
    """A block was left: calls go to the session of the last one that is still open.

    Blocks of several threads, or coroutines, are not left in the opposite order of their begin.
    """
    entered = _context.entered
    for at in reversed(range(len(entered))):
        if entered[at] is session:
            del entered[at]
            break
    _context.current = entered[-1] if entered else None


def _forget(session: weakref.ref[Session], number: int) -> None:
    """A function that nobody can call any more."""
    found = session()
    if found is not None and not found.closed:
        found.native.forget_function(number)


def _notifications(native: _native.Session, callbacks: dict[int, Callable[[], None]]) -> None:
    while (tag := native.next_notification()) is not None:
        callback = callbacks.pop(tag, None)
        if callback is not None:
            callback()
            del callback


def _apply(function: Callable[..., T], calls: list[tuple[Any, ...]]) -> list[T]:
    return [function(*args) for args in calls]


def _results(futures: list[Future[T]], end: float | None) -> Iterator[T]:
    futures.reverse()
    try:
        while futures:
            left = None if end is None else max(0.0, end - time.monotonic())
            yield futures.pop().result(left)
    finally:
        for future in futures:
            future.cancel()


def _command() -> list[str]:
    # As multiprocessing does: -W, -X, -O and the like hold in the workers, too.
    flags_of = vars(subprocess)["_args_from_interpreter_flags"]
    flags: list[str] = flags_of()
    path = [os.getcwd() if entry == "" else entry for entry in sys.path]
    return [sys.executable, *flags, "-c", _BOOT, *path]


def arguments_of(given: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the native session takes them, or a `ConstraintError`."""
    ranged = {"workers": _native.WORKERS_MAX, "io_executors": _native.IO_EXECUTORS_MAX}
    for name, most in ranged.items():
        value = given[name]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
            raise errors.ConstraintError(f"Session({name}={value!r}): has to be a whole number")
        if value is not None and not 1 <= value <= most:
            raise errors.ConstraintError(
                f"Session({name}={value}): has to be from 1 to {most} (leave it out for the "
                "default)"
            )
    policy = given["io_policy"] or "fcfs"
    if policy not in POLICIES:
        known = ", ".join(map(repr, POLICIES))
        raise errors.ConstraintError(f"Session(io_policy={policy!r}): has to be one of {known}")
    memory = given["memory"]
    if memory is not None:
        try:
            memory = checked("io", Session, {"size": memory}).size
        except errors.ConstraintError as error:
            raise errors.ConstraintError(str(error).replace("size=", "memory=")) from None
    trace = given["trace"]
    return {
        "workers": given["workers"],
        "io_executors": given["io_executors"],
        "storage": None if given["storage"] is None else os.fspath(given["storage"]),
        "io_policy": policy,
        "flush": bool(given["flush"]),
        "prefetch": bool(given["prefetch"]),
        "record": bool(trace) or _context.record,
        "trace": None if trace is None or isinstance(trace, bool) else os.path.abspath(trace),
        "memory": memory,
        "learned": None if given["learned"] is None else os.path.abspath(given["learned"]),
    }


def _at_exit() -> None:
    """As other executors: the end of the program waits for what was submitted."""
    for session in list(_context.live.values()):
        session.close(cancel=_context.in_worker)


atexit.register(_at_exit)
