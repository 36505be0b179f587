"""The tiers benchmark: layers are as described, rows compare what they say, lies are found."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pytest

import alongside as al
from alongside import _native
from apps.common import files
from apps.common.command import Outcome
from apps.common.spans import Span
from bench.common.slow_disk import SlowDisk
from bench.tiers import __main__ as bench
from bench.tiers import cases, measure, picture, rows

BANDWIDTH = 90_000_000
WRITTEN = 200_000_000


class Application:
    """Writes a file as an I/O task, with the content of the next run."""

    name = "align"

    def __init__(self, *contents: bytes) -> None:
        self.contents = list(contents)
        self.difference = ""

    def run(self, checkpoints, folder):
        content = self.contents.pop(0)

        def write(path: al.FileOut) -> Span:
            return files.write(path, lambda file: file.write(content))

        task = checkpoints.task(write, "write", len(content))
        span = al.wait(checkpoints.call(task, str(folder / "file")))
        return Outcome(None, [Span("align", span.start_ns - 10, span.start_ns), span])

    def check(self, answer, folder):
        return self.difference


@pytest.fixture
def slow(tmp_path):
    """A folder that stands for the slow disk."""
    (tmp_path / "slow").mkdir()
    return SlowDisk(tmp_path / "slow", BANDWIDTH)


@pytest.fixture
def tiers(tmp_path, slow):
    folders = (tmp_path / "memory", tmp_path / "disk")
    return cases.tiers(folders, slow, WRITTEN, (0.25, 0.5))


def make_bench(tmp_path, slow, tiers, application):
    for layer in tiers.layers:
        layer.folder.mkdir(exist_ok=True)
    everything = cases.write(tiers.layers, tmp_path / "all.toml")
    alone = cases.write([tiers.slow], tmp_path / "slow.toml")
    return measure.Bench(application, 1, slow, tiers, everything, alone, tmp_path / "inputs")


def test_layers_are_read_as_they_were_described(tmp_path, slow, tiers):
    for layer in tiers.layers:
        layer.folder.mkdir(exist_ok=True)
    file = cases.write(tiers.layers, tmp_path / "storage.toml")
    read = _native.read_storage(str(file))
    assert [layer.name for layer in read] == ["memory", "disk", "slow"]
    assert [layer.bandwidth for layer in tiers.layers] == [602_600_000, 274_300_000, BANDWIDTH]
    assert [layer.capacity for layer in tiers.layers] == [WRITTEN // 4, WRITTEN // 2, None]
    assert [layer.limit for layer in tiers.layers] == [None, 274_300_000, BANDWIDTH]
    assert len(cases.describe(tiers, slow)) == 3


def test_the_kernels_disk_needs_no_limit_of_the_runtime(tmp_path, slow):
    slow.device = "7:0"
    made = cases.tiers((tmp_path, tmp_path), slow, WRITTEN, (0.1, 0.1))
    assert made.slow.limit is None
    assert "limit" not in made.slow.text()


def test_the_largest_files_ask_for_their_published_share(slow):
    asked = cases.checkpoints(Application(), slow)
    assert asked.bandwidth == pytest.approx(BANDWIDTH * 800 / 900)
    assert asked.task(len, "half", 10, 0.5).options.bandwidth == BANDWIDTH * 400 // 900
    assert asked.task(len, "half", 10, 0.5).options.size == 10
    assert asked.reader(len, "read").options.bandwidth == 0


def test_each_way_says_what_it_is():
    ways = [cases.BASELINE, *cases.policies(), *cases.moving(cases.policies()[2])]
    assert [way.words for way in ways] == [
        "slow layer alone",
        "fcfs",
        "priority",
        "backfilling",
        "backfilling + flush",
        "backfilling + flush + prefetch",
    ]


def test_a_way_that_this_version_does_not_have_says_so(tmp_path, slow, tiers):
    made = make_bench(tmp_path, slow, tiers, Application(b"x"))
    found = made.run(cases.Way("other", "nothing like it"))
    assert isinstance(found, str)
    assert "nothing like it" in found


def test_a_run_tells_its_times_and_where_files_are(tmp_path, slow, tiers):
    made = make_bench(tmp_path, slow, tiers, Application(b"x" * 5000))
    found = made.run(cases.BASELINE)
    assert found.placed == {"memory": 0, "disk": 0, "slow": 5000}
    assert 0 < found.io_s <= found.total_s <= found.home_s
    assert found.io_elapsed_s == found.io_s
    assert not (slow.folder / "run").exists()


def test_a_changed_byte_of_a_later_run_is_found(tmp_path, slow, tiers):
    made = make_bench(tmp_path, slow, tiers, Application(b"same", b"same", b"sane"))
    made.run(cases.BASELINE)
    made.run(cases.BASELINE)
    with pytest.raises(measure.WrongResultError, match="not as the first run: file"):
        made.run(cases.BASELINE)


def test_a_result_that_is_not_the_plain_programs_is_found(tmp_path, slow, tiers):
    application = Application(b"same")
    application.difference = "line 3"
    made = make_bench(tmp_path, slow, tiers, application)
    with pytest.raises(measure.WrongResultError, match=r"align, baseline: .* line 3"):
        made.run(cases.BASELINE)


def test_a_file_that_is_not_there_is_found(tmp_path, slow, tiers):
    application = Application(b"same")
    application.check = lambda answer, folder: (folder / "other").read_text()
    made = make_bench(tmp_path, slow, tiers, application)
    with pytest.raises(measure.WrongResultError, match="other: No such file"):
        made.run(cases.BASELINE)


def test_a_table_is_printed_also_where_the_baseline_failed(capsys):
    one = case()
    one.results[0].runs, one.results[0].note = [], "failed: no reason"
    bench.print_table(bench.report.console(), one)
    assert "failed: no reason" in capsys.readouterr().out


def test_a_way_that_fails_says_why_and_is_not_run_again(tmp_path, slow, tiers):
    application = Application(b"same", b"same")
    made = make_bench(tmp_path, slow, tiers, application)
    one = measure.Results(cases.BASELINE)
    one.add(made)
    application.difference = "line 3"
    one.add(made)
    one.add(made)
    assert one.is_failed
    assert one.sample("total_s").note.startswith("failed: align, baseline")


def test_elapsed_is_the_time_in_which_any_io_ran():
    spans = [Span("read", 50, 60), Span("checkpoint", 0, 10), Span("checkpoint", 5, 20)]
    assert measure.elapsed_ns(spans) == 30
    assert measure.elapsed_ns([]) == 0


def results(way, total_s, io_s, **where):
    made = measure.Measured(total_s, 2 * total_s, io_s, io_s / 2, where or {"slow": 100})
    return measure.Results(way, [made])


def case():
    ways = [cases.BASELINE, *cases.policies(), *cases.moving(cases.policies()[2])]
    totals, io = (10.0, 6.0, 7.0, 5.0, 4.0, 11.0), (40.0, 20.0, 30.0, 12.0, 10.0, 50.0)
    listed = [results(*each, memory=60, disk=0, slow=40) for each in
              zip(ways, totals, io, strict=True)]  # fmt: skip
    return bench.Case("align", ["words"], listed)


def made_rows(one):
    found = rows.rows_of(one.name, one.results[0], one.results[1:], one.best)
    return {row.row: row for row in found}


def test_rows_stand_for_the_best_with_flush_and_for_every_way():
    found = made_rows(case())
    assert found["align_io"].ratio == 4.0
    assert found["align_io"].target == 3.0
    assert found["align_total"].ratio == 0.4
    assert found["align_total"].target == 0.6
    assert found["align_total"].against == {"baseline": 10.0}
    assert found["align_total_backfilling"].ratio == 0.5
    assert found["align_io_priority"].ratio == pytest.approx(1.333)
    assert found["align_home_flush"].target is None
    missed = [name for name, row in found.items() if rows.is_missed(row)]
    assert missed == ["align_io_prefetch", "align_total_prefetch"]


def test_a_way_without_a_run_is_a_row_that_says_why():
    one = case()
    one.results[4].runs, one.results[4].note = [], "not in this version"
    found = made_rows(one)
    assert found["align_io_flush"].ours == "not in this version"
    assert found["align_io_flush"].ratio is None
    assert found["align_total"].ratio == 0.5, "the best policy stands in"


def test_the_best_policy_is_that_with_the_shortest_total():
    assert bench.best_of(case().results[1:4]).way.name == "backfilling"
    assert bench.best_of([measure.Results(way, note="no") for way in cases.policies()])


def test_the_picture_has_a_column_for_each_application(tmp_path):
    picture.draw([case(), case()], tmp_path / "a.png", "note")
    assert (tmp_path / "a.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    "bad", [["--applications", "x"], ["--workers", "0"], ["--balance", "0"], ["--memory", "-1"]]
)
def test_impossible_options_are_refused(bad, capsys):
    with pytest.raises(SystemExit):
        bench.parse(bad)
    assert capsys.readouterr().err


@pytest.fixture
def memory(monkeypatch):
    """A folder in memory that only this run uses."""
    with tempfile.TemporaryDirectory(dir=bench.MEMORY) as folder:
        monkeypatch.setattr(bench, "MEMORY", Path(folder))
        yield bench.MEMORY


def test_the_command_measures_the_baseline_and_writes_its_files(tmp_path, memory, capsys):
    only = ["--applications", "align", "--policies", "fcfs"]
    assert bench.main(["--quick", *only, "--out", str(tmp_path)]) == 0
    found = {row["row"]: row for row in json.loads((tmp_path / "tiers.json").read_text())}
    assert found["align_total_fcfs"]["against"]["baseline"] > 0
    assert (tmp_path / "tiers.png").exists()
    assert not (tmp_path / "tiers").exists()
    assert not list(memory.iterdir())
    assert "slow layer alone" in capsys.readouterr().out
