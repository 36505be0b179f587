"""Tests of the slow disk in a file: what is limited, and that nothing is left of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from bench.common import slow_disk
from bench.common.slow_disk import SlowDiskUnavailableError, kernel_disk

BANDWIDTH = 10_000_000
SIZE = 6 << 20
LIMITED_S = 0.75 * SIZE / BANDWIDTH  # a limit has credit for a moment
ROOM = 64 << 20
TIMEOUT_S = 60.0

HOLD = """
import sys, time
from pathlib import Path
from bench.common.slow_disk import kernel_disk
with kernel_disk(Path(sys.argv[1]), 10_000_000, 1 << 20) as disk:
    print(disk.device, flush=True)
    time.sleep(60)
"""


@pytest.fixture(scope="module")
def disk(tmp_path_factory):
    """The disk, where there can be one."""
    folder = tmp_path_factory.mktemp("slow")
    try:
        with kernel_disk(folder, BANDWIDTH, ROOM) as made:
            yield made
    except SlowDiskUnavailableError as reason:
        pytest.skip(f"there is no slow disk here: {reason}")


def rules():
    """Of all groups and ways: device and bandwidth."""
    return {
        line
        for rule in slow_disk.RULES
        for line in (slow_disk.GROUPS / rule).read_text().splitlines()
    }


def limited():
    return {rule.split()[0] for rule in rules()}


def devices():
    return subprocess.run(["losetup", "-a"], capture_output=True, text=True, check=True).stdout


def seconds(action):
    begun = time.perf_counter()
    action()
    return time.perf_counter() - begun


@pytest.mark.parametrize("flush", [True, False])
def test_writing_is_limited_whoever_flushes(disk, flush):
    assert slow_disk.rate(disk, SIZE, flush) < SIZE / LIMITED_S


def test_processes_share_the_limit(disk):
    write = "import os, sys; f = open(sys.argv[1], 'wb'); f.write(bytes(3 << 20)); os.fsync(f)"

    def both():
        started = [
            subprocess.Popen([sys.executable, "-c", write, str(disk.folder / name)])
            for name in ("one", "two")
        ]
        assert [one.wait(TIMEOUT_S) for one in started] == [0, 0]

    assert seconds(both) > LIMITED_S


def test_reading_is_limited_once_a_file_is_forgotten(disk):
    path = disk.folder / "read"
    with disk.at_full_speed():
        path.write_bytes(os.urandom(SIZE))
        disk.forget(path)
    assert seconds(path.read_bytes) > LIMITED_S


def test_at_full_speed_nothing_is_limited(disk):
    with disk.at_full_speed():
        assert disk.device not in limited()
    assert f"{disk.device} {BANDWIDTH}" in rules()
    disk.set_bandwidth(2 * BANDWIDTH)
    assert f"{disk.device} {2 * BANDWIDTH}" in rules()
    disk.set_bandwidth(BANDWIDTH)


def test_it_says_what_it_is(disk):
    assert disk.limit is None
    assert disk.words.startswith("10.0 MB/s, by the kernel: ext4 on a loop device")


def assert_gone(folder, device):
    assert str(folder) not in devices()
    assert device not in limited()
    assert list(folder.iterdir()) == []


def test_nothing_is_left_after_an_error(disk, tmp_path):
    with pytest.raises(KeyboardInterrupt), kernel_disk(tmp_path, BANDWIDTH, ROOM) as made:
        raise KeyboardInterrupt
    assert_gone(tmp_path, made.device)


def hold(folder):
    command = [sys.executable, "-c", HOLD, str(folder)]
    held = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    return held, held.stdout.readline().strip()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_nothing_is_left_after_a_signal(disk, tmp_path, number):
    held, device = hold(tmp_path)
    assert device in limited()
    held.send_signal(number)
    held.communicate(timeout=TIMEOUT_S)
    assert held.returncode != 0
    assert_gone(tmp_path, device)


def test_what_a_killed_run_leaves_the_next_one_removes(disk, tmp_path):
    held, device = hold(tmp_path)
    held.kill()
    held.communicate(timeout=TIMEOUT_S)
    assert str(tmp_path) in devices()
    with kernel_disk(tmp_path, BANDWIDTH, ROOM):
        assert devices().count(str(tmp_path)) == 1
    assert_gone(tmp_path, device)


def test_a_limit_that_does_not_hold_is_refused(disk, tmp_path, monkeypatch):
    monkeypatch.setattr(slow_disk.SlowDisk, "_rule", lambda self, bandwidth: None)
    with (
        pytest.raises(SlowDiskUnavailableError, match="does not hold"),
        kernel_disk(tmp_path, BANDWIDTH, ROOM),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_without_root_it_is_a_folder_for_the_software_throttle(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with slow_disk.slow_disk(tmp_path, BANDWIDTH, ROOM) as made:
        assert made.folder.is_dir()
        assert made.limit == BANDWIDTH
        assert "software throttle" in made.words
        with made.at_full_speed():
            pass
    assert not made.folder.exists()
    assert "not root" in capsys.readouterr().err
