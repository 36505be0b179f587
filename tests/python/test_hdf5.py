"""HDF5 programs under the connector: the same bytes, the same results, errors once."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import alongside as al
from alongside.hdf5.later import Promise

EVERYTHING_BEHIND = "1"

PROGRAM = """
import sys, h5py, numpy as np
with h5py.File(sys.argv[1], "w") as file:
    for step in range(3):
        group = file.create_group(f"step{step}")
        group.attrs["time"] = step / 2
        for name in "abc":
            group[name] = np.arange(200_000, dtype="f8") * step
        group.create_dataset("packed", data=np.arange(300_000) % 7, chunks=(1000,), compression=4)
        group["words"] = ["one", "two", "three"] * step + ["end"]
    print(file["step2/b"][100], file["step2/packed"][13], file.driver)
"""


def run(program: str, *arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    settings = {**os.environ, **environment}
    return subprocess.run(
        command, env=settings, capture_output=True, text=True, timeout=100, check=False
    )


def test_a_program_under_the_environment_writes_the_same_bytes(tmp_path: Path) -> None:
    plain = run(PROGRAM, tmp_path / "plain.h5")
    ours = run(PROGRAM, tmp_path / "ours.h5", **al.hdf5.environment())
    behind = {**al.hdf5.environment(), "HDF5_VOL_CONNECTOR": al.hdf5.connector(behind=1)}
    all_ours = run(PROGRAM, tmp_path / "all.h5", **behind)
    for ended in (plain, ours, all_ours):
        assert ended.returncode == 0, ended.stderr
        assert ended.stderr == ""
        assert ended.stdout == "200.0 6 sec2\n"
    expected = (tmp_path / "plain.h5").read_bytes()
    assert (tmp_path / "ours.h5").read_bytes() == expected
    assert (tmp_path / "all.h5").read_bytes() == expected


def test_the_command_runs_a_script_with_it(tmp_path: Path) -> None:
    script = tmp_path / "app.py"
    script.write_text(PROGRAM + "import os; print(os.environ['HDF5_VOL_CONNECTOR'].split()[0])\n")
    command = [sys.executable, "-m", "alongside", "run", "--hdf5", script, tmp_path / "out.h5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == "200.0 6 sec2\nalongside\n"


def test_the_command_prints_what_a_shell_needs(tmp_path: Path) -> None:
    alongside = f"{sys.executable} -m alongside"
    shell = f'eval "$({alongside} hdf5 --limit 32MB)"; exec {sys.executable} -c "$0" out.h5'
    command = ["sh", "-c", shell, PROGRAM]
    ended = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout == "200.0 6 sec2\n"


def test_files_opened_inside_are_written_behind_and_read_back(tmp_path: Path) -> None:
    data = np.random.default_rng(1).random(1_000_000)
    with al.hdf5.enabled():
        file = h5py.File(tmp_path / "a.h5", "w")
    file["x"] = data
    np.testing.assert_array_equal(file["x"][10:20], data[10:20])
    al.hdf5.wait(file)
    file["y"] = data
    al.hdf5.wait(file["y"])
    al.hdf5.wait(tmp_path / "a.h5")
    al.hdf5.wait()
    file.close()
    with h5py.File(tmp_path / "a.h5", "r") as file:
        np.testing.assert_array_equal(file["x"], data)
        np.testing.assert_array_equal(file["y"], data)


#: A file whose descriptors take no writes fails them all: those behind the program later.
BROKEN = """
import os
def is_of(file, fd):
    try:
        return os.path.samestat(os.fstat(fd), os.stat(file.filename))
    except OSError:
        return False
def take_no_writes(file, keep=True):
    fds = [fd for fd in range(64) if is_of(file, fd)]
    unwritable = os.open(file.filename, os.O_RDONLY)
    taken = [os.dup(fd) for fd in fds if keep]  # they keep the file locked, too
    for fd in fds:
        os.dup2(unwritable, fd)
    return lambda: [os.dup2(*pair) for pair in zip(taken, fds)]
"""

FULL = (
    BROKEN
    + """
import sys, h5py, numpy as np
import alongside as al
with al.hdf5.enabled():
    file = h5py.File(sys.argv[1], "w")
