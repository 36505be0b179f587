"""`alongside hdf5`: what to set for programs with HDF5."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from alongside import hdf5


def add_to(commands: Any) -> None:
    """Adds the command to the parser."""
    parser = commands.add_parser(
        "hdf5",
        help="print what makes HDF5 programs write behind themselves",
        description='For a shell: eval "$(alongside hdf5)"',
    )
    parser.add_argument("--limit", metavar="SIZE", help="bytes of a file copied and not written")
    parser.set_defaults(main=main)


def main(options: argparse.Namespace) -> int:
    """Prints it."""
    for name, value in hdf5.environment(limit=options.limit).items():
        print(f"export {name}={shlex.quote(value)}")
    return 0
