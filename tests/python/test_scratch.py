"""Scratch files: deleted when nobody can name them and no task uses them, never brought home."""

import gc
import os
import pickle
import time
from pathlib import Path

import pytest

import alongside as al

LONG = 60
LAYERS = """
[[layer]]
name = "fast"
path = "fast"
bandwidth = "1GB/s"
capacity = "1MB"

[[layer]]
name = "slow"
path = "slow"
bandwidth = "100MB/s"
"""


@pytest.fixture(params=["one layer", "layers", "flush"])
def session(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    storage = None
    if request.param != "one layer":
        for name in ("fast", "slow"):
            (tmp_path / name).mkdir()
        (tmp_path / "storage.toml").write_text(LAYERS)
        storage = "storage.toml"
    with al.Session(workers=1, storage=storage, flush=request.param == "flush") as session:
        yield session
    assert not [path for path in tmp_path.rglob("*") if ".alongside" in path.parts]


@al.io(bandwidth="1kB/s", size="300kB")
def save(path: al.FileOut, size):
    Path(path).write_bytes(b"x" * size)
    return path


@al.io
def load(path: al.FileIn, _after=None):
    return len(Path(path).read_bytes())


@al.io
def extend(path: al.FileInOut):
    with open(path, "ab") as file:
        file.write(b"y")
    return path


def test_a_scratch_file_goes_when_nobody_can_name_it(session, until):
    part = al.Scratch("part.csv")
    place = str(save(part, 10).result(LONG))
    assert place.endswith("part.csv") and os.path.exists(place)
    assert load(part).result(LONG) == 10
    with al.open(part) as file:
        assert file.read() == "x" * 10
    assert extend(part).result(LONG) and load(part).result(LONG) == 11
    del part
    gc.collect()
    until(lambda: not os.path.exists(place))


def test_tasks_that_were_submitted_still_get_it(session, until):
    @al.io
    def wait_for(path):
        while not os.path.exists(path):
            time.sleep(0.01)

    part = al.Scratch()
    place = save(part, 20)
    gate = wait_for("gate")
    read = load(part, gate)
    del part
    gc.collect()
    assert os.path.exists(place.result(LONG)), "a task that was submitted will read it"
    Path("gate").touch()
    assert read.result(LONG) == 20
    until(lambda: not os.path.exists(place.result()))


def test_many_of_them_need_no_more_room_than_those_that_are_named(session):
    """Each is 300 kB, and the fast layer takes three: 60 of them would be 18 MB."""
    for _ in range(60):
        part = al.Scratch()
        save(part, 300_000)
        assert load(part).result(LONG) == 300_000
        del part
    files = (path for path in Path().rglob("*scratch*") if path.is_file())
    assert sum(path.stat().st_size for path in files) < 3_000_000


def test_a_directory_can_be_scratch(session, until):
    @al.io
    def fill(path: al.DirOut):
        Path(path, "a").write_text("1")
        return path

    @al.io
    def names(path: al.DirIn):
        return os.listdir(path)

    folder = al.Scratch("parts")
    place = fill(folder).result(LONG)
    assert names(folder).result(LONG) == ["a"]
    assert load(os.path.join(folder, "a")).result(LONG) == 1
    del folder
    until(lambda: not os.path.exists(place))


def test_one_that_a_failed_task_was_to_write_goes_too(session, until):
    @al.io(on_failure="cancel_dependents")
    def half(path: al.FileOut):
        Path(path).write_text("half")
        raise ValueError(path)

    part = al.Scratch()
    with pytest.raises(ValueError, match="scratch") as raised:
        half(part).result(LONG)
    place = str(raised.value).rsplit(" ", 1)[-1]
    del part, raised
    gc.collect()
    until(lambda: not os.path.exists(place))


def test_what_makes_no_sense_is_refused(session):
    part = al.Scratch()
    with pytest.raises(ValueError, match=r"al\.copy"):
        al.persist(part)
    with pytest.raises(TypeError, match="FileIn"):
        pickle.dumps(part)
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load(part)
    for name in ("", "a/b", ".."):
        with pytest.raises(ValueError, match="a name without folders"):
            al.Scratch(name)


def test_without_a_session_it_is_a_temporary_file():
    part = al.Scratch("x.bin")
    place = save(part, 5)
    assert os.fspath(place) == os.fspath(part) and load(part) == 5
    path = os.fspath(part)
    del part, place
    gc.collect()
    assert not os.path.exists(path) and not os.path.exists(os.path.dirname(path))