file.create_group("run")["small"] = np.arange(1000)
file.flush()
repair = take_no_writes(file)
file["run/large"] = np.zeros(1_000_000)
try:
    file["run/large"][500_000:]
except Exception as error:
    print("read:", error, flush=True)
repair()
for call in CALLS:
    try:
        call()
        print("fine")
    except Exception as error:
        print("told:", error)
"""
)


@pytest.mark.parametrize("call", ["file.flush", "al.hdf5.wait"])
def test_a_write_that_fails_is_told_once_with_what_it_was(tmp_path: Path, call: str) -> None:
    ended = run(FULL.replace("CALLS", f"[{call}, file.flush, file.close]"), tmp_path / "full.h5")
    assert ended.returncode == 0, ended.stderr
    read, *told = ended.stdout.splitlines()
    for line in (read, told[0]):
        assert "full.h5: " in line
        assert "Bad file descriptor (write of a dataset /run/large)" in line
    assert told[1:] == ["fine", "fine"]
    with h5py.File(tmp_path / "full.h5") as file:
        np.testing.assert_array_equal(file["run/small"], np.arange(1000))


def test_what_is_not_closed_is_written_when_the_program_ends(tmp_path: Path) -> None:
    program = PROGRAM.replace(
        'with h5py.File(sys.argv[1], "w") as file:', 'file = h5py.File(sys.argv[1], "w")\nif True:'
    )
    ended = run(program, tmp_path / "left.h5", **al.hdf5.environment())
    assert ended.returncode == 0, ended.stderr
    assert run(PROGRAM, tmp_path / "plain.h5").returncode == 0
    assert (tmp_path / "left.h5").read_bytes() == (tmp_path / "plain.h5").read_bytes()


FORK = """
import os, sys, h5py, numpy as np
data = np.arange(2_000_000)
file = h5py.File(sys.argv[1], "w")
file["before"] = data
child = os.fork()
if child == 0:
    with h5py.File(sys.argv[2], "w") as own:
        own["mine"] = data
        assert (own["mine"][:] == data).all()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
file["after"] = data
file.close()
for name, keys in ((sys.argv[1], ["after", "before"]), (sys.argv[2], ["mine"])):
    with h5py.File(name) as file:
        assert list(file) == keys and all((file[key][:] == data).all() for key in keys)
"""


def test_a_forked_child_writes_by_itself(tmp_path: Path) -> None:
    ended = run(FORK, tmp_path / "a.h5", tmp_path / "b.h5", **al.hdf5.environment())
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("string", "reason"),
    [
        ("alongside limit=lots", 'limit: "lots" is not a size'),
        ("alongside speed=9", 'there is no key "speed"'),
        ("alongside under_vol=0;under_info={", "a { has no }"),
        ("alongside under_vol=477", "there is no connector under_vol=477"),
    ],
)
def test_a_wrong_connector_string_is_one_line_and_an_error_of_hdf5(
    tmp_path: Path, string: str, reason: str
) -> None:
    settings = {**al.hdf5.environment(), "HDF5_VOL_CONNECTOR": string}
    ended = run(PROGRAM, tmp_path / "out.h5", **settings)
    lines = [line for line in ended.stderr.splitlines() if line.startswith("alongside: hdf5:")]
    assert lines, ended.stderr
    assert reason in lines[0]
    assert ended.returncode == 1


def test_a_limit_that_is_no_size_is_refused_with_its_name() -> None:
    with pytest.raises(al.ConstraintError, match='limit: "much" is not a size'):
        al.hdf5.connector(limit="much")


def test_a_limit_of_less_than_a_write_holds_it_back(tmp_path: Path) -> None:
    data = np.arange(3_000_000)
    with al.hdf5.enabled(limit="1MB"), h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        file["y"] = data
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], data)
        np.testing.assert_array_equal(file["y"], data)


def test_without_a_limit_of_copies_the_program_keeps_its_buffers(tmp_path: Path) -> None:
    data = np.arange(3_000_000)
    with al.hdf5.enabled(limit=0, lend=True), h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = data
        file["converted"] = data
        file.create_dataset("narrow", data=data, dtype="i4")
        al.hdf5.wait(file)
        data[:] = -1
    with h5py.File(tmp_path / "a.h5") as file:
        for name in file:
            np.testing.assert_array_equal(file[name], np.arange(3_000_000))


def test_h5py_is_not_lent_buffers_by_a_limit_of_0_alone(tmp_path: Path) -> None:
    with (
        pytest.raises(al.ConstraintError, match="lend=True"),
        al.hdf5.enabled(limit="0"),
    ):
        pass
    # h5py frees the copies that it makes of these, and the next one takes their memory.
    program = """
