"""Where the plugin is, and how HDF5 is told."""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from alongside import _native, errors

#: The folder that HDF5 looks for plugins in: there is nothing else in it.
FOLDER = Path(__file__).parent / "plugins"

#: The plugin.
PLUGIN = FOLDER / "libalongside_hdf5.so"

#: What HDF5 calls the connector.
CONNECTOR = "alongside"


def connector(*, limit: int | str | None = None, behind: int | str | None = None) -> str:
    """The connector string: what ``HDF5_VOL_CONNECTOR`` is set to.

    Args:
        limit: bytes of one file that may be copied and not written yet, such as ``"2GB"``; more
            waits. None: 1 GiB, or what ``ALONGSIDE_HDF5_LIMIT`` says. 0: nothing is copied, and
            the program does not change a buffer before it has waited.
        behind: writes from so many bytes on go behind the program. None: 64 KiB.

    Raises:
        ConstraintError: no number of bytes.

    """
    given = {"limit": limit, "behind": behind}
    said = [f"{key}={_bytes(key, value)}" for key, value in given.items() if value is not None]
    return " ".join([CONNECTOR, ";".join(["under_vol=0", "under_info={}", *said])])


def _bytes(key: str, value: int | str) -> int:
    try:
        return _native.parse_bytes(str(value))
    except ValueError as error:
        raise errors.ConstraintError(f"{key}: {error}") from None


def environment(
    before: Mapping[str, str] = os.environ, *, limit: int | str | None = None
) -> dict[str, str]:
    """What to set in the environment of a program with HDF5. Other plugins stay where they are.

    Raises:
        SessionError: the package was built without the plugin.

    """
    check()
    others = before.get("HDF5_PLUGIN_PATH", "")
    folders = [str(FOLDER), *[one for one in others.split(":") if one and one != str(FOLDER)]]
    return {
        "HDF5_PLUGIN_PATH": ":".join(folders),
        "HDF5_VOL_CONNECTOR": connector(limit=limit),
    }


def check() -> None:
    """Refuses if the plugin is not there.

    Raises:
        SessionError: the package was built without it.

    """
    if not PLUGIN.exists():
        raise errors.SessionError(
            f"the HDF5 plugin {PLUGIN} is not there: install a wheel of alongside, or build it "
            "with `make setup`"
        )


@functools.cache
def loaded() -> ctypes.CDLL:
    """The plugin itself: the same that HDF5 has loaded, or will load."""
    check()
    found = ctypes.CDLL(str(PLUGIN))
    number = ctypes.c_uint64
    found.alongside_hdf5_wait.argtypes = [number, number, ctypes.c_char_p, ctypes.c_size_t]
    found.alongside_hdf5_fetch.argtypes = [number, number, number, number]
    found.alongside_hdf5_fetch.restype = number
    found.alongside_hdf5_close_later.argtypes = [ctypes.c_char_p]
    found.alongside_hdf5_close_later.restype = number
    found.alongside_hdf5_settle.argtypes = [number, ctypes.c_char_p, ctypes.c_size_t]
    return found


def identity(target: Any) -> tuple[int, int]:
    """Device and inode of a path, or of the file of an h5py object."""
    if not isinstance(target, (str, bytes, os.PathLike)):
        target = target.file.filename
    found = os.stat(target)
    return found.st_dev, found.st_ino
