"""`alongside probe`, with tiny sizes."""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from alongside import _native

COMMAND = [sys.executable, "-m", "alongside", "probe"]
TINY = [
    *("--block", "4KiB,16KiB", "--writers", "1,2", "--rounds", "1"),
    *("--space", "64KiB", "--data", "1MB"),
]
LONG = ["--block", "4KiB", "--writers", "1", "--rounds", "100", "--space", "1MiB"]
LONG += ["--data", "1TB", "--seconds", "3600"]


def probe(folder, *arguments, **options):
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=90,
        cwd=folder,
        check=False,
        **options,
    )


def test_what_is_measured_is_told_and_described(tmp_path):
    done = probe(tmp_path, *TINY, "--picture", "curves.svg")
    assert done.returncode == 0, done.stderr
    assert "at most 1 MB" in done.stderr
    assert "65.5 kB of space" in done.stderr
    for words in ("write: writers", "read: readers", "16 KiB", "of the best", "at once"):
        assert words in done.stdout
    assert "\x1b" not in done.stdout + done.stderr
    [layer] = _native.read_storage(str(tmp_path / "storage.toml"))
    assert (layer.name, layer.path) == (tmp_path.name, str(tmp_path))
    assert layer.read_bandwidth > 0 and layer.write_bandwidth > 0
    assert layer.curve is None
    assert [writers for writers, _ in layer.measured] == [1, 2]
    drawn = ElementTree.parse(tmp_path / "curves.svg").getroot()
    lines = drawn.findall(".//{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 4
    assert sorted(os.listdir(tmp_path)) == ["curves.svg", "storage.toml"]


def test_threads_measure_where_there_is_no_ring(tmp_path):
    environment = {**os.environ, "ALONGSIDE_ENGINE": "threads"}
    done = probe(tmp_path, *TINY, "--json", env=environment)
    assert done.returncode == 0, done.stderr
    [layer] = json.loads(done.stdout)["layers"]
    assert (layer["engine"], len(layer["figures"])) == ("threads", 8)


def test_the_curve_as_a_limit(tmp_path):
    done = probe(tmp_path, *TINY, "--emulate", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    [layer] = told["layers"]
    [described] = _native.read_storage(str(tmp_path / "storage.toml"))
    assert described.curve == described.measured
    measured = [(point["writers"], point["bandwidth"]) for point in layer["write"]["curve"]]
    assert [writers for writers, _ in described.curve] == [writers for writers, _ in measured]
    for (_, exact), (_, rounded) in zip(measured, described.curve, strict=True):
        assert rounded == pytest.approx(exact, rel=0.01)
    assert len(layer["figures"]) == 8
    assert layer["bytes"] <= 10**6
    assert {figure["rounds"] for figure in layer["figures"]} == {1}
    assert layer["write"]["knee"] in (1, 2)


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_what_was_measured_is_kept_if_the_reader_of_the_tables_leaves(tmp_path, json):
    reader, writer = os.pipe()
    os.close(reader)
    command = [*COMMAND, *TINY, *json, "--picture", "curves.svg"]
    streams = {"stdout": writer, "stderr": subprocess.PIPE, "text": True}
    done = subprocess.run(command, cwd=tmp_path, timeout=90, check=False, **streams)
    os.close(writer)
    assert done.returncode == 1
    assert "Broken pipe" not in done.stderr
    assert _native.read_storage(str(tmp_path / "storage.toml"))
    assert (tmp_path / "curves.svg").read_text().endswith("</svg>\n")


def test_several_folders_are_layers_with_different_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name / "disk").mkdir(parents=True)
    done = probe(tmp_path, *TINY, "--out", "-", "a/disk", "b/disk")
    assert done.returncode == 0, done.stderr
    toml = done.stdout[done.stdout.index("# Storage layers") :]
    (tmp_path / "s.toml").write_text(toml)
    layers = _native.read_storage(str(tmp_path / "s.toml"))
    assert [layer.name for layer in layers] == ["disk", "disk-2"]
    assert layers[1].path == str(tmp_path / "b/disk")


def test_a_description_is_not_written_over(tmp_path):
    file = tmp_path / "storage.toml"
    file.write_text("mine")
    done = probe(tmp_path, *TINY)
    assert done.returncode == 2
    assert "storage.toml exists; give --force" in done.stderr
    assert file.read_text() == "mine"
    assert probe(tmp_path, *TINY, "--force").returncode == 0
    assert _native.read_storage(str(file))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere: cannot look: No such file or directory"),
        (["/proc"], "/proc: "),
        (["--space", "1000TB", "--data", "2000TB", "--block", "4KiB"], "give a smaller --space"),
        (["--data", "1kB"], "--data 1000 is not enough"),
        (["--block", "1000"], "multiple of 4096"),
        (["--block", "x"], "--block"),
        (["--writers", "0"], "from 1 to 512"),
        (["--writers", "-1,2"], "--writers"),
        (["--writers=-1"], "--writers: must be from 1 to 512"),
        (["--writers", "1,x"], "'x' is not a whole number"),
        (["--rounds", "-1"], "--rounds: must be from 1 to"),
        (["--rounds", "5000000000"], "--rounds: must be from 1 to"),
        (["--rounds", "1.5"], "'1.5' is not a whole number"),
        (["--seconds", "0"], "--seconds"),
        (["--seconds", "-1"], "--seconds"),
        (["--space", "4GB/s"], "unknown unit"),
        (["--picture", "x.png"], "has to end in .svg"),
        (["--out", "no/such/folder.toml"], "its folder does not exist"),
        (["--json", "--out", "-"], "both want the standard output"),
    ],
)
def test_what_cannot_be_done_is_refused(tmp_path, arguments, words):
    done = probe(tmp_path, *arguments)
    assert done.returncode == 2, done.stdout
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert os.listdir(tmp_path) == []