import sys, h5py, numpy as np
kept = np.arange(4_000_000.0)
with h5py.File(sys.argv[1], "w") as file:
    for name in "abcdef":
        file[name] = kept[::2] + ord(name)
        file[name + "t"] = kept.reshape(2000, 2000).T
    file.flush()
"""
    settings = {**al.hdf5.environment(), "ALONGSIDE_HDF5_LIMIT": "0"}
    ended = run(program, tmp_path / "a.h5", **settings)
    assert ended.returncode == 0
    (line,) = ended.stderr.splitlines()
    assert "a limit of 0 is not taken from a Python program" in line
    kept = np.arange(4_000_000.0)
    with h5py.File(tmp_path / "a.h5") as file:
        for name in "abcdef":
            np.testing.assert_array_equal(file[name], kept[::2] + ord(name))
            np.testing.assert_array_equal(file[name + "t"], kept.reshape(2000, 2000).T)


def test_a_limit_of_the_environment_that_is_no_size_refuses_every_file(tmp_path: Path) -> None:
    settings = {**al.hdf5.environment(), "ALONGSIDE_HDF5_LIMIT": "lots"}
    ended = run(PROGRAM, tmp_path / "out.h5", **settings)
    assert ended.returncode == 1
    (ours,) = [line for line in ended.stderr.splitlines() if line.startswith("alongside: hdf5:")]
    assert 'ALONGSIDE_HDF5_LIMIT cannot be read: "lots" is not a size; write' in ours
    assert "ALONGSIDE_HDF5_LIMIT cannot be read" in ended.stderr.splitlines()[-1]
    assert not (tmp_path / "out.h5").exists()


@pytest.mark.parametrize("mode", ["r", "r+", "a"])
def test_a_file_is_opened_again_with_the_connector_that_it_has(tmp_path: Path, mode: str) -> None:
    data = np.arange(200_000)
    with al.hdf5.enabled():
        first = h5py.File(tmp_path / "a.h5", "w")
    first["x"] = data
    other = h5py.File(tmp_path / "b.h5", "w")
    with h5py.File(tmp_path / "a.h5", mode) as again:
        np.testing.assert_array_equal(again["x"], data)
        if mode != "r":
            again["y"] = data + 1
            np.testing.assert_array_equal(first["y"], data + 1)
    with al.hdf5.enabled(), h5py.File(tmp_path / "b.h5", mode) as again:
        other["z"] = data
        np.testing.assert_array_equal(again["z"], data)
    first.close()
    other.close()
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], data)


def test_a_locked_file_is_refused_as_without_it(tmp_path: Path) -> None:
    import fcntl

    h5py.File(tmp_path / "a.h5", "w").close()
    with al.hdf5.enabled(), h5py.File(tmp_path / "b.h5", "w"):
        pass
    with (tmp_path / "a.h5").open("rb") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        with pytest.raises(BlockingIOError):
            h5py.File(tmp_path / "a.h5", "r+")


def test_a_file_is_waited_for_whatever_its_name_is_by_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with al.hdf5.enabled():
        file = h5py.File("a.h5", "w")
    file["x"] = np.arange(200_000)
    monkeypatch.chdir("/")
    al.hdf5.wait(file)
    assert al.hdf5.test(file)
    (tmp_path / "a.h5").unlink()
    file["y"] = np.arange(200_000)
    al.hdf5.wait(file["y"])
    assert al.hdf5.test()
    assert al.hdf5.prefetch(file["y"]) == file["y"].nbytes
    file.close()


WAITED = (
    FULL.partition("\ntry:")[0]
    + """
