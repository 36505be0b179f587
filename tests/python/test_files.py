"""I/O tasks: files as data, `open`, `fsync`, durable, async bodies, layers."""

import asyncio
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import alongside as al
from alongside import _native


@al.io
def write(path: al.FileOut, text):
    with open(path, "w") as file:
        file.write(text)


@al.io
def read(path: al.FileIn):
    with open(path) as file:
        return file.read()


@al.io
def append(path: al.FileInOut, text):
    with open(path, "a") as file:
        file.write(text)


@al.io
def concatenate(paths: list[al.FileIn], out: al.FileOut):
    with open(out, "w") as file:
        for path in paths:
            with open(path) as part:
                file.write(part.read())


@al.io
def where(*paths: al.FileIn):
    return paths


def test_readers_wait_for_writers(session):
    write("a.txt", "one")
    first = read("a.txt")
    append("a.txt", " two")
    second = read("./a.txt")
    write("a.txt", "three")
    third = read(os.path.abspath("a.txt"))
    assert al.wait_all([first, second, third]) == ["one", "one two", "three"]


def test_files_are_seen_by_compute_tasks_too(session):
    @al.task
    def length(path: al.FileIn):
        return len(Path(path).read_text())

    write("a.txt", "12345")
    assert al.wait(length("a.txt")) == 5


def test_lists_of_files(session):
    names = [f"part-{n}" for n in range(5)]
    for name in names:
        write(name, name[-1])
    concatenate(names, "all")
    assert al.wait(read("all")) == "01234"
    assert [os.path.basename(path) for path in al.wait(where(*names))] == names


def test_paths_stay_paths(session):
    @al.io
    def kind(path: al.FileOut):
        Path(path).touch()
        return type(path).__name__, os.path.isabs(path)

    assert al.wait(kind(Path("x"))) == ("PosixPath", True)
    assert al.wait(kind("y")) == ("str", True)


def test_folders_of_outputs_are_made(session):
    write("deep/er/a.txt", "x")
    assert al.wait(read("deep/er/a.txt")) == "x"


def test_optional_files(session):
    @al.io
    def maybe(path: al.FileIn | None = None):
        return path

    assert al.wait(maybe()) is None


def test_a_default_file_name(session):
    @al.io
    def save(text, path: al.FileOut = "default.txt"):
        Path(path).write_text(text)

    save("hello")
    assert al.wait(read("default.txt")) == "hello"


def test_a_missing_input_file(session):
    with pytest.raises(FileNotFoundError, match=r"read\(\): parameter 'path' is FileIn") as caught:
        read("nowhere.txt")
    assert caught.value.filename.endswith("nowhere.txt")
    with pytest.raises(FileNotFoundError, match="FileInOut"):
        append("nowhere.txt", "x")


def test_what_is_no_file_name(session):
    with pytest.raises(al.DirectionError, match=r"read\(\): parameter 'path' .*not 3"):
        read(3)
    with pytest.raises(al.DirectionError, match="a future; take its result first"):
        read(write("a", "b"))


def test_the_same_file_twice(session):
    @al.io
    def copy(source: al.FileIn, target: al.FileOut): ...

    write("a", "x")
    with pytest.raises(al.DirectionError, match=r"copy\(\): the same object or file"):
        copy("a", "a")


def test_open_from_the_main_program(session, gate):
    @al.io
    def slow(path: al.FileOut, gate):
        gate.pass_through()
        Path(path).write_text("done")

    slow("a.txt", gate)
    timer = threading.Thread(target=gate.open)
    timer.start()
    with al.open("a.txt") as file:
        assert file.read() == "done"
    timer.join()
    with al.open("b.bin", "wb") as file:
        file.write(b"xyz")
        al.fsync(file)
    assert al.wait(read("b.bin")) == "xyz"


def test_open_of_a_file_whose_writer_failed(session):
    @al.io(on_failure="cancel_dependents")
    def bad(path: al.FileOut):
        raise ValueError("disk on fire")

    bad("a.txt")
    with pytest.raises(ValueError, match="disk on fire"):
        al.open("a.txt")
    with pytest.raises(ValueError, match="disk on fire"):
        read("a.txt").result()


def test_durable(session):
    @al.io(durable=True)
    def save(path: al.FileOut, array):
        np.save(path, array)

    save("a.npy", np.arange(5)).result()
    assert np.load("a.npy").tolist() == [0, 1, 2, 3, 4]