def test_a_folder_that_is_not_writable(tmp_path):
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o555)
    command = [*COMMAND, *TINY, str(folder)]
    if os.geteuid() == 0:  # root may write everywhere: not without these rights
        if shutil.which("setpriv") is None:
            pytest.skip("root, and there is no setpriv")
        lost = "--bounding-set=-dac_override,-dac_read_search"
        command = ["setpriv", lost, "--inh-caps=-all", *command]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=90, cwd=tmp_path, check=False
    )
    assert done.returncode == 2, done.stdout
    assert f"{folder}: cannot make a file: Permission denied" in done.stderr


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGINT, 130), (signal.SIGTERM, -signal.SIGTERM), (signal.SIGKILL, -signal.SIGKILL)],
)
def test_nothing_is_left_when_it_is_killed(tmp_path, number, code):
    with subprocess.Popen(
        [*COMMAND, *LONG], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert "reads and writes at most" in running.stderr.readline()
        wait_for_files(running.pid, tmp_path)
        assert os.listdir(tmp_path) == []
        running.send_signal(number)
        out, err = running.communicate(timeout=60)
    assert running.returncode == code
    assert out == ""
    assert ("interrupted; nothing was left" in err) == (number == signal.SIGINT)
    assert os.listdir(tmp_path) == []


def wait_for_files(pid, folder):
    """Until the process has its files, which have no names."""
    while not any(
        link.startswith(str(folder)) and link.endswith("(deleted)")
        for link in (_link(pid, number) for number in os.listdir(f"/proc/{pid}/fd"))
    ):
        os.sched_yield()


def _link(pid, number):
    try:
        return os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:  # closed meanwhile
        return ""


def test_a_bar_on_a_terminal(tmp_path):
    ours, theirs = pty.openpty()
    with subprocess.Popen([*COMMAND, *TINY], cwd=tmp_path, stdout=theirs, stderr=theirs) as running:
        os.close(theirs)
        shown = b""
        try:
            while chunk := os.read(ours, 4096):
                shown += chunk
        except OSError:  # the other side is closed
            pass
        running.wait(timeout=60)
    os.close(ours)
    assert running.returncode == 0
    assert b"probing" in shown
