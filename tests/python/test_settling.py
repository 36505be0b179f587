"""Runs that are over while the catalog has not answered: nothing of them is lost or done twice."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

# While the file exists that it is told of, the catalog is flushed once nobody holds that file.
HOLDS_THE_CATALOG = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

int fdatasync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    char link[64], path[4096], reached[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    size_t name = strlen("/catalog");
    if (length > (ssize_t)name && strcmp(path + length - name, "/catalog") == 0) {
        int gate = open(getenv("CATALOG_GATE"), O_RDWR | O_CLOEXEC);
        if (gate >= 0) {
            snprintf(reached, sizeof reached, "%s-reached", getenv("CATALOG_GATE"));
            close(open(reached, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
            flock(gate, LOCK_EX);
            close(gate);
        }
    }
    return real(file);
}
"""

PRELUDE = """
import os, signal, sys, threading, time
from pathlib import Path
import alongside as al
from alongside.testing import Gate

def until(true):
    end = time.monotonic() + 60
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)

def is_held():
    return Path("catalog-gate-reached").exists()

@al.io
def write(path: al.FileOut, text):
    Path(path).write_text(text)

@al.io
def read(path: al.FileIn):
    return Path(path).read_text()

@al.io(retries=0, on_failure="cancel_dependents")
def append(path: al.FileInOut, text, go=None):
    if go is not None:
        Path("begun").touch()
        go.pass_through()
    with open(path, "a") as file:
        file.write(text)

def has_begun():
    return Path("begun").exists()

@al.io(retries=0, on_failure="cancel_dependents")
def killed_once_open(gate):
    gate.pass_through()
    os.kill(os.getpid(), signal.SIGKILL)

def loses_a_worker_meanwhile(session, go, death):
    until(has_begun)
    gate = Gate("catalog-gate")
    go.open()
    until(is_held)
    death.open()
    until(lambda: session.statistics().workers_lost == 1)
    gate.open()

def session():
    return al.Session(workers=1, io_executors=4, storage="storage.toml")
"""

STORAGE = """
[[layer]]
name = "fast"
path = "fast"
bandwidth = "1GB/s"
capacity = "10MB"
[[layer]]
name = "slow"
path = "slow"
bandwidth = "100MB/s"
"""


@pytest.fixture
def held(program, tmp_path):
    """Runs a program whose flushes of the catalog wait at the gate `catalog-gate`."""
    source, library = tmp_path / "hold.c", tmp_path / "hold.so"
    source.write_text(HOLDS_THE_CATALOG)
    compiler = [os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source, "-ldl"]
    subprocess.run(compiler, check=True)
    (tmp_path / "storage.toml").write_text(STORAGE)
    for name in ("fast", "slow"):
        (tmp_path / name).mkdir()
    environment = {"LD_PRELOAD": str(library), "CATALOG_GATE": str(tmp_path / "catalog-gate")}

    def run(text):
        return program(PRELUDE + textwrap.dedent(text), env=environment, check=0)

    return run


def test_a_file_that_a_killed_task_was_releasing_stays(held, tmp_path):
    held("""
    @al.io(retries=0, on_failure="cancel_dependents")
    def releases_and_dies(path: al.FileInOut, go, death):
        Path("begun").touch()
        go.pass_through()
        with open(path, "a") as file:
            file.write(" three")
        al.release(path)
        death.pass_through()
        os.kill(os.getpid(), signal.SIGKILL)

    with session() as s:
        write("slow/file", "one").result()
        append("slow/file", " two").result()
        go, death = Gate("go"), Gate("death")
        end = releases_and_dies("slow/file", go, death)
        loses_a_worker_meanwhile(s, go, death)
        try:
            end.result()
        except al.WorkerLostError:
            pass
    """)
    assert (tmp_path / "slow" / "file").read_text().startswith("one two")


def test_what_ended_is_not_done_again_because_its_worker_dies_meanwhile(held, tmp_path):
    held("""
    with session() as s:
        write("slow/file", "one").result()
        go, death = Gate("go"), Gate("death")
        neighbour = killed_once_open(death)
        end = append("slow/file", " two", go)
        loses_a_worker_meanwhile(s, go, death)
        end.result()
        assert read("slow/file").result() == "one two"
        try:
            neighbour.result()
        except al.WorkerLostError:
            pass
    """)
    assert (tmp_path / "slow" / "file").read_text() == "one two"


def test_one_version_is_there_after_an_exception_while_the_next_is_told(held, tmp_path):
    held("""
    try:
        with session():
            write("slow/file", "one").result()
            gate = Gate("catalog-gate")
            end = write("slow/file", "two")
            after = append("slow/file", " three")
            until(is_held)

            def opens():
                until(after.done)
                gate.open()
            threading.Thread(target=opens).start()
            raise KeyError("left")
    except KeyError:
        pass
    """)
    assert (tmp_path / "slow" / "file").read_text() in ("one", "two")
    assert not list(Path(tmp_path).glob(".alongside/*"))
