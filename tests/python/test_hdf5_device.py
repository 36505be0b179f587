"""HDF5 programs whose device breaks after the system has taken their bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="mounts a device that breaks")

BROKEN = """
import sys, time, h5py, numpy as np, alongside as al
until = time.monotonic() + 60
with al.hdf5.enabled():
    file = h5py.File(sys.argv[1], "w")
file["kept"] = np.ones(100)
if "before" in sys.argv:
    file.flush()
file["lost"] = np.ones(4_000_000)
assert file["lost"][5] == 1, "the system has it"
while time.monotonic() < until:
    try:
        file.flush()
    except RuntimeError as error:
        print(error)
        break
file.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A file system that thinks it has room, on a loop device whose file has none."""
    under, above = tmp_path / "under", tmp_path / "above"
    image = under / "image"
    under.mkdir()
    above.mkdir()
    with ExitStack() as stack:

        def mount(folder: Path, *options: object) -> None:
            subprocess.run(["mount", *map(str, options), folder], check=True)
            stack.callback(subprocess.run, ["umount", folder], check=True)

        mount(under, "-t", "tmpfs", "-o", "size=8m", "none")
        image.touch()
        os.truncate(image, 64 << 20)
        format_it = ["mkfs.ext4", "-q", "-F", "-O", "^has_journal", image]
        subprocess.run(format_it, check=True)
        mount(above, "-o", "loop", image)
        yield above


@pytest.mark.parametrize("flushes", ["before", "after"])
def test_what_a_device_does_not_take_is_told_by_the_next_flush(folder: Path, flushes: str) -> None:
    command = [sys.executable, "-c", BROKEN, folder / "out.h5", flushes]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "out.h5: " in ended.stdout
    assert "(on the way to the device)" in ended.stdout
