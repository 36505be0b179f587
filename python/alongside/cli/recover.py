"""`alongside recover`: finishes or undoes what a session that was killed left."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from alongside import _native

WORDS = {
    "home": "brought to its own path",
    "half_changed": "brought to its own path",
    "deleted": "deleted: it was not to be kept",
    "damaged": "has another length than its task left: not touched",
    "lost": "lost: it is gone from where it was (memory is empty after a restart)",
}
BAD = {"damaged", "lost"}


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "recover", help="bring the files of a killed session to their own paths"
    )
    parser.add_argument(
        "session", metavar="DIR", help="folder of the session: .alongside/session-..."
    )
    parser.add_argument(
        "--discard",
        action="store_true",
        help="delete what cannot be brought there, and the folder of the session with it",
    )
    parser.set_defaults(main=main)


def _half_changed(home: Any) -> None:
    """Told before it is brought home: a recovery that is begun again does not know it any more."""
    print(f"{home}: a task was changing it: it may be half changed", flush=True)


def main(options: argparse.Namespace) -> int:
    """Does it, and tells of each file. Gives 1 if one is lost, damaged or still away."""
    files = _native.recover(options.session, options.discard, _half_changed)
    wrong = 0
    for home, place, fate, error in files:
        print(f"{home}: {f'still at {place}: {error}' if error else WORDS[fate]}")
        wrong += error is not None or fate in BAD
    done = len(files) - wrong
    print(f"{done} of {len(files)} files are settled")
    if wrong and not options.discard:
        print(
            f"alongside: {wrong} files need you; the session's folder stays (--discard deletes it)",
            file=sys.stderr,
        )
    return 1 if wrong else 0
