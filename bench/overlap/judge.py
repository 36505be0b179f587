"""The bound of a row, and how far above it the program was."""

from __future__ import annotations

from dataclasses import dataclass

from bench.common.report import Goal, Row
from bench.common.sample import Sample, significant

OURS = "alongside"
SIDE_BY_SIDE = "side_by_side"
BY_HAND = "by_hand"
WAYS = ("io_alone", "compute_alone", SIDE_BY_SIDE, OURS, BY_HAND, "blocking")
PROCESSORS = "processors"
BOUND = "bound"

WORDS = {
    "equal": "compute : I/O = 1 : 1",
    "io_heavy": "compute : I/O = 1 : 2",
    "compute_heavy": "compute : I/O = 2 : 1",
}

Samples = dict[str, dict[str, Sample]]


@dataclass(frozen=True)
class Judged:
    """A row with everything that was measured for it; times in seconds."""

    name: str
    cores: int
    samples: Samples
    processors: Sample
    bound_s: float | None
    ratio: float | None
    ratios: tuple[float, float] | None

    goal = Goal((BOUND,), 1.05)

    @property
    def words(self) -> str:
        """The balance, for people."""
        return WORDS[self.name]

    @property
    def bound_is(self) -> str:
        """Which of the two terms is the bound."""
        io_s = self.samples["io_alone"]["wall_s"].median
        return "I/O" if io_s is not None and io_s == self.bound_s else PROCESSORS

    def over(self, way: str) -> float | None:
        """Ours over another way; the bound and the ratio know nothing of it."""
        ours, other = (self.samples[each]["wall_s"].median for each in (OURS, way))
        return None if ours is None or other is None else ours / other

    @property
    def parts_cpu_s(self) -> float | None:
        """Processor time of the two parts, each alone."""
        parts = [self.samples[way]["cpu_s"].median for way in ("io_alone", "compute_alone")]
        return None if None in parts else sum(filter(None, parts))

    @property
    def ratio_seen(self) -> float | None:
        """Ours over a bound that counts what rusage does not see of the I/O alone."""
        unseen_s = self.samples["io_alone"]["unseen_s"].median
        ours_s = self.samples[OURS]["wall_s"].median
        if self.parts_cpu_s is None or unseen_s is None or ours_s is None or not self.bound_s:
            return None
        return ours_s / max(self.bound_s, (self.parts_cpu_s + unseen_s) / self.cores)

    @property
    def disturbance(self) -> float:
        """Wall time of the computation alone over its processor time on each processor."""
        wall_s, cpu_s = (self.samples["compute_alone"][m].median for m in ("wall_s", "cpu_s"))
        return 1.0 if not wall_s or not cpu_s else wall_s * self.cores / cpu_s

    def json_row(self) -> Row:
        """The row of the JSON file."""
        walls = {way: self.samples[way]["wall_s"] for way in WAYS}
        against: dict[str, float | str | None] = {
            BOUND: None if self.bound_s is None else significant(self.bound_s),
            PROCESSORS: self.processors.shown(),
        }
        against.update({way: sample.shown() for way, sample in walls.items() if way != OURS})
        return Row(
            row=self.name,
            unit="s",
            ours=walls[OURS].shown(),
            against=against,
            ratio=None if self.ratio is None else significant(self.ratio),
            target=self.goal.target,
        )


def processor_time(samples: Samples, cores: int) -> Sample:
    """Processor time of computation and I/O over the processors, a value a repetition."""
    compute, io = samples["compute_alone"]["cpu_s"], samples["io_alone"]["cpu_s"]
    if compute.note or io.note:
        return Sample(note=compute.note or io.note)
    pairs = zip(compute.values, io.values, strict=True)
    return Sample(values=tuple((one + other) / cores for one, other in pairs))


def judge(name: str, samples: Samples, cores: int) -> Judged:
    """The bound is the larger of the medians of its two terms."""
    processors = processor_time(samples, cores)
    io, ours = samples["io_alone"]["wall_s"], samples[OURS]["wall_s"]
    if processors.median is None or io.median is None:
        return Judged(name, cores, samples, processors, None, None, None)
    bound_s = max(io.median, processors.median)
    if ours.median is None:
        return Judged(name, cores, samples, processors, bound_s, None, None)
    each = [
        total / max(io_s, processors_s)
        for total, io_s, processors_s in zip(ours.values, io.values, processors.values, strict=True)
    ]
    ratio = ours.median / bound_s
    return Judged(name, cores, samples, processors, bound_s, ratio, (min(each), max(each)))
