"""Watermarks: files leave a layer that is too full of them also while I/O goes on."""

from pathlib import Path

import pytest

import alongside as al

LAYERS = """
[[layer]]
name = "fast"
path = "fast"
bandwidth = "1GB/s"
capacity = "10MB"
high_watermark = "80%"
low_watermark = "40%"

[[layer]]
name = "slow"
path = "slow"
bandwidth = "100MB/s"
"""
LONG = 60
MB = 1_000_000


@pytest.fixture
def storage(tmp_path, monkeypatch):
    """A fast layer of 10 MB that files begin to leave above 8 MB, until 4 MB are left."""
    monkeypatch.chdir(tmp_path)
    for name in ("fast", "slow"):
        Path(name).mkdir()
    file = tmp_path / "storage.toml"
    file.write_text(LAYERS)
    return file


@al.io(size="1MB")
def save(path: al.FileOut, number):
    Path(path).write_bytes(bytes([number]) * MB)


@al.io
def busy(gate):
    gate.pass_through()


@al.task
def waits(gate):
    gate.pass_through()


def home(number):
    return Path("slow", f"file-{number}")


def at_home():
    return [number for number in range(20) if home(number).exists()]


def whole(numbers):
    return all(home(number).read_bytes() == bytes([number]) * MB for number in numbers)


@pytest.mark.parametrize("flush", [False, True])
def test_files_leave_beside_io_from_the_high_to_the_low_watermark(storage, gate, flush, until):
    with al.Session(workers=1, io_executors=3, storage=storage, flush=flush) as session:
        io = busy(gate)
        for number in range(8):
            save(str(home(number)), number).result(LONG)
        assert at_home() == [], "8 of 10 MB: not above"
        save(str(home(8)), 8).result(LONG)
        until(lambda: session.statistics().files_moved == 5)
        assert at_home() == [0, 1, 2, 3, 4], "the longest unused ones first; 4 MB are left"
        assert whole(range(5))
        assert not io.done(), "no pause was needed"
        gate.open()
        io.result(LONG)
    assert at_home() == list(range(9))
    assert whole(range(9))


def test_without_flush_files_stay_below_the_high_watermark(storage):
    with al.Session(workers=1, storage=storage) as session:
        al.wait_all([save(str(home(number)), number) for number in range(8)])
        assert session.statistics().files_moved == 0
        assert at_home() == []
    assert whole(range(8))


def test_without_flush_files_make_room_for_tasks_that_wait_for_it(storage):
    @al.io(bandwidth="900MB/s", size="5MB")
    def large(path: al.FileOut):
        Path(path).write_bytes(bytes(5 * MB))

    with al.Session(workers=1, storage=storage) as session:
        al.wait_all([save(str(home(number)), number) for number in range(8)])
        large(str(home(8))).result(LONG)
        assert session.statistics().files_moved >= 3, "2 of 10 MB were left, and it needs 5"
    assert whole(range(8))
    assert home(8).stat().st_size == 5 * MB


def test_files_whose_own_path_is_outside_leave_an_only_layer(storage):
    storage.write_text(LAYERS[: LAYERS.index("[[layer]]", 10)])
    with al.Session(workers=1, storage=storage) as session:
        al.wait_all([save(str(home(number)), number) for number in range(19)])
        assert session.statistics().files_moved >= 9, "10 fit"
    assert whole(range(19))


def test_nothing_is_copied_up_above_the_high_watermark(storage, gate, until):
    @al.task
    def read(path: al.FileIn):
        return path

    home(0).write_bytes(bytes(9 * MB))
    home(1).write_bytes(bytes(7 * MB))
    with al.Session(workers=1, storage=storage, prefetch=True) as session:
        first = waits(gate)
        paths = [read(str(home(number))) for number in (0, 1)]
        until(lambda: session.statistics().files_moved == 1)
        gate.open()
        al.wait(first)
        large, small = (al.wait(path) for path in paths)
    assert Path(large) == home(0).absolute(), "9 MB are above 80 % of 10 MB"
    assert "fast" in Path(small).parts, "7 MB are not"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('high_watermark = "120%"', "from 0% to 100%"),
        ("high_watermark = 0.8", 'a share such as "90%"'),
        ('low_watermark = "20%"', "needs a high_watermark"),
    ],
)
def test_watermarks_that_make_no_sense_are_refused_with_their_line(tmp_path, line, words):
    file = tmp_path / "storage.toml"
    file.write_text(f'[[layer]]\nname = "a"\npath = "."\n{line}\n')
    with pytest.raises(al.StorageError, match=r"storage\.toml:4:") as refused:
        al.Session(workers=1, storage=file)
    assert words in str(refused.value)
