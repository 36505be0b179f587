"""`alongside files`: which files of a session are away from their own paths, and where."""

from __future__ import annotations

import argparse
from typing import Any

from alongside import _native, units


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "files", help="list the files of sessions that are not at their own paths yet"
    )
    parser.add_argument(
        "--session", metavar="DIR", help="folder of one session (default: all in .alongside here)"
    )
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Prints them. Gives 1 if a session that is over left some: see `alongside recover`."""
    if options.session:
        sessions = [_native.session_files(options.session)]
    else:
        sessions = _native.sessions_left(".")
    if not sessions:
        print("no session keeps files away from their own paths here")
    left = False
    for folder, alive, files in sessions:
        state = "running" if alive else f"over; `alongside recover {folder}` brings them home"
        print(f"{folder}: {len(files)} files ({state})")
        for home, place, count, scratch, whole in files:
            words = [units.size(count)]
            words += ["not to be kept"] if scratch else []
            words += [] if whole else ["not there, or not as long as it should be"]
            print(f"  {home}\n    is at {place} ({'; '.join(words)})")
        left |= not alive
    return 1 if left else 0
