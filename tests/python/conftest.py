"""Fixtures of all Python tests: sessions, gates, waiting, and a place to work in."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import alongside as al
from alongside.testing import Gate, Mailbox

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # So it is in the background of a shell script; programs under test would ignore it too.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def session(tmp_path, monkeypatch):
    """A session with two compute workers, in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=2, io_executors=4) as session:
        yield session


@pytest.fixture
def gate(tmp_path):
    """A closed gate, opened at the end at the latest."""
    gate = Gate(tmp_path / "gate")
    yield gate
    gate.open()


@pytest.fixture
def mailbox(tmp_path):
    """Lines from task bodies."""
    box = Mailbox(tmp_path / "mailbox")
    yield box
    box.close()


@pytest.fixture
def until():
    """Waits for what nobody tells: `until(lambda: ...)`, for a minute at most."""

    def wait(true):
        end = time.monotonic() + 60
        while not true():
            assert time.monotonic() < end
            time.sleep(0.01)

    return wait


@pytest.fixture
def program(tmp_path):
    """Runs a program text in a process of its own: `program(text, *arguments)`."""

    def run(text, *arguments, command=(), check=None, **options):
        file = tmp_path / "app.py"
        file.write_text(textwrap.dedent(text))
        environment = {**os.environ, **options.pop("env", {})}
        done = subprocess.run(
            [sys.executable, *command, str(file), *arguments],
            capture_output=True,
            text=True,
            timeout=90,
            cwd=tmp_path,
            env=environment,
            check=False,
            **options,
        )
        if check is not None:
            assert done.returncode == check, done.stderr
        return done

    return run