small, large = file["run/small"], file["run/large"]
al.hdf5.wait(small)
while not al.hdf5.test(large):
    pass
try:
    al.hdf5.wait(large)
except OSError as error:
    print(error.errno, error)
assert al.hdf5.test() and al.hdf5.wait() is None
sys.stdout.flush()
import os
os._exit(0)  # HDF5 2.0 crashes at exit if the close of a file with open datasets fails
"""
)


def test_a_dataset_is_waited_for_by_itself(tmp_path: Path) -> None:
    ended = run(WAITED, tmp_path / "full.h5")
    assert ended.returncode == 0, ended.stderr
    number, _, line = ended.stdout.partition(" ")
    assert int(number) == errno.EBADF
    assert "(write of a dataset /run/large)" in line


LINKED = (
    BROKEN
    + """
import sys, h5py
import alongside as al
folder = sys.argv[1]
with h5py.File(f"{folder}/linked.h5", "w") as linked:
    linked.create_dataset("x", (1_000_000,), "i8")
with al.hdf5.enabled(behind=sys.argv[2]):
    file = h5py.File(f"{folder}/a.h5", "w")
file["linked"] = h5py.ExternalLink(f"{folder}/linked.h5", "/x")
dataset = file["linked"]
take_no_writes(dataset.file)
try:
    dataset[:] = 1
except OSError:
    print("at once")
os._exit(0)
"""
)


@pytest.mark.parametrize(("behind", "told"), [("64KiB", ""), ("1GiB", "at once\n")])
def test_files_that_hdf5_opens_by_itself_are_written_like_the_one_that_names_them(
    tmp_path: Path, behind: str, told: str
) -> None:
    ended = run(LINKED, tmp_path, behind)
    assert (ended.returncode, ended.stdout) == (0, told), ended.stderr


def test_a_list_for_the_files_of_external_links_finds_the_file_that_is_open(
    tmp_path: Path,
) -> None:
    data = np.arange(1_000_000)
    with al.hdf5.enabled():
        linked = h5py.File(tmp_path / "linked.h5", "w")
        file = h5py.File(tmp_path / "a.h5", "w")
    linked["x"] = data
    linked.flush()
    for name, path in (("root", "/"), ("x", "/x")):
        file[name] = h5py.ExternalLink("linked.h5", path)
    links = h5py.h5p.create(h5py.h5p.LINK_ACCESS)
    files = h5py.h5p.create(h5py.h5p.FILE_ACCESS)
    files.set_fclose_degree(h5py.h5f.CLOSE_STRONG)
    links.set_elink_fapl(files)
    linked["x"][...] = data * 2
    found = h5py.Dataset(h5py.h5o.open(file.id, b"x", links))
    np.testing.assert_array_equal(found, data * 2)
    root = h5py.Group(h5py.h5g.open(file.id, b"root"))
    assert h5py.h5o.exists_by_name(file.id, b"root/x", links)
    linked["y"] = data
    root = h5py.Group(h5py.h5o.open(file.id, b"root", links))
    np.testing.assert_array_equal(root["y"], data)
    root["z"] = data + 1
    np.testing.assert_array_equal(linked["z"], data + 1)
    assert links.get_elink_fapl().get_driver() == h5py.h5fd.SEC2
    del found, root
    file.close()
    linked.close()
    with h5py.File(tmp_path / "linked.h5") as plain:
        assert list(plain) == ["x", "y", "z"]


WATCHED = """
import os, sys, h5py, numpy as np
path = sys.argv[1]
file = h5py.File(path, "w", libver="latest")
data = file.create_dataset("x", data=np.zeros(1_000_000))
file.swmr_mode = True
offset, fd = data.id.get_offset(), os.open(path, os.O_RDONLY)
for look in (lambda: None, lambda: h5py.is_hdf5(path), lambda: h5py.File(path, swmr=True).close()):
    look()
    for number in range(1, 11):
        data[...] = number
        last = np.frombuffer(os.pread(fd, 8, offset + data.nbytes - 8))
        assert last[0] == number, (last, number)
