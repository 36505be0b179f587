"""A worker process: takes runs of task bodies, and tells how they ended.

A compute worker runs one task at a time in its main thread. The I/O worker has a thread for
each task that runs, made when it is needed, and an event loop for `async def` bodies. It ends
when the session says so, or is gone.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import pickle
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from alongside import _context, _native, counting, files, releasing, serial
from alongside.counting import Moved
from alongside.directions import IN, OUT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from alongside.hdf5 import later

Job = _native.Assignment

_loads = pickle.loads
_dumps = pickle.dumps


def main() -> None:
    """Run until the session ends."""
    _context.in_worker = True
    signal.signal(signal.SIGINT, lambda *_: None)  # a Ctrl-C is for the driver, which ends us
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError, OSError):
            stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    worker = _native.Worker()
    functions = Functions(worker)
    worker.ready()
    if worker.io:
        Pool(worker, functions).work()
    else:
        compute(worker, functions)
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        sys.stderr.flush()


class Function:
    """A function as the session sends it (`Session._tell`)."""

    def __init__(
        self, body: Any, by_name: bool, name: str, asynchronous: bool, generates: bool
    ) -> None:
        self.body: Callable[..., Any] = body.function if by_name else body
        self.name = name
        self.asynchronous = asynchronous
        self.generates = generates


class Functions:
    """The functions that the session sent, read at the first run."""

    def __init__(self, worker: _native.Worker) -> None:
        self.worker = worker
        self.known: dict[int, Function] = {}

    def __getitem__(self, number: int) -> Function:
        function = self.known.get(number)
        if function is None:
            data, buffers = self.worker.function(number)
            try:
                function = Function(*_loads(data, buffers=buffers))
            except Exception as error:
                from alongside.errors import SerializationError

                raise SerializationError(
                    f"the function cannot be read in the worker process: {error!r}. The module "
                    "that it is in has to be importable there"
                ) from error
            self.known[number] = function
        return function

    def forget(self, number: int) -> None:
        """The session will not name it again."""
        self.known.pop(number, None)


def compute(worker: _native.Worker, functions: Functions) -> None:
    """The loop of a compute worker."""
    known = functions.known
    plainly = Plain()
    parked: Parked = {}
    take = worker.next
    while (job := take()) is not None:
        if type(job) is not Job:
            other(job, functions, parked)
            continue
        try:
            number, (data, buffers), plain = job.start()
            if not plain or number not in known:
                del data, buffers
                run(job, functions, parked, alone=True)
                continue
            releasing.alone = plainly
            out = plainly.call(job, known[number], data, buffers)
            del data, buffers
            job.done((out,))
        except BaseException as error:
            report(job, error)
        releasing.alone = plainly.job = None
        del job


class Plain:
    """Runs of bodies that have no inputs and no files, and return one value, one at a time."""

    returns = 1

    def __init__(self) -> None:
        self.job: Job | None = None
        self.function: Function | None = None
        self.released = False

    @property
    def name(self) -> str:
        """Of the function that runs."""
        assert self.function is not None
        return self.function.name

    def call(self, job: Job, function: Function, data: Any, buffers: Any) -> serial.Packed | None:
        """The result of the body; None: it was released. Nothing of it is left behind."""
        self.job, self.function, self.released = job, function, False
        args, kwargs = _loads(data, buffers=buffers) if buffers else _loads(data)
        result = function.body(*args, **kwargs)
        return None if self.released else serial.pack_result(result)

    def give(self, index: int, value: Any) -> bool:
        """Hands the value over, before the end of the body."""
        assert self.job is not None
        is_first = self.job.release(index, _packed(self.name, value, "the released value"))
        self.released = True
        return is_first

    def close(self, path: str) -> None:
        """It has no files."""


def other(order: Any, functions: Functions, parked: Parked, alone: bool = True) -> None:
    """What the session wants done besides runs."""
    if isinstance(order, int):
        functions.forget(order)
        return
    (claim,) = order
    producer = parked.pop(claim, None)
    if producer is not None:
        producer.go_on(alone)


def run(job: Job, functions: Functions, parked: Parked, alone: bool = False) -> None:
    """One run of any body that is not a coroutine; `alone`: nothing else runs meanwhile."""
    if job.made is not None:
        begin_stream(job, functions, parked, alone)
        return
    moved = Moved(job.uses_files)
    try:
        body = Body(job, functions)
        if alone:
            releasing.alone = body
        result = body.call()
        outputs = body.outputs(result)
        del body, result
        job.done(outputs, *moved.bytes())
    except BaseException as error:
        report(job, error, *moved.bytes())
    finally:
        if alone:
            releasing.alone = None


class Body:
    """The arguments of one run, and what it hands over."""

    def __init__(self, job: Job, functions: Functions) -> None:
        number, (data, buffers), _ = job.start()
        self.function = functions[number]
        self.name = self.function.name
        self.job = job
        self.returns = job.returns
        self.values: dict[int, Any] = {}
        self.promise: later.Promise | None = None
        self.limiters: dict[str, _native.Limiter] = {}
        self.moved = counting.Counts()
        arriving = serial.arriving
        arriving.inputs = self.input
        arriving.templates = self.values
        arriving.places = []
        arriving.paths = self.paths = list[tuple[serial.Place, str]]()
        for real, limiter, _ in job.places():
            arriving.places.append(real)
            if limiter is not None:
                self.limiters[real] = limiter
        try:
            self.args, self.kwargs = _loads(data, buffers=buffers)
        finally:
            arriving.__dict__.clear()  # it would keep the inputs after the end of the run
        self.written = [path for place, path in self.paths if place.number != IN]
        self.read = {path: files.stamp(path) for place, path in self.paths if place.number == IN}
        self.closed: dict[str, tuple[int, ...] | None] = {}
        self.made = [path for path in self.written if not os.path.lexists(path)]
        for path in self.made:
            files.make_folders(os.path.dirname(os.path.abspath(path)))
        for place, path in self.paths:
            if place.number == OUT and place.directory:
                files.make_empty(path)

    def input(self, index: int) -> Any:
        """The value of an input, read once."""
        if index not in self.values:
            (data, buffers), shared = self.job.input(index)
            if shared and not buffers:
                from alongside.errors import DirectionError

                raise DirectionError(
                    f"{self.function.name}(): a Concurrent argument has to lie in one buffer, as a "
                    "NumPy array does, to be changed by many at once; use Commutative for others"
                )
            self.values[index] = _loads(data, buffers=buffers)
        return self.values[index]

    def call(self) -> Any:
        """The body, here and now."""
        token, running = files.limiters.set(self.limiters), releasing.current.set(self)
        try:
            with _promise(self.written) as self.promise:
                result = self.function.body(*self.args, **self.kwargs)
                if self.function.generates:
                    each = self.job.release_each
                    self.give_each = functools.partial(each, pickle.dumps, self.returns)
                    releasing.drive(self, result)
                    return None
                return result
        finally:
            files.limiters.reset(token)
            releasing.current.reset(running)

    def give(self, index: int, value: Any) -> bool:
        """Hands an output over before the end of the body. False: it was before."""
        self.job.expect()
        packed = _packed(self.name, value, "released output {}", index)
        return self.job.release(index, packed)

    def close(self, path: str) -> bool | None:
        """Hands a file over before the end. False: it was before. None: it is not one of ours."""
        if path in self.closed:
            return False
        if path not in self.written:
            return None
        place = next(place for place, its in self.paths if its == path)
        self.check_made(place, path)
        if self.promise is not None:
            self.promise.settle()
        if self.job.durable:
            files.make_durable([path])
        self.closed[path] = files.stamp(path)
        self.written.remove(path)
        return self.job.release_file(place.index)

    def coroutine(self) -> Coroutine[Any, Any, Any]:
        """The body, for an event loop."""
        files.limiters.set(self.limiters)
        releasing.current.set(self)
        counting.current.set(self.moved)
        coroutine: Coroutine[Any, Any, Any] = self.function.body(*self.args, **self.kwargs)
        return coroutine

    def outputs(self, result: Any) -> list[serial.Packed | None]:
        """What goes to the session: the returns, then the written inputs. Files are flushed.

        None stands for what it has already, an empty list for all of that.
        """
        self.check_paths()
        if self.job.durable:
            files.make_durable(self.written)
        if result is None and self.job.has_released_all and not self.job.writes:
            return []
        released = set(self.job.released)
        results = releasing.results(self, result, released)
        del result
        name = self.name
        what = "its result" if len(results) == 1 else "its return value {}"
        packed: list[serial.Packed | None] = [
            None if at in released else _packed(name, value, what, at)
            for at, value in enumerate(results)
        ]
        written = [self.input(index) for index in self.job.writes]
        return packed + [_packed(name, value, "its changed argument") for value in written]

    def check_paths(self) -> None:
        """What was to be written is there, and what was to be read, or released, is as it was."""
        for path, before in self.closed.items():
            if files.stamp(path) not in (before, None):
                from alongside.errors import ReleaseError

                raise ReleaseError(
                    f"{self.name}() changed {path} after it had released it: tasks that read it "
                    "may have seen half of it; release a file after the last write"
                )
        for place, path in self.paths:
            if place.number != IN and path not in self.closed:
                self.check_made(place, path)
            elif place.number == IN and files.stamp(path) not in (self.read[path], None):
                from alongside.errors import DirectionError

                kind = "Dir" if place.directory else "File"
                raise DirectionError(
                    f"{self.name}() changed {path}, which it has as {kind}In: other tasks may be "
                    f"reading it; make that parameter {kind}InOut"
                )

    def check_made(self, place: serial.Place, path: str) -> None:
        """What was to be written is there, and of the kind that the task has it as."""
        if not os.path.lexists(path):
            if path in self.made or place.directory:
                what = "making its directory" if place.directory else "writing its file"
                text = f"{self.name}() ended without {what}"
                raise FileNotFoundError(errno.ENOENT, text, path)
        elif os.path.isdir(path) != place.directory:
            from alongside.errors import DirectionError

            made, right = ("file", "File") if place.directory else ("directory", "Dir")
            raise DirectionError(
                f"{self.name}() made {path} a {made}; make that parameter {right}Out"
            )


class Producer(Body):
    """A run of a generator whose value is a stream: goes on until it has to wait, or is over."""

    def __init__(self, job: Job, functions: Functions, parked: Parked) -> None:
        super().__init__(job, functions)
        self.parked = parked
        self.number = 0
        self.skipped = job.made or 0
        self.bytes = (0, 0)
        self.generator = self.function.body(*self.args, **self.kwargs)
        self.args, self.kwargs = (), {}

    def go_on(self, alone: bool) -> None:
        """Runs until the consumers have to catch up; tells how it ended, if it did."""
        tokens = files.limiters.set(self.limiters), releasing.current.set(self)
        releasing.alone = self if alone else None
        moved = Moved(self.job.uses_files)
        try:
            while True:
                if self.advance():
                    self.add(moved)
                    outputs = self.outputs(None)
                    self.values.clear()
                    self.job.done(outputs, *self.bytes)
                    return
                # From `stall` on another thread may have it.
                self.add(moved)
                self.parked[self.job.claim] = self
                if self.job.stall():
                    return
                del self.parked[self.job.claim]
                moved = Moved(self.job.uses_files)
        except BaseException as error:
            self.add(moved)
            report(self.job, error, *self.bytes)
        finally:
            releasing.alone = None
            files.limiters.reset(tokens[0])
            releasing.current.reset(tokens[1])

    def add(self, moved: Moved) -> None:
        """Counts what was read and written since it went on."""
        read, written = moved.bytes()
        self.bytes = (self.bytes[0] + read, self.bytes[1] + written)

    def advance(self) -> bool:
        """Hands over values until it is over (True) or may not go further."""
        waits, closed = self.job.credit()
        while not closed:
            if waits and self.number >= self.skipped:
                return False
            try:
                value = next(self.generator)
            except StopIteration as stop:
                releasing.refuse_value(self, stop)
                self.check_again()
                return True
            if self.number >= self.skipped:
                self.job.expect()
                packed = _packed(self.name, value, "value {} of its stream", self.number)
                waits, closed = self.job.yielded(self.number, packed)
                del packed
            else:
                waits, closed = self.job.credit()
            self.number += 1
            del value
        self.generator.close()
        self.check_whole()
        return True

    def check_whole(self) -> None:
        """A run that was ended early leaves nothing behind that looks finished."""
        if self.written or self.job.writes:
            from alongside.errors import CancelledError

            raise CancelledError(
                f"{self.name}() was ended early, because its stream was cancelled or dropped: what "
                "it writes is not whole"
            )

    def check_again(self) -> None:
        """A run after a failed one has to yield what that one did, and goes on from there."""
        if self.number < self.skipped:
            raise RuntimeError(
                f"{self.name}() was run again and yielded {self.number} values, but {self.skipped} "
                "before it failed; a stream with retries= has to yield the same values each time"
            )

    def close(self, path: str) -> bool | None:
        """Refuses: it yields."""
        from alongside.stream import refuse_release

        del path
        refuse_release(self.name)

    def give(self, index: int, value: Any) -> bool:
        """Refuses: it yields."""
        from alongside.stream import refuse_release

        del index, value
        refuse_release(self.name)


Parked = dict[int, Producer]
"""Producers of streams that wait for their consumers, by the claim of their run."""


def begin_stream(job: Job, functions: Functions, parked: Parked, alone: bool) -> None:
    """Begins a run whose value is a stream."""
    try:
        producer = Producer(job, functions, parked)
    except BaseException as error:
        report(job, error)
        return
    producer.go_on(alone)


def _promise(paths: list[str]) -> contextlib.AbstractContextManager[later.Promise | None]:
    """What waits for the HDF5 files among these, if a program here uses the connector."""
    if not paths or not (os.environ.get("HDF5_VOL_CONNECTOR") or "alongside.hdf5" in sys.modules):
        return contextlib.nullcontext()
    from alongside.hdf5 import later

    return later.Promise(paths) if later.is_used() else contextlib.nullcontext()


def _packed(name: str, value: Any, what: str, number: int = 0) -> serial.Packed:
    """One value as bytes; for the message, what it is, with its number in it."""
    try:
        return serial.pack_result(value)
    except Exception as error:
        from alongside.errors import SerializationError

        what = what.format(number)
        raise SerializationError(
            f"{name}(): {what} (a {type(value).__name__}) cannot be sent back: {error}. Return "
            "the data that it is made from"
        ) from error


def report(job: Job, error: BaseException, bytes_read: int = 0, bytes_written: int = 0) -> None:
    """Tells how a body raised: the exception if it can be sent, and its text in any case."""
    import traceback

    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, trace))
    except Exception:  # an exception whose own text raises
        text = f"{type(error).__name__} (its text cannot be made)"
    error.__traceback__ = trace = None  # its frames would keep the arguments
    try:
        message = str(error)
    except Exception:
        message = "(its text cannot be made)"
    try:
        data, buffers = serial.pack_result(error)
        blob = None if buffers else data
    except Exception:
        blob = None
    told = (blob, type(error).__name__, message, text)
    moved = (bytes_read, bytes_written, files.layer_errno(error, job))
    try:
        job.raised(_dumps(told, serial.PROTOCOL), [], *moved)
    except MemoryError:
        short = (None, told[1], message[:1000], text[-4000:])
        job.raised(_dumps(short, serial.PROTOCOL), [], *moved)


class Pool:
    """The threads of the I/O worker. One always waits for the next run, a few at most."""

    IDLE_MAX = 8

    def __init__(self, worker: _native.Worker, functions: Functions) -> None:
        self.worker = worker
        self.functions = functions
        self.lock = threading.Lock()
        self.threads = 1
        self.waiting = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.pending: set[asyncio.Task[None]] = set()
        self.parked: Parked = {}

    def work(self) -> None:
        """The loop of one thread."""
        while True:
            with self.lock:
                if self.waiting >= self.IDLE_MAX:
                    self.threads -= 1
                    return
                self.waiting += 1
            job = self.worker.next()
            with self.lock:
                self.waiting -= 1
                more = job is not None and not self.waiting and self.threads < self.worker.slots
                self.threads += more
            if more:
                threading.Thread(target=self.work, name="alongside-io").start()
            if job is None:
                break
            if type(job) is Job:
                self.begin(job)
            else:
                other(job, self.functions, self.parked, alone=False)
            del job
        with self.lock:
            self.threads -= 1
            last = not self.threads
        if last and self.loop is not None:
            self.loop.call_soon_threadsafe(self.stop)

    def begin(self, job: Job) -> None:
        """Runs a body here, or hands a coroutine to the event loop."""
        try:
            number, _, _ = job.start()
            asynchronous = self.functions[number].asynchronous
        except BaseException as error:
            report(job, error)
            return
        if not asynchronous:
            pin(job.processors)
            run(job, self.functions, self.parked)
            return
        try:
            body = Body(job, self.functions)
        except BaseException as error:
            report(job, error)
            return
        self.running().call_soon_threadsafe(self.schedule, body)

    def schedule(self, body: Body) -> None:
        """In the event loop: begins a coroutine."""
        assert self.loop is not None
        task = self.loop.create_task(self.asynchronously(body))
        self.pending.add(task)
        task.add_done_callback(self.pending.discard)

    async def asynchronously(self, body: Body) -> None:
        """One run of a coroutine."""
        import asyncio

        job, moved = body.job, body.moved
        try:
            result = await body.coroutine()
            loop = asyncio.get_running_loop()
            outputs = await loop.run_in_executor(None, body.outputs, result)
            body.values.clear()
            body.args, body.kwargs = (), {}
            del body, result
            job.done(outputs, moved.read, moved.written)
        except BaseException as error:
            report(job, error, moved.read, moved.written)

    def running(self) -> asyncio.AbstractEventLoop:
        """The event loop, in a thread of its own."""
        import asyncio

        with self.lock:
            if self.loop is None:
                self.loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_forever, args=[self.loop], name="alongside-loop")
                thread.start()
            return self.loop

    def stop(self) -> None:
        """In the event loop: ends it once the coroutines that run are over."""
        assert self.loop is not None
        if self.pending:
            next(iter(self.pending)).add_done_callback(lambda _: self.stop())
        else:
            self.loop.stop()


_allowed = frozenset(os.sched_getaffinity(0))
_own = threading.local()


def pin(processors: list[int]) -> None:
    """Lets this thread run where its layer is attached, as far as this process may; none: anywhere.

    The event loop, which tasks of all layers share, is left where it is.
    """
    wanted = _allowed.intersection(processors) or _allowed
    if getattr(_own, "processors", _allowed) != wanted:
        os.sched_setaffinity(0, wanted)
        _own.processors = wanted


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
