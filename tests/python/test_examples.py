"""Every example runs, alone and under `alongside run`, and prints the same both ways."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
FILES = sorted(EXAMPLES.glob("*.py"))


def lines(command, folder):
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=90, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return sorted(done.stdout.splitlines())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_an_example_prints_the_same_both_ways(file, tmp_path):
    alone = lines([sys.executable, str(file)], tmp_path)
    assert alone
    under = [sys.executable, "-m", "alongside", "run", "--workers", "2", str(file)]
    assert lines(under, tmp_path) == alone


def test_every_example_is_in_the_readme():
    text = (EXAMPLES / "README.md").read_text()
    assert all(f"`{file.name}`" in text for file in FILES)
    assert len(FILES) >= 4