"""


def test_a_file_that_others_read_stays_in_order_when_it_is_looked_at(tmp_path: Path) -> None:
    ended = run(WATCHED, tmp_path / "a.h5", **al.hdf5.environment())
    assert ended.returncode == 0, ended.stderr


CHILD = """
import multiprocessing, sys
path, how, start = sys.argv[1:]
def child():
    import h5py
    global file
    file = h5py.File(path, "r+")
    file["x"][...] = 1
def enabled():
    import alongside as al
    with al.hdf5.enabled():
        child()
if __name__ == "__main__":
    if start == "fork":  # what the parent has asked for holds for itself
        import h5py
        h5py.File(path + ".before", "w").close()
    process = multiprocessing.get_context(start).Process(target=globals()[how])
    process.start()
    process.join()
    assert process.exitcode == 0
"""


@pytest.mark.parametrize("start", ["fork", "forkserver", "spawn"])
@pytest.mark.parametrize("how", ["run", "environment", "enabled"])
def test_a_process_of_multiprocessing_waits_at_its_end(
    tmp_path: Path, how: str, start: str
) -> None:
    script = tmp_path / "app.py"
    script.write_text(CHILD)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.zeros(4_000_000)
    command = [sys.executable, str(script)]
    if how == "run":
        command = [sys.executable, "-m", "alongside", "run", "--hdf5", str(script)]
    variables = al.hdf5.environment() if how == "environment" else {}
    command += [str(tmp_path / "a.h5"), "enabled" if how == "enabled" else "child", start]
    ended = subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, **variables},
    )
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    with h5py.File(tmp_path / "a.h5") as file:
        assert (file["x"][...] == 1).all()


TOO_LONG = """
import resource, sys, h5py, numpy as np
import alongside as al
with al.hdf5.enabled():
    file = h5py.File(sys.argv[1], "w")
file["x"] = np.arange(500_000)
file.flush()
resource.setrlimit(resource.RLIMIT_FSIZE, (6_000_000, resource.RLIM_INFINITY))
try:
    file["y"] = np.zeros(2_000_000)
    sys.exit("it was taken")
except OSError:
    file.close()
"""


def test_what_is_longer_than_files_may_be_is_refused_by_the_call(tmp_path: Path) -> None:
    ended = run(TOO_LONG, tmp_path / "a.h5")
    assert ended.returncode == 0, ended.stderr
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], np.arange(500_000))


SIDE_BY_SIDE = """
import threading, sys, h5py
import alongside as al
def low():
    for _ in range(300):
        h5py.h5f.create(sys.argv[1].encode()).close()
def high():
    for _ in range(300):
        h5py.File(sys.argv[2], "w").close()
with al.hdf5.enabled():
    threads = [threading.Thread(target=body) for body in (low, high)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_files_are_looked_for_while_other_threads_close_theirs(tmp_path: Path) -> None:
    ended = run(SIDE_BY_SIDE, tmp_path / "a.h5", str(tmp_path / "b.h5"))
    assert ended.returncode == 0 and not ended.stderr, ended.stderr


def test_other_plugins_are_found_where_hdf5_looks_by_itself() -> None:
    by_default = run(FOLDERS)
    ours = run(FOLDERS, **al.hdf5.environment({}))
    given = run(FOLDERS, **al.hdf5.environment({"HDF5_PLUGIN_PATH": "/one:/two"}))
    assert set(by_default.stdout.split()) < set(ours.stdout.split())
    assert given.stdout.split() == [str(al.hdf5.FOLDER), "/one", "/two"]


FOLDERS = """
from h5py import h5pl
for number in range(h5pl.size()):
    print(h5pl.get(number).decode())
"""

NO_MEMORY = """
import resource, sys, h5py, numpy as np
import alongside as al
data = np.arange(20_000_000)
with al.hdf5.enabled():
    file = h5py.File(sys.argv[1], "w")
file["small"] = data[:100_000]
file.flush()
pages = int(open("/proc/self/statm").read().split()[0])
limit = pages * resource.getpagesize() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
file["x"] = data
file.close()
"""


@pytest.mark.parametrize("spare", [100_000, 20_000_000])
def test_without_memory_for_copies_a_write_is_over_when_it_returns(
    tmp_path: Path, spare: int
) -> None:
    ended = run(NO_MEMORY, tmp_path / "a.h5", str(spare))
    assert ended.returncode == 0, ended.stderr
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["x"], np.arange(20_000_000))


