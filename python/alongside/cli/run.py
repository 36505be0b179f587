"""`alongside run app.py [args]`: a script under a session.

The session begins with the first call of a task outside of any session that the script makes
itself; the options given here also hold for those.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
import traceback
import types
from typing import Any

from alongside import _context, _native, hdf5, summary
from alongside.cli import graph, paths, progress
from alongside.errors import ConstraintError
from alongside.session import POLICIES, Session, arguments_of

EXIT_INTERRUPTED = 128 + signal.SIGINT
SESSION_OPTIONS = (
    *("workers", "io_executors", "storage", "io_policy", "flush", "prefetch", "memory"),
    *("trace", "learned"),
)


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "run",
        help="run a script under a session",
        description="Run a script under a session. Options of the session come before its name.",
    )
    session = parser.add_argument_group("session (given here, these go before the script's own)")
    session.add_argument("--workers", type=int, metavar="N", help="compute processes")
    session.add_argument("--io-executors", type=int, metavar="N", help="I/O tasks at once")
    session.add_argument("--storage", metavar="FILE", help="TOML description of the storage layers")
    session.add_argument("--io-policy", choices=POLICIES, help="order of ready I/O tasks")
    session.add_argument(
        "--flush", action="store_true", default=None, help="move cold files down between I/O"
    )
    session.add_argument(
        "--prefetch", action="store_true", default=None, help="copy files up before they are read"
    )
    session.add_argument("--memory", metavar="SIZE", help='most that values take, such as "4GB"')
    session.add_argument("--learned", metavar="FILE.json", help="keep what auto has learned")
    session.add_argument("--trace", metavar="FILE.json", help="write a timeline for Perfetto")
    parser.add_argument("--graph", metavar="FILE.svg|.dot", help="write the task graph")
    parser.add_argument(
        "--hdf5", action="store_true", help="HDF5 files are written behind the program"
    )
    parser.add_argument("--no-progress", action="store_true", help="no progress bar")
    parser.add_argument("--no-summary", action="store_true", help="no summary at the end")
    parser.add_argument(  # with REMAINDER, argparse takes a `--` after the script for its own
        "program", nargs=argparse.PARSER, metavar="script", help="the program, and its arguments"
    )
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Runs the script. Gives its exit code; 130 after Ctrl-C, 1 after an error."""
    if options.graph:
        graph.check(options.graph)
    _check(options)
    if options.program[0] == "--":  # the end of our own options, which newer Pythons leave out
        del options.program[0]
    try:
        with open(options.program[0], "rb") as file:
            source = file.read()
    except OSError as error:
        print(f"alongside: cannot read {options.program[0]}: {error.strerror}", file=sys.stderr)
        return 2
    if options.hdf5:
        os.environ.update(hdf5.environment())
    watch = Watch(options)
    code = watch.run(source)
    unwritten = watch.report()
    return code or unwritten


def _check(options: argparse.Namespace) -> None:
    """Refuses options that make no sense, before the script runs. Makes its paths absolute."""
    for option in ("trace", "graph", "learned"):
        name = getattr(options, option)
        refusal = paths.refusal(name) if name else None
        if refusal:
            raise ConstraintError(f"--{option} {refusal}")
    arguments_of({name: getattr(options, name) for name in SESSION_OPTIONS})
    _native.read_storage(options.storage)
    if options.learned:
        _native.read_learned(options.learned)
    for option in ("trace", "graph", "learned", "storage"):
        name = getattr(options, option)  # the script may change the working directory
        setattr(options, option, name and os.path.abspath(name))


