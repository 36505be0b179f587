"""Files of the event loop."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import threading
from pathlib import Path

import numpy as np
import pytest

import alongside as al
from alongside import aio


@pytest.fixture(params=["io_uring", "threads"])
def engine(request, monkeypatch):
    if request.param == "threads":
        monkeypatch.setenv("ALONGSIDE_ENGINE", "threads")
    return request.param


def test_a_file_that_does_not_tell_its_size_is_read_to_its_end(engine):
    async def program():
        async with await al.aio.open("/proc/version") as file:
            assert await file.size() == 0
            first = await file.read(5)
            return first + await file.read(), await file.read()

    assert asyncio.run(program()) == (Path("/proc/version").read_bytes(), b"")


def test_what_an_operation_kept_may_use_the_engine_when_it_goes(engine, program):
    text = """
        import os
        import select
        from alongside import _native

        class Kept(bytearray):
            def __del__(self):
                print("gone", ring.fileno() > 0)

        ring = _native.Ring()
        number = ring.write(os.open("file", os.O_WRONLY | os.O_CREAT), Kept(b"data"), 0)
        select.select([ring.fileno()], [], [])
        assert ring.poll() == [(number, 4, 0)]
        """
    assert program(text, check=0).stdout == "gone True\n"


def test_what_is_written_is_read(engine, tmp_path):
    path = tmp_path / "file"
    data = os.urandom(3_000_001)

    async def program():
        async with await al.aio.open(path, "wb") as file:
            assert await file.write(data[:1000]) == 1000
            assert await file.write(data[1000:]) == len(data) - 1000
            await file.fsync()
            assert await file.size() == len(data)
        async with await al.aio.open(path) as file:
            assert await file.read(10) == data[:10]
            assert file.tell() == 10
            assert await file.pread(100, 2_000_000) == data[2_000_000:2_000_100]
            assert await file.read() == data[10:]
            assert await file.read() == b""

    asyncio.run(program())
    assert path.read_bytes() == data


def test_arrays_are_read_in_place(engine, tmp_path):
    path = tmp_path / "array"
    array = np.arange(100_000, dtype=np.float64)

    async def program():
        async with await al.aio.open(path, "w+b") as file:
            await file.write(array)
            again = np.zeros_like(array)
            assert await file.pread_into(again, 0) == array.nbytes
            return again

    assert np.array_equal(asyncio.run(program()), array)


def test_many_operations_are_under_way_without_a_thread_each(engine, tmp_path):
    path = tmp_path / "file"
    count = 500

    async def program():
        async with await al.aio.open(path, "w+b") as file:
            before = len(os.listdir("/proc/self/task"))
            writes = [file.pwrite(bytes([i % 256]) * 4096, 4096 * i) for i in range(count)]
            assert await asyncio.gather(*writes) == [4096] * count
            # Those of the kernel and an engine too, which would still be there.
            return threading.active_count(), len(os.listdir("/proc/self/task")) - before

    threads, begun = asyncio.run(program())
    assert threads < 10
    assert begun <= 32, "as many as the pool has where there is no ring"
    assert path.read_bytes() == b"".join(bytes([i % 256]) * 4096 for i in range(count))


def test_direct_files_take_any_size_and_offset(tmp_path):
    path = tmp_path / "file"

    async def program():
        async with await al.aio.open(path, "w+b", direct=True) as file:
            await file.pwrite(b"x" * 10_001, 3)
            return await file.pread(20_000, 0)

    try:
        assert asyncio.run(program()) == b"\0\0\0" + b"x" * 10_001
    except OSError as error:
        if error.errno == errno.EINVAL:
            pytest.skip("this file system has no O_DIRECT")
        raise


def test_errors_are_those_of_the_system(engine, tmp_path):
    async def program():
        with pytest.raises(FileNotFoundError, match="nothing"):
            await al.aio.open(tmp_path / "nothing")
        with pytest.raises(ValueError, match="for bytes"):
            await al.aio.open(tmp_path / "nothing", "w")
        async with await al.aio.open(tmp_path / "file", "wb") as file:
            with pytest.raises(OSError, match="file") as raised:
                await file.pread(1, 0)
            assert raised.value.errno == errno.EBADF
        with pytest.raises(ValueError, match="closed"):
            await file.write(b"x")
        await file.close()
        async with await al.aio.open("/dev/full", "r+b") as file:
            with pytest.raises(OSError) as raised:
                await file.pwrite(b"x", 0)
            assert raised.value.errno == errno.ENOSPC

    asyncio.run(program())


@contextlib.contextmanager
def nothing_is_told():
    """What is complete meanwhile the loop is told afterwards."""
    loop, engine = asyncio.get_running_loop(), aio._here()  # noqa: SLF001
    loop.remove_reader(engine.ring.fileno())
    try:
        yield
    finally:
        loop.add_reader(engine.ring.fileno(), engine.completed)


@pytest.mark.parametrize("times", [1, 2])
def test_a_cancelled_read_keeps_its_memory_until_the_end(tmp_path, times):
    (tmp_path / "file").write_bytes(b"late")

    async def program():
        async with await al.aio.open(tmp_path / "file") as file:
            buffer = bytearray(4)
            with nothing_is_told():
                task = asyncio.ensure_future(file.pread_into(buffer, 0))
                for _ in range(times):
                    await asyncio.sleep(0)
                    task.cancel()
                await asyncio.sleep(0)
                assert not task.done()
                with pytest.raises(BufferError):
                    buffer.extend(b"a bytearray cannot grow while somebody holds its memory")
            with pytest.raises(asyncio.CancelledError):
                await task
            assert buffer == b"late"
            buffer.extend(b"nobody holds it any more")
            return await file.pread(4, 0)

    assert asyncio.run(program()) == b"late"


def test_in_a_task(tmp_path):
    @al.io
    async def double(source: al.FileIn, target: al.FileOut):
        async with await al.aio.open(source) as file:
            data = await file.read()
        async with await al.aio.open(target, "wb") as file:
            await file.write(data + data)
        return len(data)

    (tmp_path / "in").write_bytes(b"abc")
    with al.Session(workers=1):
        assert double(tmp_path / "in", tmp_path / "out").result(timeout=30) == 3
    assert (tmp_path / "out").read_bytes() == b"abcabc"


def test_an_opening_that_is_cancelled_leaves_no_descriptor(engine, tmp_path):
    def descriptors():
        return [
            link
            for name in os.listdir("/proc/self/fd")
            if (link := _link(f"/proc/self/fd/{name}")) == str(tmp_path / "file")
        ]

    async def program():
        for _ in range(20):
            opening = asyncio.ensure_future(al.aio.open(tmp_path / "file", "wb"))
            await asyncio.sleep(0)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        assert descriptors() == []

    asyncio.run(program())


def _link(path):
    try:
        return os.readlink(path)
    except OSError:
        return None
