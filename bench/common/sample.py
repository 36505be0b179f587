"""Repeated measurements of one thing: the median, and how far apart they were."""

from __future__ import annotations

import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    """The values of one contender on one row, one a repetition; `note` says why there are none."""

    values: tuple[float, ...] = ()
    note: str = ""

    def __post_init__(self) -> None:
        """A sample has values or a note that says why not, never both."""
        if bool(self.values) == bool(self.note):
            raise ValueError("a sample has either values or a note")

    @property
    def median(self) -> float | None:
        """The median of the values; None when there are none."""
        return statistics.median(self.values) if self.values else None

    @property
    def low(self) -> float | None:
        """The smallest value."""
        return min(self.values) if self.values else None

    @property
    def high(self) -> float | None:
        """The largest value."""
        return max(self.values) if self.values else None

    @property
    def spread(self) -> float | None:
        """Half the range over the median: 0.1 means that the values lie within about 10 %."""
        middle = self.median
        if not self.values or not middle:
            return None
        return (max(self.values) - min(self.values)) / 2 / middle

    def shown(self) -> float | str:
        """What a JSON row says of this sample: the median, or the note."""
        middle = self.median
        return self.note if middle is None else significant(middle)


def significant(value: float, digits: int = 4) -> float:
    """`value` rounded to that many significant digits."""
    return float(f"{value:.{digits}g}")


def combine(outcomes: list[float | str]) -> Sample:
    """One sample of the outcomes of all repetitions: numbers, or texts saying what went wrong.

    A contender that failed once has no figure: a median of the lucky runs would flatter it.
    """
    notes = [outcome for outcome in outcomes if isinstance(outcome, str)]
    if notes:
        return Sample(note=notes[0])
    if not outcomes:
        return Sample(note="not run")
    return Sample(values=tuple(float(outcome) for outcome in outcomes))
