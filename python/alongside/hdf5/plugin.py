"""Where the plugin is, and how HDF5 is told."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from alongside import _native, errors

#: The folder that HDF5 looks for plugins in: there is nothing else in it.
FOLDER = Path(__file__).parent / "plugins"

#: The plugin.
PLUGIN = FOLDER / "libalongside_hdf5.so"

#: Where HDF5, and that of h5py's wheels, looks for plugins unless it was built to look elsewhere.
_FOLDERS_BUILT_IN = ("/usr/local/hdf5/lib/plugin", "/usr/local/lib/plugin")

#: What HDF5 calls the connector.
CONNECTOR = "alongside"


def connector(
    *, limit: int | str | None = None, behind: int | str | None = None, lend: bool = False
) -> str:
    """The connector string: what ``HDF5_VOL_CONNECTOR`` is set to.

    Args:
        limit: bytes of one file that may be copied and not written yet, such as ``"2GB"``; more
            waits. None: 1 GiB, or what ``ALONGSIDE_HDF5_LIMIT`` says. 0: nothing is copied, and
            the program does not change a buffer before it has waited. Not of a Python program.
        behind: writes from so many bytes on go behind the program. None: 64 KiB, 1 MiB of what
            HDF5 writes about the data.
        lend: a limit of 0 holds in a Python program, too. All arrays that it writes are
            C-contiguous, of the type of their dataset, and kept until it has waited: h5py makes
            copies of others, and frees them at once.

    Raises:
        ConstraintError: no number of bytes.

    """
    given = {"limit": limit, "behind": behind}
    said = [f"{key}={_bytes(key, value)}" for key, value in given.items() if value is not None]
    said += ["lend=yes"] if lend else []
    return " ".join([CONNECTOR, ";".join(["under_vol=0", "under_info={}", *said])])


def is_nothing(limit: int | str | None) -> bool:
    """Whether a limit is 0 bytes."""
    return limit is not None and _bytes("limit", limit) == 0


def _bytes(key: str, value: int | str) -> int:
    try:
        return _native.parse_bytes(str(value))
    except ValueError as error:
        raise errors.ConstraintError(f"{key}: {error}") from None


def environment(
    before: Mapping[str, str] = os.environ, *, limit: int | str | None = None, lend: bool = False
) -> dict[str, str]:
    """What to set in the environment of a program with HDF5. Other plugins are found as before.

    Arguments are those of :func:`alongside.hdf5.connector`.

    Raises:
        SessionError: the package was built without the plugin.

    """
    check()
    others = before.get("HDF5_PLUGIN_PATH", "").split(":")
    others = [one for one in others if one and one != str(FOLDER)] or list(_folders_by_default())
    folders = [str(FOLDER), *others]
    return {
        "HDF5_PLUGIN_PATH": ":".join(folders),
        "HDF5_VOL_CONNECTOR": connector(limit=limit, lend=lend),
    }


def _folders_by_default() -> Iterator[str]:
    """Where HDF5 looks for plugins, such as filters, if the environment does not say.

    With that said, HDF5 leaves out the folders that it was built with, and netCDF4 its own.
    """
    yield from _FOLDERS_BUILT_IN
    yield str(Path(sys.prefix, "lib", "hdf5", "plugin"))
    netcdf4 = importlib.util.find_spec("netCDF4")
    for folder in (netcdf4 and netcdf4.submodule_search_locations) or ():
        yield str(Path(folder, "plugins"))


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
    number, size = ctypes.c_uint64, ctypes.c_size_t
    pointer, text = ctypes.c_void_p, ctypes.c_char_p
    found.alongside_hdf5_wait.argtypes = [number, number, pointer, size, text, size]
    found.alongside_hdf5_test.argtypes = [number, number, pointer, size]
    found.alongside_hdf5_fetch.argtypes = [number, number, number, number]
    found.alongside_hdf5_fetch.restype = number
    found.alongside_hdf5_close_later.argtypes = [ctypes.c_char_p]
    found.alongside_hdf5_close_later.restype = number
    found.alongside_hdf5_before_open.argtypes = [text]
    found.alongside_hdf5_before_open.restype = None
    found.alongside_hdf5_settle.argtypes = [number, ctypes.c_char_p, size]
    return found


def identity(target: Any) -> tuple[int, int] | None:
    """Device and inode of a path, or of the file of an h5py object; None: it cannot be ours."""
    if isinstance(target, (str, bytes, os.PathLike)):
        found = os.stat(target)
    elif target.file.driver != "sec2":
        return None
    else:
        # Its name may be another file's by now, or nobody's.
        found = os.fstat(target.file.id.get_vfd_handle())
    return found.st_dev, found.st_ino


def ranges(dataset: Any) -> Iterator[tuple[int, int]]:
    """Offset and length in the file of what a dataset has there, in the order of its chunks."""
    if dataset.chunks is None:
        offset = dataset.id.get_offset()
        if offset is not None and not dataset.is_virtual and not dataset.external:
            yield offset, dataset.id.get_storage_size()
        return
    for number in range(dataset.id.get_num_chunks()):
        chunk = dataset.id.get_chunk_info(number)
        if chunk.byte_offset is not None:
            yield chunk.byte_offset, chunk.size
