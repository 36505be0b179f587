"""The command `alongside`: one module for each of its commands."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

from alongside import errors
from alongside.cli import files, hdf5, info, probe, recover, run


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Gives the exit code."""
    parser = argparse.ArgumentParser(
        prog="alongside", description="Run task programs; see and measure what this machine offers."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for module in (run, info, probe, files, recover, hdf5):
        module.add_to(commands)
    _open_streams()
    options = parser.parse_args(arguments)
    try:
        code: int = options.main(options)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read our output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (errors.StorageError, errors.ConstraintError, errors.SessionError) as error:
        print(f"alongside: {error}", file=sys.stderr)
        return 2
    return code


def _open_streams() -> None:
    """Lead the standard streams nowhere that are closed, as a daemon may have them."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            mode = "w" if number else "r"
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", closefd=False))
