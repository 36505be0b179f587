"""Bandwidth of reading, of writing, and of both: each is granted by itself."""

import threading
from pathlib import Path

import pytest

import alongside as al

LAYERS = """
[[layer]]
name = "disk"
path = "."
read_bandwidth = "60MB/s"
write_bandwidth = "45MB/s"
bandwidth = "80MB/s"
"""

lock = threading.Lock()
running: dict[str, int] = {}
most: dict[str, int] = {}
"""In the I/O worker: tasks of each kind that run, and the most that ever did."""
first = threading.Barrier(4)
"""Likewise: two that write and two that read meet here."""


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number in range(8):
        Path(f"in-{number}").write_bytes(b"data")
    file = tmp_path / "storage.toml"
    file.write_text(LAYERS)
    return file


def count(kind, change):
    with lock:
        for name in (kind, "all"):
            running[name] = running.get(name, 0) + change
            most[name] = max(most.get(name, 0), running[name])
        return dict(most)


def work(kind, meets):
    count(kind, 1)
    if meets:
        first.wait(timeout=60)
    return count(kind, -1)


@al.io(bandwidth="20MB/s")
def write(path: al.FileOut, after, meets):
    Path(path).write_bytes(b"data")
    return work("write", meets)


@al.io(bandwidth="20MB/s")
def read(path: al.FileIn, after, meets):
    assert Path(path).read_bytes() == b"data"
    return work("read", meets)


@al.task
def opened(gate):
    gate.pass_through()


def test_reading_and_writing_are_granted_apart_and_together(storage, gate):
    with al.Session(workers=1, io_executors=16, storage=storage):
        after = opened(gate)
        tasks = [write(f"out-{number}", after, number < 2) for number in range(8)]
        tasks += [read(f"in-{number}", after, number < 2) for number in range(8)]
        gate.open()
        counts = [al.wait(task) for task in tasks]
    most = {kind: max(one.get(kind, 0) for one in counts) for kind in ("read", "write", "all")}
    assert most["write"] == 2, "45 of 20 MB/s each"
    assert 2 <= most["read"] <= 3, "60 of 20 MB/s each"
    assert most["all"] == 4, "80 of 20 MB/s each; two and two met"
    for number in range(8):
        assert Path(f"out-{number}").read_bytes() == b"data"


def test_what_can_never_be_written_so_fast_is_refused_and_reading_is_not(storage):
    @al.io(bandwidth="50MB/s")
    def fast_write(path: al.FileOut):
        """Never called."""

    @al.io(bandwidth="50MB/s")
    def fast_read(path: al.FileIn):
        return Path(path).read_bytes()

    @al.io(bandwidth="50MB/s")
    def fast_both(path: al.FileInOut):
        """Never called."""

    with al.Session(workers=1, storage=storage):
        assert fast_read("in-0").result(60) == b"data"
        for refused in (fast_write, fast_both):
            with pytest.raises(al.ConstraintError, match=r"disk.*45000000"):
                refused("in-1")


def test_copies_read_and_write(storage):
    with al.Session(workers=1, storage=storage):
        with pytest.raises(al.ConstraintError, match="disk"):
            al.copy("in-0", "out", bandwidth="50MB/s")
        al.copy("in-0", "out", bandwidth="40MB/s")
        assert al.wait(al.read("in-1", bandwidth="60MB/s")) == b"data"
    assert Path("out").read_bytes() == b"data"


def test_a_direction_that_is_more_than_both_together_is_refused(tmp_path):
    file = tmp_path / "storage.toml"
    file.write_text(LAYERS.replace("80MB/s", "59MB/s"))
    with pytest.raises(al.StorageError, match=r"storage\.toml:5:.*more than bandwidth"):
        al.Session(workers=1, storage=file)
