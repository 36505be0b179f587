"""`bandwidth="auto"` and `"adaptive"`: refusals, epochs, what is kept, and that no byte is lost."""

import json
import os
import subprocess
import sys
import threading

import pytest

import alongside as al
from alongside import _native
from alongside.testing import Gate

CURVE = """
[[layer]]
name = "slow"
path = "slow"
bandwidth = "80MB/s"
limit = [
    { writers = 1, bandwidth = "40MB/s" },
    { writers = 2, bandwidth = "80MB/s" },
    { writers = 8, bandwidth = "20MB/s" },
]
"""
BYTES = 400_000
EPOCHS = (8, 4, 2, 1)
"""How many tasks the epochs from 10 to 80 MB/s take, on a layer of 80 MB/s."""

barriers: dict[int, threading.Barrier] = {}
"""In the I/O worker: where the tasks of an epoch meet."""


@pytest.fixture
def storage(tmp_path, monkeypatch):
    """A layer that is congested by more than two writers, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "slow").mkdir()
    file = tmp_path / "storage.toml"
    file.write_text(CURVE)
    return file


def meet(epoch):
    """Waits until all tasks of an epoch are here."""
    if epoch is not None:
        barrier = barriers.setdefault(epoch, threading.Barrier(EPOCHS[epoch]))
        barrier.wait(timeout=60)


def writer(bandwidth):
    @al.io(bandwidth=bandwidth, name="save")
    def save(path: al.FileOut, number, epoch=None, after=None):
        meet(epoch)
        with al.open(path, "wb") as file:
            file.write(bytes([number % 251]) * BYTES)
        meet(epoch)

    return save


@al.task
def opened(gate):
    gate.pass_through()


def run(storage, bandwidth, tasks, epochs=(), **options):
    """Writes files under a session, all of them ready at once; its statistics.

    The tasks of `epochs` begin and end together, however busy the machine is: tasks that begin
    apart on this layer end before the others are there, and the epoch is rightly told as one of
    fewer.
    """
    save = writer(bandwidth)
    epoch_of = [epoch for epoch in epochs for _ in range(EPOCHS[epoch])]
    epoch_of += [None] * (tasks - len(epoch_of))
    gate = Gate("gate")
    with al.Session(workers=1, io_executors=8, storage=storage, **options) as session:
        after = opened(gate)
        for number in range(tasks):
            save(f"file-{number}", number, epoch_of[number], after)
        gate.open()
    for number in range(tasks):
        with open(f"file-{number}", "rb") as file:
            assert file.read() == bytes([number % 251]) * BYTES
    return session.statistics()


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("auto(3MB,2MB,2)", "min is more than max"),
        ("auto(1MB,2MB,1)", "above 1"),
        ("auto(0,2MB,2)", "more than 0"),
        ("auto(-1MB,2MB,2)", "negative"),
        ("auto(1MB)", "write"),
        ("automatic", "write"),
        ("adaptive!", "write"),
    ],
)
def test_what_makes_no_sense_is_refused_at_the_decorator(text, reason):
    with pytest.raises(al.ConstraintError, match=reason) as refused:

        @al.io(bandwidth=text)
        def checkpoint(path: al.FileOut):
            """Never called."""

    assert "checkpoint" in str(refused.value)


def test_bounds_above_any_layer_are_refused_by_the_call(storage):
    save = writer("auto(1MB/s,1GB/s,2)")
    with al.Session(workers=1, storage=storage), pytest.raises(al.ConstraintError, match="slow"):
        save("file", 1)


def test_bounded_learning_tries_its_values_and_chooses_one(storage):
    (tuned,) = run(storage, "auto(10MB/s,80MB/s,2)", 60, range(4)).tuned
    assert (tuned.function, tuned.layer, tuned.mode) == ("save", "slow", "auto")
    tried = [epoch[0] for epoch in tuned.epochs]
    assert tried == [10_000_000, 20_000_000, 40_000_000, 80_000_000]
    assert [epoch[1] for epoch in tuned.epochs] == [8, 4, 2, 1], "the most at once"
    assert all(epoch[2] == epoch[1] for epoch in tuned.epochs), "as many ended"
    assert tuned.state == "chosen"
    assert tuned.constraint in tried


def test_unbounded_learning_begins_with_a_share_for_each_executor(storage):
    (tuned,) = run(storage, "auto", 60, range(1)).tuned
    assert tuned.epochs[0][0] == 80_000_000 // 8
    for number, after in enumerate(tuned.epochs[1:], 1):
        before, lowest = tuned.epochs[number - 1], min(one[0] for one in tuned.epochs[:number])
        few = after[0] > 2 * before[0] and after[1] < after[2]  # not all executors were up
        tries_more = after[0] < lowest  # the first had few, and all are up now
        assert after[0] == 2 * before[0] or few or tries_more
    assert tuned.state == "chosen"


def test_what_was_learned_is_not_learned_again(storage, tmp_path):
    kept = tmp_path / "learned.json"
    (first,) = run(storage, "auto(10MB/s,80MB/s,2)", 60, learned=kept).tuned
    content = json.loads(kept.read_text())
    (learned,) = content["learned"]
    assert (learned["function"], learned["layer"]) == ("save", "slow")
    assert [line["constraint"] for line in learned["registry"]] == [e[0] for e in first.registry]
    (second,) = run(storage, "auto(10MB/s,80MB/s,2)", 20, learned=kept).tuned
    assert second.epochs == []
    assert second.state == "chosen"
    assert second.registry[0][:2] == first.registry[0][:2]


@pytest.mark.parametrize(
    "content",
    ["", "[]", '{"format": 2, "learned": []}', '{"format": 1, "learned": [{"function": "f"}]}'],
)
def test_a_file_that_was_not_learned_is_refused(tmp_path, content):
    file = tmp_path / "learned.json"
    file.write_text(content)
    with pytest.raises(al.StorageError, match=r"learned\.json"):
        al.Session(workers=1, learned=file)


def test_an_error_of_the_program_is_not_hidden_by_what_cannot_be_kept(storage, tmp_path):
    @al.task
    def fails():
        raise KeyError("mine")

    with (
        pytest.warns(RuntimeWarning, match="cannot be written"),
        pytest.raises(al.TaskError, match="mine"),
        al.Session(workers=1, learned=tmp_path / "nowhere" / "learned.json"),
    ):
        fails()


def test_what_cannot_be_written_leaves_nothing_behind(tmp_path):
    kept = tmp_path / "learned.json"
    kept.mkdir()
    with pytest.raises(al.StorageError, match="cannot be written"):
        _native.write_learned(str(kept), [("save", 3, "slow", [(1, 1, 1, 1, 1)])])
    assert os.listdir(tmp_path) == ["learned.json"]


def test_an_adaptive_window_stays_within_the_executors(storage):
    (tuned,) = run(storage, "adaptive", 80).tuned
    assert (tuned.mode, tuned.state) == ("adaptive", "window")
    assert 1 <= tuned.tasks <= 8
    assert tuned.rate > 1_000_000, "it knows what was written"


def test_built_in_tasks_are_tuned_too(storage):
    with al.Session(workers=1, storage=storage) as session:
        for number in range(40):
            al.write(f"file-{number}", bytes([number]) * BYTES, bandwidth="adaptive")
    (tuned,) = session.statistics().tuned
    assert tuned.function == "write"
    for number in range(40):
        with open(f"file-{number}", "rb") as file:
            assert file.read() == bytes([number]) * BYTES


def test_the_summary_tells_what_was_chosen(storage, tmp_path):
    (tmp_path / "app.py").write_text(
        "import alongside as al\n"
        "@al.io(bandwidth='auto(20MB/s,80MB/s,2)')\n"
        "def save(path: al.FileOut):\n"
        "    with al.open(path, 'wb') as file:\n"
        "        file.write(bytes(200_000))\n"
        "for number in range(20):\n"
        "    save(f'file-{number}')\n"
    )
    command = [sys.executable, "-m", "alongside", "run", "--storage", "storage.toml"]
    command += ["--learned", "learned.json", "app.py"]
    for epochs in (3, 0):
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=90)
        (line,) = (line for line in done.stderr.splitlines() if "save on slow" in line)
        assert f"after {epochs} epochs" in line