def test_fsync_takes_files_and_names(tmp_path):
    with open(tmp_path / "x", "w") as file:
        file.write("x")
        al.fsync(file)
        al.fsync(file)
    al.fsync(tmp_path / "x")
    with pytest.raises(FileNotFoundError):
        al.fsync(tmp_path / "y")


def test_async_tasks_run_together(session, tmp_path):
    @al.io
    async def meet(name, other):
        reader, writer = os.pipe()
        os.close(reader)
        os.close(writer)
        Path(name).touch()
        while not Path(other).exists():
            await asyncio.sleep(0)
        return name

    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    assert al.wait_all([meet(a, b), meet(b, a)]) == [a, b]


def test_async_failures_and_files(session):
    @al.io
    async def save(path: al.FileOut, text):
        await asyncio.sleep(0)
        with al.open(path, "w") as file:
            file.write(text)
            al.fsync(file)

    @al.io(on_failure="cancel_dependents")
    async def bad():
        await asyncio.sleep(0)
        raise ValueError("async and bad")

    save("a", "text")
    assert al.wait(read("a")) == "text"
    with pytest.raises(ValueError, match="async and bad"):
        al.wait(bad())


def test_io_tasks_do_not_take_processors(session, gate, mailbox):
    @al.io
    def block(gate, mailbox):
        mailbox.send("in")
        gate.pass_through()

    blocked = [block(gate, mailbox) for _ in range(4)]
    assert [mailbox.receive() for _ in blocked] == ["in"] * 4
    assert al.wait_all([al.task(abs)(-n) for n in range(4)]) == [0, 1, 2, 3]
    gate.open()
    al.wait_all(blocked)


def test_bytes_are_counted(session):
    write("a", "x" * 100_000).result()
    read("a").result()
    done = session.statistics()
    assert done.bytes_written >= 100_000
    assert done.bytes_read >= 100_000
    assert {one.name: one.io for one in done.functions} == {"write": True, "read": True}


def moved(session, task, *arguments):
    """Bytes that a call of a task, which was called before, has read and written."""
    before = session.statistics()
    al.wait(task(*arguments))
    after = session.statistics()
    return after.bytes_read - before.bytes_read, after.bytes_written - before.bytes_written


@al.io(returns=al.Stream, buffer=1)
def words(path: al.FileIn):
    with open(path) as file:
        yield from file.read().split()


def test_only_what_a_task_moves_is_counted(session):
    def read_words(path):
        return [al.wait(word) for word in words(path)]

    @al.io
    async def copy(source: al.FileIn, target: al.FileOut):
        async with await al.aio.open(source) as file, await al.aio.open(target, "wb") as made:
            await made.write(await file.read())
            await file.copy_to(made, 1000, 0, 0)

    text = "word " * 2000
    al.wait(write("a", "first"))
    assert moved(session, write, "a", text) == (0, 10_000)
    al.wait(read("a"))
    assert moved(session, read, "a") == (10_000, 0)
    al.wait(copy("a", "b"))
    assert moved(session, copy, "a", "b") == (11_000, 11_000)
    assert len(read_words("a")) == 2000
    before = session.statistics()
    assert len(read_words("a")) == 2000
    after = session.statistics()
    assert after.bytes_read - before.bytes_read == 10_000
    assert after.bytes_written == before.bytes_written


STORAGE = """
[[layer]]
name = "fast"
path = "{fast}"
bandwidth = "1GB/s"
capacity = "1GB"

[[layer]]
name = "slow"
path = "{slow}"
bandwidth = "100MB/s"
limit = "2MB/s"
"""