def test_a_promised_file_can_be_opened_again_and_is_not_kept_by_a_task_that_is_over(
    tmp_path: Path,
) -> None:
    data = np.arange(1_000_000)
    path = tmp_path / "a.h5"
    with Promise([str(path)]):
        with al.hdf5.enabled(), h5py.File(path, "w") as file:
            file["x"] = data
        with h5py.File(path, "r", driver="core", backing_store=False) as file:
            np.testing.assert_array_equal(file["x"], data)
    with Promise([str(path)]), al.hdf5.enabled():
        file = h5py.File(path, "w")
    file["x"] = data
    file.close()
    other = "import h5py, sys; print(h5py.File(sys.argv[1], 'r+')['x'][5])"
    assert run(other, path).stdout == "5\n"


def test_files_of_other_drivers_have_nothing_to_wait_for() -> None:
    with al.hdf5.enabled(), h5py.File("nowhere", "w", driver="core", backing_store=False) as file:
        file["x"] = np.zeros(100_000)
        al.hdf5.wait(file)
        assert al.hdf5.test(file["x"])
        assert al.hdf5.prefetch(file["x"]) == 0


@pytest.mark.parametrize("layout", [{}, {"chunks": (64, 64)}, {"chunks": True, "compression": 1}])
def test_a_dataset_that_is_read_ahead_is_the_same(tmp_path: Path, layout: dict[str, Any]) -> None:
    data = np.random.default_rng(2).integers(0, 99, (1000, 1000))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=data, **layout)
        file.create_dataset("empty", (1000, 1000), "i8", **layout)
        assert al.hdf5.prefetch(file["x"]) == 0
    with al.hdf5.enabled(), h5py.File(tmp_path / "a.h5", "r+") as file:
        stored = file["x"].id.get_storage_size()
        assert al.hdf5.prefetch(file["x"]) == stored
        assert al.hdf5.prefetch(file["empty"]) == 0
        np.testing.assert_array_equal(file["x"][...], data)
        assert al.hdf5.prefetch(file["x"]) == stored
        file["x"][500] = data[500] = -1
        np.testing.assert_array_equal(file["x"][...], data)
        assert al.hdf5.prefetch(file["x"]) == file["x"].id.get_storage_size()
        np.testing.assert_array_equal(file["x"][:10], data[:10])
        np.testing.assert_array_equal(file["x"][10:], data[10:])
    with al.hdf5.enabled(limit="1MB"), h5py.File(tmp_path / "a.h5") as file:
        assert al.hdf5.prefetch(file["x"]) <= 1_000_000 or not layout
        np.testing.assert_array_equal(file["x"][...], data)


LAYOUTS = [
    {},
    {"chunks": (7, 5)},
    {"chunks": (7, 5), "compression": "gzip"},
    {"chunks": (40, 50), "fillvalue": 9},
    {"maxshape": (None, 50)},
]


def _slice(length: int) -> st.SearchStrategy[slice]:
    bounds = st.lists(st.integers(0, length), min_size=2, max_size=2, unique=True).map(sorted)
    return st.builds(lambda two, step: slice(two[0], two[1], step), bounds, st.integers(1, 3))


def _operations() -> st.SearchStrategy[list[tuple[object, ...]]]:
    where = st.tuples(_slice(40), _slice(50))
    name = st.integers(0, 2)
    operation = st.one_of(
        st.tuples(st.just("create"), name, st.integers(0, len(LAYOUTS) - 1)),
        st.tuples(st.just("write"), name, where, st.integers(-100, 100)),
        st.tuples(st.just("read"), name, where),
        st.tuples(st.just("attribute"), name, st.text("abc", max_size=5)),
        st.tuples(st.just("prefetch"), name),
        st.tuples(st.just("flush")),
        st.tuples(st.just("reopen")),
        st.tuples(st.just("delete"), name),
        st.tuples(st.just("resize"), name, st.integers(1, 60)),
    )
    return st.lists(operation, max_size=25)


