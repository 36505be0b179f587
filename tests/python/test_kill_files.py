"""A few rounds of `make kill-files`: what was reported done is there after kill -9 and recovery."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Among the first seeds are kills while files are written, moved and brought home.
ROUNDS = 12


def test_files_survive_kills_of_the_program_and_of_recover(tmp_path):
    words = ["--kills", str(ROUNDS), "--below", tmp_path, "--keep", tmp_path / "keep"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.journey.kill_files", *words],
        cwd=ROOT, capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Everything held" in done.stdout
