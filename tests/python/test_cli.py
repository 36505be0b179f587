"""The command: `alongside run`, `alongside info`, `python -m alongside`."""

import json
import os
import pty
import signal
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from alongside.cli import info

COMMAND = [sys.executable, "-m", "alongside"]

APP = """
import sys
import alongside as al

@al.task
def square(x):
    return x * x

@al.io
def save(path: al.FileOut, text):
    with open(path, "w") as file:
        file.write(str(text))

print(sys.argv[1:], __name__, isinstance(square(2), al.Future))
total = al.wait_all([square(n) for n in range(5)])
save("out.txt", square(7))
print(sum(total))
"""


@pytest.fixture
def app(tmp_path):
    file = tmp_path / "app.py"
    file.write_text(APP)
    return file


def run(app, *arguments, **options):
    command = [*COMMAND, "run", *arguments[:-1], str(app), *(arguments[-1] if arguments else ())]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=90, cwd=app.parent, check=False, **options
    )


def test_run(app):
    done = run(app, "--workers", "2", ["a", "--workers", "b"])
    assert done.returncode == 0, done.stderr
    assert done.stdout == "['a', '--workers', 'b'] __main__ True\n30\n"
    assert (app.parent / "out.txt").read_text() == "49"
    assert "8 tasks" in done.stderr
    assert "compute" in done.stderr
    assert "square" in done.stderr
    assert "\x1b" not in done.stderr


@pytest.mark.parametrize("words", [["--", "x"], ["-h", "--", "--", "x"], ["--workers", "--"]])
def test_the_script_gets_its_arguments_as_from_python(app, words):
    app.write_text("import sys; print(sys.argv)")
    expected = f"{[str(app), *words]}\n"
    assert run(app, words).stdout == expected
    assert run(app, "--", words).stdout == expected
    assert run(app, "--workers", "1", words).stdout == expected


def test_run_without_a_summary(app):
    done = run(app, "--no-summary", [])
    assert (done.returncode, done.stderr) == (0, "")


def test_the_same_program_is_sequential_without_the_command(app):
    done = subprocess.run(
        [sys.executable, str(app)], capture_output=True, text=True, cwd=app.parent, check=True
    )
    assert done.stdout == "[] __main__ False\n30\n"


def test_trace_and_graph(app):
    folder = app.parent
    done = run(app, "--trace", "t.json", "--graph", "g.svg", [])
    assert done.returncode == 0, done.stderr
    trace = json.loads((folder / "t.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert {"square", "save"} <= {event.get("name") for event in events}
    root = ElementTree.parse(folder / "g.svg").getroot()
    titles = [node.text for node in root.iter("{http://www.w3.org/2000/svg}title")]
    assert len(titles) == 8
    done = run(app, "--graph", "g.dot", [])
    text = (folder / "g.dot").read_text()
    assert text.count("label=") == 8
    assert "->" in text


def test_further_sessions_have_files_of_their_own(app):
    app.write_text(
        "import os\n"
        "import alongside as al\n"
        "os.mkdir('elsewhere'); os.chdir('elsewhere')\n"
        "for name in 'one', 'two':\n"
        "    with al.Session(workers=1):\n"
        "        al.task(abs, name=name)(-1)\n"
    )
    done = run(app, "--trace", "t.json", "--graph", "g.dot", [])
    assert done.returncode == 0, done.stderr
    for number, name in ("", "one"), ("-2", "two"):
        assert f'label="{name}' in (app.parent / f"g{number}.dot").read_text()
        assert f'"{name}"' in (app.parent / f"t{number}.json").read_text()


@pytest.mark.parametrize("option", ["--trace", "--graph", "--learned"])
@pytest.mark.parametrize(
    ("name", "why"), [("no/f.svg", "folder does not exist"), ("folder.svg", "is a folder")]
)
def test_a_file_that_cannot_be_written_is_refused_before_the_script_runs(app, option, name, why):
    app.write_text("print('ran')")
    (app.parent / "folder.svg").mkdir()
    done = run(app, option, name, [])
    assert (done.returncode, done.stdout) == (2, "")
    assert f"alongside: {option} {name}" in done.stderr
    assert why in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_graph_that_cannot_be_written_in_the_end_is_told(app):
    app.write_text(
        "import os\nimport alongside as al\nal.task(abs)(-1)\nos.rmdir('folder')\nprint('ran')"
    )
    graph = app.parent / "folder" / "g.svg"
    (app.parent / "folder").mkdir()
    done = run(app, "--no-summary", "--graph", "folder/g.svg", [])
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert done.stderr == f"alongside: --graph {graph}: No such file or directory\n"


def test_a_graph_of_no_known_kind(app):
    done = run(app, "--graph", "g.png", [])
    assert done.returncode == 2
    assert ".svg or .dot" in done.stderr


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit('a word')", 1, "a word"),
        ("import sys; sys.exit()", 0, ""),
        ("raise ValueError('mine')", 1, "ValueError: mine"),
        ("x = ", 1, "SyntaxError"),
        ("import alongside as al\nal.task(lambda: 1 / 0)()", 1, "ZeroDivisionError"),
        ("import alongside as al, sys\nal.task(lambda: 1 / 0)()\nsys.exit(0)", 1, "failed"),
    ],
)
def test_exit_codes(app, text, code, told):
    app.write_text(text)
    done = run(app)
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "alongside/cli" not in done.stderr