class Watch:
    """Follows the sessions of one script."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.lock = threading.RLock()
        self.session: Session | None = None
        self.begun: list[Session] = []
        self.ended: list[Session] = []
        given = {name: getattr(options, name) for name in SESSION_OPTIONS}
        _context.session_options = {k: v for k, v in given.items() if v is not None}
        _context.record = bool(options.graph)
        _context.autostart = self.start
        _context.opened = self.opened
        _context.closed = self.ended.append
        self.bar = progress.bar(not options.no_progress)

    def start(self) -> Session:
        """The session of the script, made by its first call."""
        with self.lock:
            if self.session is None:
                self.session = Session()
                self.session.__enter__()
            return self.session

    def opened(self, session: Session) -> None:
        """A session began: the bar shows it, and its timeline is in a file of its own."""
        self.begun.append(session)
        if session.trace is not None:
            session.trace = paths.numbered(session.trace, len(self.begun))
        self.bar.show(session)

    def run(self, source: bytes) -> int:
        """The script, to its end and that of its tasks."""
        code = 1
        try:
            self.execute(source)
            self.finish()
            code = 0
        except SystemExit as error:
            code = _exit_code(error)
            if code == 0:
                code = self.finish_after_exit()
        except KeyboardInterrupt:
            code = EXIT_INTERRUPTED
        except BaseException as error:
            _print(error)
        finally:
            _context.autostart = None  # what Python still calls at its end runs inline
            try:
                self.cancel()
            finally:
                self.bar.close()
        if code == EXIT_INTERRUPTED:
            print("alongside: interrupted", file=sys.stderr)
        return code

    def execute(self, source: bytes) -> None:
        """The script as `__main__`, as Python itself would run it."""
        script = self.options.program[0]
        main = types.ModuleType("__main__")
        main.__file__ = script
        main.__builtins__ = __builtins__  # type: ignore[attr-defined]
        sys.modules["__main__"] = main
        sys.argv = self.options.program
        sys.path.insert(0, os.path.dirname(os.path.abspath(script)))
        # The script's own `from __future__` holds there, and not the one of this file.
        exec(compile(source, script, "exec", dont_inherit=True), main.__dict__)

    def finish(self) -> None:
        """Waits as the end of Python does, for threads and then for the tasks of all sessions.

        Raises the first failure that nobody looked at, or what else went wrong.
        """
        sessions = dict(_context.live)  # a thread may be at ending some
        vars(threading)["_shutdown"]()  # as multiprocessing does: pools end, threads are joined
        sessions.update(_context.live)
        wrong: list[Exception] = []
        for session in sessions.values():
            if session.pid != os.getpid():
                continue  # a forked child leaves it alone
            try:
                session.__exit__(None, None, None)
            except Exception as error:
                wrong.append(error)
        for other in wrong[1:]:
            _print(other)
        if wrong:
            raise wrong[0]

    def finish_after_exit(self) -> int:
        """The same after `sys.exit(0)`: the code tells whether all went well."""
        try:
            self.finish()
        except KeyboardInterrupt:
            return EXIT_INTERRUPTED
        except BaseException as error:
            _print(error)
            return 1
        return 0

    def cancel(self) -> None:
        """Ends what is left at once. What goes wrong there is told; the code says why it ended."""
        for session in list(_context.live.values()):
            try:
                session.close(cancel=True)
            except KeyboardInterrupt:
                continue  # it is over for that one; the others end at once too
            except Exception as error:
                print(f"alongside: {error}", file=sys.stderr)

    def report(self) -> int:
        """The summary and the graph of each session. Gives 1 if a graph cannot be written."""
        code = 0
        for session in self.ended:
            if not self.options.no_summary:
                summary.write(session.statistics(), sys.stderr)
            if self.options.graph:
                name = paths.numbered(self.options.graph, 1 + self.begun.index(session))
                try:
                    graph.write(session.native.graph(), name)
                except OSError as error:
                    print(f"alongside: --graph {name}: {error.strerror or error}", file=sys.stderr)
                    code = 1
        return code


def _exit_code(error: SystemExit) -> int:
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    print(error.code, file=sys.stderr)
    return 1


def _print(error: BaseException) -> None:
    """The traceback without the frames of this command."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