def perform(path: Path, operations: list[tuple[object, ...]]) -> list[object]:
    """Runs operations on a file; what the program saw."""
    seen: list[object] = []
    file = h5py.File(path, "w")
    try:
        file = _perform(file, path, operations, seen)
        seen.extend((name, file[name][...].tolist(), dict(file[name].attrs)) for name in file)
    finally:
        file.close()
    return seen


def _perform(
    file: h5py.File, path: Path, operations: list[tuple[object, ...]], seen: list[object]
) -> h5py.File:
    for kind, *arguments in operations:
        name = f"d{arguments[0]}" if arguments else ""
        if kind == "create" and name not in file:
            file.create_dataset(name, (40, 50), "i8", **LAYOUTS[arguments[1]])
        elif kind == "flush":
            file.flush()
        elif kind == "reopen":
            file.close()
            file = h5py.File(path, "r+")
        elif name not in file:
            continue
        elif kind == "write":
            rows, columns = arguments[1]
            if file[name].shape[0] >= rows.stop:
                shape = file[name][rows, columns].shape
                values = np.arange(shape[0] * shape[1]).reshape(shape) + arguments[2]
                file[name][rows, columns] = values
        elif kind == "read":
            rows, columns = arguments[1]
            seen.append(file[name][rows, columns].tolist())
        elif kind == "prefetch":
            al.hdf5.prefetch(file[name])
        elif kind == "attribute":
            file[name].attrs["text"] = arguments[1]
        elif kind == "delete":
            del file[name]
        elif kind == "resize" and file[name].maxshape[0] is None:
            file[name].resize(arguments[1], axis=0)
    return file


@settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(operations=_operations())
def test_any_program_sees_and_leaves_the_same(
    tmp_path: Path, operations: list[tuple[object, ...]]
) -> None:
    expected = perform(tmp_path / "plain.h5", operations)
    with al.hdf5.enabled(behind=EVERYTHING_BEHIND):
        seen = perform(tmp_path / "ours.h5", operations)
    assert seen == expected
    assert (tmp_path / "ours.h5").read_bytes() == (tmp_path / "plain.h5").read_bytes()


TASKS = (
    BROKEN
    + """
import sys, h5py, numpy as np, alongside as al
ROWS = 4_000_000

@al.io
def make(path: al.FileOut, seed, broken=False, released=False):
    with h5py.File(path, "w") as file:
        if broken:
            take_no_writes(file, keep=False)
        file["a"] = np.arange(ROWS) * seed
    if released:
        al.release(path)

@al.io
def change(path: al.FileInOut):
    with h5py.File(path, "r+") as file:
        file["a"][0] = 77
    with h5py.File(path, "r+") as file:
        file["b"] = file["a"][:ROWS // 2]

@al.task
def look(path: al.FileIn):
    with h5py.File(path) as file:
        return [int(one[...].sum()) for one in file.values()]
"""
)


def test_dependents_of_a_task_see_the_whole_file_that_it_closed(tmp_path: Path) -> None:
    program = TASKS + (
        "with al.Session(workers=1):\n"
        "    paths = [f'{sys.argv[1]}/{seed}.h5' for seed in range(1, 5)]\n"
        "    for seed, path in enumerate(paths, 1):\n"
        "        make(path, seed, released=seed % 2 == 0)\n"
        "    change(paths[0])\n"
        "    print([look(path).result() for path in paths])\n"
    )
    whole = [sum(range(4_000_000)) * seed for seed in range(1, 5)]
    changed = [whole[0] + 77, sum(range(2_000_000)) + 77]
    ended = run(program, tmp_path, **al.hdf5.environment())
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"{[changed, *([one] for one in whole[1:])]}\n"


def test_a_task_whose_closed_file_could_not_be_written_fails(tmp_path: Path) -> None:
    program = TASKS + (
        "with al.Session(workers=1):\n"
        "    make(sys.argv[1], 1, broken=True)\n"
        "    print(look(sys.argv[1]).result())\n"
    )
    ended = run(program, tmp_path / "out.h5", **al.hdf5.environment())
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "task 'make' failed" in ended.stderr
    assert "were not written: EBADF: Bad file descriptor (write of a dataset /a)" in ended.stderr