def test_a_script_that_is_not_there(tmp_path):
    done = run(tmp_path / "nowhere.py")
    assert done.returncode == 2
    assert "nowhere.py" in done.stderr


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--storage", "s.toml", "s.toml:2"),
        ("--storage", "nowhere.toml", "nowhere.toml"),
        ("--storage", "no_folder.toml", "no_folder.toml:3"),
        ("--learned", "s.toml", "s.toml: cannot be read as what was learned"),
        ("--workers", "0", "workers=0"),
        ("--workers", str(2**70), "from 1 to 200"),
        ("--io-executors", "-1", "from 1 to 4000"),
        ("--memory", "foo", "memory='foo'"),
    ],
)
def test_what_makes_no_sense_is_told_before_the_script_runs(app, option, value, why):
    app.write_text("print('ran')")
    (app.parent / "s.toml").write_text("[[layer]]\nname = 3\n")
    (app.parent / "no_folder.toml").write_text("[[layer]]\nname = 'fast'\npath = 'fast'\n")
    done = run(app, f"{option}={value}", [])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("alongside: ")
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_a_session_of_the_script_takes_the_options(app):
    app.write_text(
        "import alongside as al\n"
        "with al.Session(workers=1) as s:\n"
        "    al.wait(al.task(abs)(-1))\n"
        "    print(s.native.executors()[0])\n"
    )
    assert run(app, []).stdout == "1\n"
    done = run(app, "--workers", "3", [])
    assert done.stdout == "3\n"
    assert "1 task " in done.stderr


@pytest.mark.parametrize("end", ["", "s.shutdown(wait=False)", "sys.exit(0)"])
def test_a_session_that_the_script_leaves_open_does_its_tasks(app, end):
    app.write_text(
        "import sys\n"
        "import alongside as al\n"
        "s = al.Session(workers=1)\n"
        "for _ in range(3):\n"
        "    s.submit(print, 'ran')\n" + end
    )
    done = run(app, [])
    assert (done.returncode, done.stdout) == (0, "ran\n" * 3), done.stderr
    assert "3 tasks" in done.stderr
    assert "cancelled" not in done.stderr


def test_a_failure_in_a_session_that_the_script_leaves_open_is_told(app):
    app.write_text(
        "import alongside as al\n"
        "s, other = al.Session(workers=1), al.Session(workers=1)\n"
        "s.submit(divmod, 1, 0)\n"
        "other.submit(int, 'x')\n"
        "other.submit(print, 'ran')\n"
    )
    done = run(app, [])
    assert (done.returncode, done.stdout) == (1, "ran\n")
    assert "ZeroDivisionError" in done.stderr
    assert "ValueError" in done.stderr


def test_what_a_script_leaves_to_its_threads_and_to_the_end_of_python_runs(app):
    app.write_text(
        "import atexit, threading\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import alongside as al\n"
        "@al.task\n"
        "def square(x): return x * x\n"
        "print(al.wait(square(2)))\n"
        "pool = ThreadPoolExecutor(1)\n"
        "pool.submit(lambda: None).result()  # its thread waits for more\n"
        "ended = threading.main_thread().join\n"
        "threading.Thread(target=lambda: (ended(), print(al.wait(square(3))))).start()\n"
        "atexit.register(lambda: print(al.wait(square(4))))\n"
    )
    done = run(app, "--workers", "1", [])
    assert (done.returncode, done.stdout) == (0, "4\n9\n16\n"), done.stderr
    assert "2 tasks" in done.stderr