@pytest.fixture
def storage(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
    file = tmp_path / "storage.toml"
    file.write_text(STORAGE.format(fast=tmp_path / "fast", slow=tmp_path / "slow"))
    return file


def test_files_go_to_their_layers(storage, tmp_path):
    @al.io(bandwidth="50MB/s", size="1MB")
    def save(path: al.FileOut):
        Path(path).write_text("here")
        return path

    with al.Session(workers=1, storage=storage):
        place = save("x/a.txt").result()
        assert place.startswith(str(tmp_path / "fast")) and place.endswith("a.txt")
        with al.open("x/a.txt") as file:
            assert file.read() == "here"
        assert al.wait(read("x/a.txt")) == "here"
    assert (tmp_path / "x/a.txt").read_text() == "here"
    assert not os.path.exists(place)


def test_a_constraint_that_no_layer_satisfies(storage):
    @al.io(bandwidth="5GB/s")
    def greedy(): ...

    @al.io(size="2TB")
    def huge(path: al.FileOut): ...

    with al.Session(workers=1, storage=storage):
        with pytest.raises(al.ConstraintError, match=r"greedy\(\): no storage layer .*5 GB/s"):
            greedy()
        greedy_on_none = al.io(bandwidth="1MB/s")(lambda: 1)
        assert al.wait(greedy_on_none()) == 1


def test_an_emulated_limit(storage, tmp_path):
    @al.io
    def save(path: al.FileOut, count):
        with al.open(path, "wb") as file:
            file.write(b"x" * count)
            al.fsync(file)
            with pytest.raises(OSError, match="emulated"):
                file.fileno()

    @al.io
    def load(path: al.FileIn):
        with al.open(path, "rb") as file:
            return len(file.read())

    @al.io
    def text(path: al.FileOut):
        with al.open(path, "w", encoding="utf-8") as file:
            print("one", file=file)
        with al.open(path, "r+") as file:
            return file.read()

    storage.write_text(STORAGE.format(fast="", slow=tmp_path / "slow").split("\n\n")[1])
    with al.Session(workers=1, storage=storage):
        started = time.monotonic()
        path = str(tmp_path / "slow" / "a")
        save(path, 600_000)
        assert al.wait(load(path)) == 600_000
        with al.open(path, "rb") as file:
            assert len(file.read()) == 600_000
        assert time.monotonic() - started > 0.8  # 1.8 MB at 2 MB/s
        assert al.wait(text(str(tmp_path / "slow" / "b"))) == "one\n"


def test_a_limit_that_falls_with_more_writers(tmp_path):
    file = tmp_path / "storage.toml"
    curve = '[{writers = 1, bandwidth = "1GB/s"}, {writers = 2, bandwidth = "1MB/s"}]'
    file.write_text(f'[[layer]]\nname = "a"\npath = "."\nlimit = {curve}\n')
    with al.Session(workers=1, storage=file) as session:
        one, other = (session.native.limiter_of(tmp_path / name) for name in "ab")
        assert one.rate == 10**9
        assert one.acquire(10**9) <= 10**9  # alone: a second at most
        assert other.acquire(10**6) > 1.5 * 10**9  # two of them: another second for a megabyte


def test_a_storage_description_of_compss(tmp_path):
    (tmp_path / "resources.xml").write_text(
        '<ResourcesList><ComputeNode Name="localhost"><Storage><Size>1</Size>'
        "<Bandwidth>450</Bandwidth></Storage></ComputeNode></ResourcesList>"
    )
    (tmp_path / "project.xml").write_text(
        '<Project><ComputeNode Name="localhost"><WorkingDir>.</WorkingDir></ComputeNode></Project>'
    )
    [layer] = _native.read_storage(str(tmp_path / "project.xml"))
    assert (layer.name, layer.bandwidth, layer.capacity) == ("local", 450_000_000, 10**9)
    (tmp_path / "project.xml").write_text("<Project>\n<x></Project>")
    with pytest.raises(al.StorageError, match=r"project\.xml:2:\d+: not valid XML"):
        al.Session(storage=tmp_path / "project.xml")


def test_the_keys_of_a_layer(tmp_path):
    file = tmp_path / "storage.toml"
    file.write_text(
        '[[layer]]\nname = "a"\npath = "."\nprocessors = "0-1,4"\nread_bandwidth = "3MB/s"\n'
        'limit = [{writers = 2, bandwidth = "5MB/s"}]\n'
    )
    [layer] = _native.read_storage(str(file))
    assert (layer.processors, layer.curve) == ([0, 1, 4], [(2, 5_000_000)])
    assert (layer.read_bandwidth, layer.write_bandwidth) == (3_000_000, None)
    assert (layer.bandwidth, layer.limit) == (3_000_000, 5_000_000)


def test_bad_storage_files(tmp_path):
    file = tmp_path / "storage.toml"
    file.write_text('[[layer]]\nname = "a"\npath = "/tmp"\nbandwith = "1MB/s"\n')
    with pytest.raises(al.StorageError, match=r"storage\.toml:4:.*bandwith"):
        al.Session(storage=file)
    file.write_text('[[layer]]\nname = "a"\npath = "/tmp"\nbandwidth = "-1MB/s"\n')
    with pytest.raises(al.StorageError, match=r"storage\.toml:4:"):
        al.Session(storage=file)
    with pytest.raises(al.StorageError, match=r"nowhere\.toml"):
        al.Session(storage=tmp_path / "nowhere.toml")
