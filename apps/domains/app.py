"""The program: subdomains are cut out of a mesh, and the equation is solved on each.

    cut_domain ──> condense (one a subdomain) ──> fold (by twos) ──> root ──> recover

It is the published program (Elshazly's thesis, section 7.6.3.3, figure 7.19), whose tasks end with
the subdomains. Here they go on to the solution of the whole (see `heat`): a subdomain folds with
its neighbour as soon as both are there; `root` folds the last two and finds the temperatures
between the subdomains; `recover` finds those in the subdomains.

`eager`: the producer is a generator task with `returns=Stream`; a subdomain is there when it was
cut. `lazy`: the same producer, as a task that returns the list of all when it ends.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import alongside as al
from apps.common.release import PRODUCER, Ran, each, producer
from apps.common.spans import Span, Stopwatch, now_ns

from . import cutting, heat
from .shape import Floats, Integers

AHEAD = 16
"""How many subdomains the producer may be ahead of the tasks that work on them."""

GROUP = 16
"""How many subdomains one task of `recover` takes."""


class Job(NamedTuple):
    """The file of a mesh, how many fine nodes it has, and into how many subdomains it is cut."""

    mesh: Path
    nodes: int
    parts: int


class Cut(NamedTuple):
    """A subdomain, and when it was cut."""

    subdomain: cutting.Subdomain
    span: Span


class Left(NamedTuple):
    """What is left of some subdomains, and when they were cut and folded."""

    front: heat.Front
    spans: list[Span]


class Recovered(NamedTuple):
    """The temperatures of some nodes, and when they were found."""

    nodes: Integers
    temperatures: Floats
    spans: list[Span]


def cut_domain(path: al.FileIn, parts: int) -> Iterator[Cut]:
    """Cut the subdomains out of a mesh."""
    with al.open(path, "rb") as file:
        rest = cutting.subdomains(file, parts)
        while True:
            with Stopwatch(PRODUCER) as watch:
                subdomain = next(rest, None)
            if subdomain is None:
                return
            yield Cut(subdomain, watch.span)


@al.task(returns=2)
def condense(cut: Cut) -> tuple[Left, heat.Given]:
    """Give up the nodes that only one subdomain has."""
    with Stopwatch("condense") as watch:
        front, given = heat.leaf(cut.subdomain)
    return Left(front, [cut.span, watch.span]), given


@al.task(returns=2)
def fold(first: Left, second: Left) -> tuple[Left, heat.Given]:
    """Fold two neighbours, and give up the nodes that only they share."""
    with Stopwatch("fold") as watch:
        front, given = heat.fold(first.front, second.front)
    return Left(front, [*first.spans, *second.spans, watch.span]), given


@al.task
def root(first: Left, second: Left, folded: Sequence[heat.Given], nodes: int) -> Recovered:
    """Fold the last two, and find the temperatures between the subdomains, from the last on.

    Nodes inside of subdomains have 0 until `recover`.
    """
    with Stopwatch("root") as watch:
        last = heat.fold(first.front, second.front)[1]
        temperatures = np.zeros(nodes)
        for given in (last, *reversed(folded)):
            heat.back(given, temperatures)
    spans = [*first.spans, *second.spans, watch.span]
    return Recovered(np.arange(nodes), temperatures, spans)


@al.task
def recover(between: Recovered, given: Sequence[heat.Given]) -> Recovered:
    """Find the temperatures in some subdomains."""
    with Stopwatch("recover") as watch:
        temperatures = between.temperatures.copy()
        for one in given:
            heat.back(one, temperatures)
        nodes = np.concatenate([one.nodes for one in given])
    return Recovered(nodes, temperatures[nodes], [watch.span])


class Folder:
    """Folds what comes in order, by twos, then by fours, and so on, as soon as both are there.

    `fold` takes two fronts, and returns what is left and what was given up. The last two of
    `parts` are not folded: they stay in `rest`. What was given up is in `folded`, in order.
    """

    def __init__(self, fold: Any, parts: int) -> None:
        assert parts >= 2
        self.folded: list[Any] = []
        self._fold = fold
        self._parts = self._to_come = parts
        self._waiting: list[tuple[int, Any]] = []

    @property
    def rest(self) -> list[Any]:
        """What was not folded."""
        return [left for _, left in self._waiting]

    def add(self, left: Any) -> None:
        """Take the next one."""
        waiting = self._waiting
        waiting.append((1, left))
        self._to_come -= 1
        while len(waiting) >= 2:
            (first, one), (second, other) = waiting[-2:]
            if first + second == self._parts or (first != second and self._to_come):
                return
            left, given = self._fold(one, other)
            self.folded.append(given)
            waiting[-2:] = [(first + second, left)]


def run(job: Job, way: str) -> Ran:
    """Run the program under a session, `lazy` or `eager`."""
    start_ns = now_ns()
    condensed: list[Any] = []
    folder = Folder(fold, job.parts)
    for cut in each(producer(cut_domain, way, job.parts, AHEAD)(str(job.mesh), job.parts)):
        left, given = condense(cut)
        condensed.append(given)
        folder.add(left)
    between = root(*folder.rest, folder.folded, job.nodes)
    groups = [condensed[at : at + GROUP] for at in range(0, job.parts, GROUP)]
    recovered = [recover(between, group) for group in groups]
    temperatures = al.wait(between).temperatures.copy()
    parts = [al.wait(future) for future in recovered]
    for part in parts:
        temperatures[part.nodes] = part.temperatures
    end_ns = now_ns()
    spans = [span for part in (al.wait(between), *parts) for span in part.spans]
    return Ran(temperatures, spans, start_ns, end_ns)