def test_a_forked_child_leaves_the_sessions_of_the_script_alone(app):
    app.write_text(
        "import os\n"
        "import alongside as al\n"
        "s = al.Session(workers=1)\n"
        "al.task(abs)(-1).result()\n"
        "child = os.fork()\n"
        "if child:\n"
        "    print(os.waitpid(child, 0)[1], flush=True)\n"
        "else:\n"
        "    s = al.Session(workers=1)\n"
        "s.submit(print, 'ran')\n"
    )
    done = run(app, [])
    assert (done.returncode, done.stdout) == (0, "ran\n0\nran\n"), done.stderr


def test_interrupt(app):
    app.write_text(
        "import sys\n"
        "import alongside as al\n"
        "@al.task\n"
        "def block():\n"
        "    print('in', flush=True)\n"
        "    while True: pass\n"
        "block().result()\n"
    )
    command = [*COMMAND, "run", "--workers", "1", str(app)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        assert process.stdout.readline() == "in\n"
        os.killpg(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in told
    assert "Traceback" not in told


@pytest.mark.parametrize(
    ("end", "code", "told"),
    [("raise KeyboardInterrupt", 130, "interrupted"), ("1 / 0", 1, "ZeroDivisionError")],
)
def test_what_cannot_be_brought_home_does_not_hide_why_the_script_ended(app, end, code, told):
    folder = app.parent
    for layer in ("fast", "slow"):
        (folder / layer).mkdir()
    (folder / "s.toml").write_text(
        "[[layer]]\nname = 'fast'\npath = 'fast'\nbandwidth = '2GB/s'\n"
        "[[layer]]\nname = 'slow'\npath = 'slow'\nbandwidth = '1GB/s'\n"
    )
    app.write_text(
        "import alongside as al\n"
        "@al.io(bandwidth='1MB/s')\n"
        "def save(path: al.FileOut):\n"
        "    with al.open(path, 'w') as file:\n"
        "        file.write('kept')\n"
        "with open('slow/taken', 'w') as file:\n"
        "    file.write('a file in the way')\n"
        "first = al.Session(workers=1)\n"
        "first.submit(save, 'slow/taken/a').result()\n"
        "second = al.Session(workers=1)\n"
        "second.submit(abs, -1).result()\n" + end
    )
    done = run(app, "--storage", "s.toml", "--graph", "g.dot", [])
    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "slow/taken/a" in done.stderr
    assert done.stderr.count("1 task in") == 2
    assert (folder / "g.dot").exists() and (folder / "g-2.dot").exists()


def test_the_progress_bar_is_for_terminals(app):
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "run", str(app)], stdout=subprocess.DEVNULL, stderr=follower, cwd=app.parent
    )
    os.close(follower)
    seen = b""
    while True:
        try:
            part = os.read(leader, 65536)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        seen += part
    os.close(leader)
    assert process.wait(60) == 0
    assert b"\x1b[" in seen
    assert b"tasks" in seen


def test_info():
    done = subprocess.run([*COMMAND, "info"], capture_output=True, text=True, check=True)
    for word in ("processors", "memory", "engine", "storage layers", "default"):
        assert word in done.stdout


def test_info_knows_mounts_by_their_names():
    assert info.unescaped("/mnt/données\\040de\\134été") == "/mnt/données de\\été"


def test_info_tells_the_engine_and_why():
    environment = {**os.environ, "ALONGSIDE_ENGINE": "threads"}
    command = [*COMMAND, "info"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("engine"))
    assert "threads" in line and "ALONGSIDE_ENGINE" in line


def test_a_reader_that_leaves_early_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as nobody:
        streams = {"stdout": nobody, "stderr": subprocess.PIPE}
        done = subprocess.run([*COMMAND, "info"], check=False, text=True, **streams)
    assert (done.returncode, done.stderr) == (1, "")


def test_help_names_every_option():
    done = subprocess.run([*COMMAND, "run", "--help"], capture_output=True, text=True, check=True)
    for option in ("--workers", "--io-executors", "--storage", "--io-policy", "--trace", "--graph"):
        assert option in done.stdout


def test_the_script_is_compiled_as_python_does(tmp_path):
    app = tmp_path / "app.py"
    app.write_text(
        """
def main():
    import alongside as al

    Target = al.FileOut

    @al.io
    def save(path: Target, text):
        with open(path, "w") as file:
            file.write(text)

    save("out.txt", "hi")
    print(save.function.__annotations__)

main()
"""
    )
    done = run(app, "--no-summary", [])
    assert done.returncode == 0, done.stderr
    assert "'Target'" not in done.stdout
    assert (tmp_path / "out.txt").read_text() == "hi"
