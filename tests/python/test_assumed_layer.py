"""Without a description the working directory is measured when its bandwidth is needed."""

import pytest

import alongside as al


@al.io
def free(path: al.FileOut):
    """Asks for nothing."""
    with al.open(path, "wb") as file:
        file.write(b"free")


@al.io(bandwidth="auto")
def learning(path: al.FileOut):
    """Needs to know what there is to share."""
    with al.open(path, "wb") as file:
        file.write(b"learned")


@al.io(bandwidth="900TB/s")
def greedy(path: al.FileOut):
    """Asks for more than any disk has."""
    with al.open(path, "wb") as file:
        file.write(b"greedy")


def test_auto_learns_on_the_measured_layer(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=1) as session:
        for number in range(40):
            learning(f"file-{number}")
    (tuned,) = session.statistics().tuned
    assert tuned.layer == "default"
    assert tuned.epochs, "there is a bandwidth to learn on"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"file-{number}" for number in range(40)
    )


def test_more_than_was_measured_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with al.Session(workers=1), pytest.raises(al.ConstraintError, match="default"):
        greedy("file")


def test_a_folder_that_cannot_be_measured_stays_without_limits(tmp_path, monkeypatch):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    with al.Session(workers=1):
        gone.rmdir()
        with pytest.warns(RuntimeWarning, match="cannot be measured"):
            future = greedy(str(tmp_path / "file"))
        al.wait(future)
        al.wait(greedy(str(tmp_path / "file")))
