"""A worker process: takes runs of task bodies, and tells how they ended.

A compute worker runs one task at a time in its main thread. The I/O worker has a thread for
each task that runs, made when it is needed, and an event loop for `async def` bodies. It ends
when the session says so, or is gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import pickle
import signal
import sys
import threading
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from alongside import _context, _native, files, serial
from alongside.directions import IN, OUT

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

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

    def __init__(self, body: Any, by_name: bool, name: str, asynchronous: bool) -> None:
        self.body: Callable[..., Any] = body.function if by_name else body
        self.name = name
        self.asynchronous = asynchronous


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
    take = worker.next
    while (job := take()) is not None:
        if isinstance(job, int):
            functions.forget(job)
            continue
        try:
            number, (data, buffers), plain = job.start()
            if not plain or number not in known:
                del data, buffers
                run(job, functions)
                continue
            out = _plain(known[number].body, data, buffers)
            del data, buffers
            job.done((out,))
        except BaseException as error:
            report(job, error)
        del job


def _plain(function: Any, data: Any, buffers: Any) -> serial.Packed:
    """The result of a body that has no inputs and no files. Nothing of it is left behind."""
    args, kwargs = _loads(data, buffers=buffers) if buffers else _loads(data)
    result = function(*args, **kwargs)
    return serial.pack_result(result)


def run(job: Job, functions: Functions) -> None:
    """One run of any body that is not a coroutine."""
    moved = Moved(job)
    try:
        body = Body(job, functions)
        result = body.call()
        outputs = body.outputs(result)
        del body, result
        job.done(outputs, *moved.bytes())
    except BaseException as error:
        report(job, error, *moved.bytes())


class Body:
    """The arguments of one run, and what it hands over."""

    def __init__(self, job: Job, functions: Functions) -> None:
        number, (data, buffers), _ = job.start()
        self.function = functions[number]
        self.job = job
        self.values: dict[int, Any] = {}
        self.limiters: dict[str, _native.Limiter] = {}
        arriving = serial.arriving
        arriving.inputs = self.input
        arriving.templates = self.values
        arriving.places = []
        arriving.paths = self.paths = list[tuple[serial.Place, str]]()
        for real, limiter in job.places():
            arriving.places.append(real)
            if limiter is not None:
                self.limiters[real] = limiter
        try:
            self.args, self.kwargs = _loads(data, buffers=buffers)
        finally:
            arriving.__dict__.clear()  # it would keep the inputs after the end of the run
        self.written = [path for place, path in self.paths if place.number != IN]
        self.read = {path: files.stamp(path) for place, path in self.paths if place.number == IN}
        self.made = [path for path in self.written if not os.path.lexists(path)]
        for place, path in self.paths:
            if place.number != IN:
                files.make_folders(os.path.dirname(os.path.abspath(path)))
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
        token = files.limiters.set(self.limiters)
        try:
            return self.function.body(*self.args, **self.kwargs)
        finally:
            files.limiters.reset(token)

    def coroutine(self) -> Coroutine[Any, Any, Any]:
        """The body, for an event loop."""
        files.limiters.set(self.limiters)
        coroutine: Coroutine[Any, Any, Any] = self.function.body(*self.args, **self.kwargs)
        return coroutine

    def outputs(self, result: Any) -> list[serial.Packed]:
        """What goes to the session: the returns, then the written inputs. Files are flushed."""
        self.check_paths()
        if self.job.durable:
            files.make_durable(self.written)
        count = self.job.returns
        results = [result] if count == 1 else self.many(result, count)
        results += [self.input(index) for index in self.job.writes]
        del result
        names = [f"return value {number}" for number in range(count)] if count > 1 else ["result"]
        return [self.packed(value, names, at) for at, value in enumerate(results)]

    def check_paths(self) -> None:
        """What was to be written is there, and what was to be read is as it was."""
        wrong = None
        for place, path in self.paths:
            kind, other = ("Dir", "File") if place.directory else ("File", "Dir")
            if place.number == IN:
                if files.stamp(path) not in (self.read[path], None):
                    wrong = (
                        f"changed {path}, which it has as {kind}In: other tasks may be reading "
                        f"it; make that parameter {kind}InOut"
                    )
            elif not os.path.lexists(path):
                if path in self.made or place.directory:
                    what = "making its directory" if place.directory else "writing its file"
                    text = f"{self.function.name}() ended without {what}"
                    raise FileNotFoundError(errno.ENOENT, text, path)
            elif os.path.isdir(path) != place.directory:
                made = "file" if place.directory else "directory"
                wrong = f"made {path} a {made}; make that parameter {other}Out"
        if wrong:
            from alongside.errors import DirectionError

            raise DirectionError(f"{self.function.name}() {wrong}")

    def many(self, result: Any, count: int) -> list[Any]:
        """The values of a function that returns several."""
        try:
            values = list(result)
        except TypeError:
            got = type(result).__name__
        else:
            if len(values) == count:
                return values
            got = f"{len(values)} values"
        raise TypeError(f"{self.function.name}() has returns={count}, but it returned {got}")

    def packed(self, value: Any, names: list[str], at: int) -> serial.Packed:
        """One value as bytes."""
        try:
            return serial.pack_result(value)
        except Exception as error:
            what = names[at] if at < len(names) else "changed argument"
            from alongside.errors import SerializationError

            raise SerializationError(
                f"{self.function.name}(): its {what} (a {type(value).__name__}) cannot be sent "
                f"back: {error}. Return the data that it is made from"
            ) from error


class Moved:
    """Bytes that a thread read and wrote, as the system counts them."""

    def __init__(self, job: Job) -> None:
        self.before = _counters() if job.uses_files else None

    def bytes(self) -> tuple[int, int]:
        """Read and written since the beginning, on this thread."""
        if self.before is None:
            return (0, 0)
        after = _counters()
        return (max(0, after[0] - self.before[0]), max(0, after[1] - self.before[1]))


_io = threading.local()


def _counters() -> tuple[int, int]:
    """`rchar` and `wchar` of this thread; zeros where the system does not count."""
    try:
        descriptor = _io.descriptor
    except AttributeError:
        try:
            descriptor = os.open("/proc/thread-self/io", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            descriptor = -1
        _io.descriptor = descriptor
    if descriptor < 0:
        return (0, 0)
    words = os.pread(descriptor, 256, 0).split()
    return int(words[1]), int(words[3])


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
            if isinstance(job, int):
                self.functions.forget(job)
            else:
                self.begin(job)
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
            run(job, self.functions)
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

        job = body.job
        try:
            result = await body.coroutine()
            loop = asyncio.get_running_loop()
            outputs = await loop.run_in_executor(None, body.outputs, result)
            body.values.clear()
            body.args, body.kwargs = (), {}
            del body, result
            job.done(outputs)
        except BaseException as error:
            report(job, error)

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


def _forever(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()
