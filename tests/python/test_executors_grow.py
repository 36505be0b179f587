"""I/O executors come with need, as many as the bandwidth lets run at once, and go."""

import os
import threading

import alongside as al

STORAGE = """
[[layer]]
name = "disk"
path = "disk"
bandwidth = "200MB/s"
"""
AT_ONCE = 40
IDLE_MAX = 8


@al.io(bandwidth="5MB/s")
def meet(path: al.FileOut, name):
    """Ends when as many as the bandwidth lets run at once do."""
    barrier(name).wait(60)
    with al.open(path, "wb") as file:
        file.write(b"x")
    return True


@al.io
def count(path: al.FileOut, name, at_most):
    """How many ran at once when this began; holds until the next one or nobody comes."""
    with al.open(path, "wb") as file:
        file.write(b"x")
    state = running(name)
    with state["lock"]:
        state["now"] += 1
        seen = state["now"]
    if seen < at_most:
        state["full"].wait(60)
    else:
        state["full"].set()
    with state["lock"]:
        state["now"] -= 1
    return seen


@al.io
def idle_threads():
    """How many threads of the I/O worker there are."""
    return sum(thread.name == "alongside-io" for thread in threading.enumerate())


def shared():
    """What the tasks of the I/O worker share."""
    import builtins

    return builtins.__dict__.setdefault("test_executors_grow", {})


def barrier(name):
    """The barrier of this name in the I/O worker."""
    return shared().setdefault(name, threading.Barrier(AT_ONCE))


def running(name):
    """The account of this name in the I/O worker."""
    new = {"lock": threading.Lock(), "now": 0, "full": threading.Event()}
    return shared().setdefault(name, new)


def storage_of(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    file = tmp_path / "storage.toml"
    file.write_text(STORAGE)
    return file


def test_as_many_as_the_bandwidth_lets_run_at_once(tmp_path, monkeypatch):
    storage = storage_of(tmp_path, monkeypatch)
    with al.Session(workers=1, storage=storage):
        met = [meet(f"file-{number}", "all") for number in range(AT_ONCE)]
        assert all(al.wait(one) for one in met)
        while al.wait(idle_threads()) > IDLE_MAX + 1:
            pass  # Those that have just ended go one by one.


def test_without_a_bandwidth_there_are_no_more(tmp_path, monkeypatch):
    storage = storage_of(tmp_path, monkeypatch)
    free = max(8, 4 * len(os.sched_getaffinity(0)))
    with al.Session(workers=1, storage=storage):
        tasks = [count(f"file-{number}", "free", free) for number in range(3 * free)]
        assert max(al.wait(task) for task in tasks) == free


def test_a_number_that_was_asked_for_holds_for_all(tmp_path, monkeypatch):
    storage = storage_of(tmp_path, monkeypatch)
    limited = al.io(bandwidth="5MB/s")(count.__wrapped__)
    with al.Session(workers=1, io_executors=4, storage=storage):
        tasks = [limited(f"file-{number}", "asked", 4) for number in range(16)]
        assert max(al.wait(task) for task in tasks) == 4
