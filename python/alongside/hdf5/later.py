"""Tasks whose HDF5 files are closed before they are written.

Inside a task the close of a file that the task promises (``FileOut``, ``FileInOut``) does not wait:
it would keep h5py's lock, and with it every other task of the process that has a file open. The end
of the task, and so the start of its dependents, waits instead, without any lock.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from alongside.hdf5 import plugin
from alongside.hdf5.waiting import TEXT_BYTES_MAX


class Promise:
    """While it is entered, closes of these files on this thread leave what is not written to it.

    Leaving it waits for them.

    Raises:
        OSError: at the end or from `settle`: something could not be written; which file, object,
            operation and cause are in the message.

    """

    def __init__(self, paths: Sequence[str]) -> None:
        self.text = b"".join(os.fsencode(path) + b"\0" for path in paths)
        self.number = 0

    def __enter__(self) -> Self:
        self.number = plugin.loaded().alongside_hdf5_close_later(self.text)
        return self

    def settle(self) -> None:
        """Waits until everything that was closed so far is written."""
        text = ctypes.create_string_buffer(TEXT_BYTES_MAX)
        errno = plugin.loaded().alongside_hdf5_settle(self.number, text, TEXT_BYTES_MAX)
        if errno:
            raise OSError(errno, text.value.decode(errors="replace"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        plugin.loaded().alongside_hdf5_close_later(None)
        try:
            self.settle()
        except OSError:
            if kind is None:  # the body's own failure comes first
                raise


def is_used() -> bool:
    """Whether files of this process may be under the connector."""
    named = os.environ.get("HDF5_VOL_CONNECTOR", "").partition(" ")[0] == plugin.CONNECTOR
    return (named or "h5py" in sys.modules) and plugin.PLUGIN.exists()
