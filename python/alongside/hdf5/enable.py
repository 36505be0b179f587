"""h5py's files under the connector, from a program that has h5py already.

HDF5 reads its environment when it is loaded. After that a file's connector can only be chosen in
its access property list, and h5py makes these itself. So its two functions that open files are
replaced, and set the connector in the list that they are given. The functions of HDF5 are called
in the library that h5py has loaded: they are found among the dependencies of its modules.

HDF5 does not share a file between two connectors. So a file that is open already is opened with
the connector that it has, inside and outside of `enabled`, and the functions stay replaced.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from alongside import errors
from alongside.hdf5 import plugin

_DEFAULT = 0
_lock = threading.Lock()
_enabled: list[str] = []
_replaced: dict[str, Any] = {}
_NAME_BYTES_MAX = 256


@contextlib.contextmanager
def enabled(
    *, limit: int | str | None = None, behind: int | str | None = None, lend: bool = False
) -> Iterator[None]:
    """Files that h5py opens in here are written behind the program, until they are closed.

    For all threads of the process. Files that were open before stay as they are. Arguments are
    those of :func:`alongside.hdf5.connector`.

    Raises:
        ConstraintError: a limit of 0 without `lend`: h5py frees arrays that it made at once.
        SessionError: the package was built without the plugin.
        OSError: h5py's HDF5 does not take it; why is on standard error.

    """
    plugin.check()
    text = plugin.connector(limit=limit, behind=behind, lend=lend)
    if plugin.is_nothing(limit) and not lend:
        raise errors.ConstraintError(
            "limit: with 0 nothing is copied, and h5py frees arrays that it made (of slices, of "
            "other types) before they are written. Give lend=True as well if all arrays that are "
            "written are C-contiguous, of their dataset's type, and kept until the program waited"
        )
    _begin(text)
    try:
        yield
    finally:
        _end(text)


def _begin(text: str) -> None:
    import h5py

    _hdf5()  # a library that cannot be served says so here
    with _lock:
        _enabled.append(text)
        if not _replaced:
            for name in ("open", "create"):
                _replaced[name] = getattr(h5py.h5f, name)
                setattr(h5py.h5f, name, _with_connector(_replaced[name]))


def _end(text: str) -> None:
    with _lock:
        _enabled.remove(text)


def _with_connector(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ``h5py.h5f`` whose ``fapl`` gets the connector."""

    @functools.wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        from h5py import h5p
        from h5py._objects import phil

        position = 3 if function.__name__ == "create" else 2
        # Another thread may close a file that is looked at.
        with phil:
            text = _connector_for(args[0] if args else options["name"])
            fapl = args[position] if len(args) > position else options.get("fapl")
            if text is None:
                return function(*args, **options)
            fapl = h5p.create(h5p.FILE_ACCESS) if fapl is None else fapl.copy()
            _set_connector(fapl.id, text)
            if len(args) > position:
                args = (*args[:position], fapl, *args[position + 1 :])
            else:
                options["fapl"] = fapl
            return function(*args, **options)

    return call


def _connector_for(name: bytes | str) -> str | None:
    """What a file is to be opened with; None: as without us."""
    with _lock:
        text = _enabled[-1] if _enabled else None
    match _connector_of(name):
        case None:
            return text
        case plugin.CONNECTOR:
            return text or plugin.connector()
        case _:
            return None


def _connector_of(name: bytes | str) -> str | None:
    """The name of the connector that a file is open with; None: it is not open."""
    from h5py import h5f, h5fd

    try:
        plugin.loaded().alongside_hdf5_before_open(os.fsencode(name))
        found = os.stat(name)
    except (OSError, ValueError):
        return None
    hdf5, _ = _hdf5()
    for file in h5f.get_obj_ids(h5f.OBJ_ALL, h5f.OBJ_FILE):
        if file.get_access_plist().get_driver() != h5fd.SEC2:
            continue
        its = os.fstat(file.get_vfd_handle())
        if (its.st_dev, its.st_ino) == (found.st_dev, found.st_ino):
            text = ctypes.create_string_buffer(_NAME_BYTES_MAX)
            hdf5.H5VLget_connector_name(file.id, text, _NAME_BYTES_MAX)
            return text.value.decode()
    return None


def _set_connector(fapl: int, text: str) -> None:
    hdf5, connector = _hdf5()
    info = ctypes.c_void_p()
    said = text.partition(" ")[2].encode()
    done = 0
    if said:
        done = hdf5.H5VLconnector_str_to_info(said, connector, ctypes.byref(info))
    if done >= 0:
        done = hdf5.H5Pset_vol(fapl, connector, info)
        hdf5.H5VLfree_connector_info(connector, info)
    if done < 0:
        raise OSError(f"HDF5 does not take the connector {text!r}")


@functools.cache
def _hdf5() -> tuple[Any, ctypes.c_int64]:
    """The functions of h5py's HDF5, and the connector's id there."""
    from h5py import h5p
    from h5py._objects import phil

    hdf5 = ctypes.CDLL(h5p.__file__)
    identifier = ctypes.c_int64
    hdf5.H5PLprepend.argtypes = [ctypes.c_char_p]
    hdf5.H5VLregister_connector_by_name.argtypes = [ctypes.c_char_p, identifier]
    hdf5.H5VLregister_connector_by_name.restype = identifier
    hdf5.H5VLconnector_str_to_info.argtypes = [ctypes.c_char_p, identifier, ctypes.c_void_p]
    hdf5.H5VLfree_connector_info.argtypes = [identifier, ctypes.c_void_p]
    hdf5.H5Pset_vol.argtypes = [identifier, identifier, ctypes.c_void_p]
    hdf5.H5VLget_connector_name.argtypes = [identifier, ctypes.c_char_p, ctypes.c_size_t]
    hdf5.H5VLget_connector_name.restype = ctypes.c_ssize_t
    with phil:
        hdf5.H5PLprepend(str(plugin.FOLDER).encode())
        name = plugin.CONNECTOR.encode()
        connector = hdf5.H5VLregister_connector_by_name(name, _DEFAULT)
        # What the native connector cannot open HDF5 tries with all plugins that it finds. Ours
        # could do no better, and HDF5 2.0 crashes over a file that it opens in this way.
        hdf5.H5PLremove(0)
    if connector < 0:
        raise OSError(f"h5py's HDF5 does not take the plugin {plugin.PLUGIN}")
    return hdf5, identifier(connector)
