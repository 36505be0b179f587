"""Runs one program in one way, in this process: `python -m bench.overlap.measure WAY JSON FILE`.

Everything is started, warm and waiting before the clock runs; the answer is the wall time, and the
processor time of all processes in it.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import resource
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

import alongside as al
from bench.common import machine, tree
from bench.overlap import bodies
from bench.overlap.plan import Program

WARM_ROUNDS = 20
WARM_TASKS_PER_EXECUTOR = 3
START_WAIT_S_MAX = 60.0

Answer = dict[str, float]
States = list[bytes]


def cpu_s() -> float:
    """The processor time of this process, all its threads."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def tree_cpu_s() -> float:
    """The processor time of every process of this run that is alive."""
    return sum(map(tree.cpu_s, tree.members(os.environ[tree.MARK])))


class Clock:
    """Wall time, processor time, and what interrupts and the hypervisor took, since it was made."""

    def __init__(self, processor_s: Callable[[], float]) -> None:
        """Begin now; `processor_s` tells the processor time that counts."""
        self._processor_s = processor_s
        self._before = processor_s(), machine.unseen_s(), time.perf_counter()

    def answer(self) -> Answer:
        """The times since then."""
        now, unseen_s, cpu_s = time.perf_counter(), machine.unseen_s(), self._processor_s()
        return {
            "wall_s": now - self._before[2],
            "cpu_s": cpu_s - self._before[0],
            "unseen_s": unseen_s - self._before[1],
        }


def all_places(program: Program) -> list[str]:
    """The file of every I/O task, in the order of the sequential program."""
    return [program.path(c, s) for s in range(program.steps) for c in range(program.chains)]


def write_all(program: Program, places: Sequence[str], pool: ThreadPoolExecutor) -> None:
    """Those files, without their computation, by the threads of the pool."""

    def write(place: str) -> None:
        bodies.write(place, bodies.START, program.file_bytes, program.direct)

    list(pool.map(write, places))


def io_alone(program: Program) -> Answer:
    """All files, by as many threads as there are I/O executors."""
    places = all_places(program)
    with ThreadPoolExecutor(program.writers) as pool:
        write_all(program, places[: program.writers], pool)
        clock = Clock(cpu_s)
        write_all(program, places, pool)
        return clock.answer()


def io_alone_limited(program: Program) -> Answer:
    """All files through a session: only there is the emulated limit of a layer."""
    with session(program):
        write = al.io(bodies.write)
        warm_up(program)
        clock = Clock(tree_cpu_s)
        al.wait_all(
            [
                write(program.path(c, s), bodies.START, program.file_bytes, program.direct)
                for s in range(program.steps)
                for c in range(program.chains)
            ]
        )
        return clock.answer()


def compute_process(program: Program, begin: Barrier, answers: Any) -> None:
    """Compute a processor's part of the steps, without their I/O."""
    state = bodies.START
    bodies.compute(state, WARM_ROUNDS)
    begin.wait(START_WAIT_S_MAX)
    clock = Clock(cpu_s)
    for _ in range(program.tasks // program.processors):
        state = bodies.compute(state, program.rounds)
    answers.put(clock.answer())


def start_computing(program: Program, others: int) -> tuple[Barrier, Callable[[], list[Answer]]]:
    """A process a processor, and `others`, begin at the barrier; the call waits for the answers."""
    context = multiprocessing.get_context("fork")
    begin = context.Barrier(program.processors + others)
    answers = context.SimpleQueue()
    processes = [
        context.Process(target=compute_process, args=(program, begin, answers), daemon=True)
        for _ in range(program.processors)
    ]
    for process in processes:
        process.start()

    def finish() -> list[Answer]:
        measured: list[Answer] = [answers.get() for _ in processes]
        for process in processes:
            process.join()
        return measured

    return begin, finish


def compute_alone(program: Program) -> Answer:
    """All processors at once: what one can do depends on its neighbours."""
    _, finish = start_computing(program, others=0)
    measured = finish()
    longest = max(measured, key=lambda answer: answer["wall_s"])
    return longest | {"cpu_s": sum(answer["cpu_s"] for answer in measured)}


def side_by_side(program: Program) -> Answer:
    """The computation and the I/O of the two above at once, neither waiting for the other.

    No runtime and no dependency: what the parts cost each other on this machine is all that is
    added to them.
    """
    places = all_places(program)
    begin, finish = start_computing(program, others=1)  # it forks, so before there are threads
    with ThreadPoolExecutor(program.writers) as pool:
        write_all(program, places[: program.writers], pool)
        begin.wait(START_WAIT_S_MAX)
        clock = Clock(cpu_s)
        write_all(program, places, pool)
        computed = finish()
        answer = clock.answer()
    return answer | {"cpu_s": sum(part["cpu_s"] for part in [answer, *computed])}


def by_hand(program: Program) -> Answer:
    """The same overlap without a runtime: a pool of processes, a pool of threads for the I/O."""
    fork = multiprocessing.get_context("fork")
    with (
        ProcessPoolExecutor(program.processors, mp_context=fork) as processes,
        ThreadPoolExecutor(program.writers) as writers,
        ThreadPoolExecutor(program.chains) as chains,
    ):
        warm = [processes.submit(bodies.compute, b"", WARM_ROUNDS) for _ in range(program.chains)]
        for done in warm:
            done.result()

        def run(chain: int) -> bytes:
            state = bodies.START
            files: list[Future[None]] = []
            for step in range(program.steps):
                state = processes.submit(bodies.compute, state, program.rounds).result()
                place = program.path(chain, step)
                arguments = (place, state, program.file_bytes, program.direct)
                files.append(writers.submit(bodies.write, *arguments))
            for file in files:
                file.result()
            return state

        return timed(program, lambda: list(chains.map(run, range(program.chains))))


def blocking_chain(program: Program, chain: int) -> bytes:
    """Compute, write, compute, write."""
    state = bodies.START
    for step in range(program.steps):
        state = bodies.compute(state, program.rounds)
        bodies.write(program.path(chain, step), state, program.file_bytes, program.direct)
    return state


def blocking(program: Program) -> Answer:
    """No overlap within a chain: every process waits for its own file before it goes on."""
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(program.processors, mp_context=fork) as processes:
        warm = [processes.submit(bodies.compute, b"", WARM_ROUNDS) for _ in range(program.chains)]
        for done in warm:
            done.result()
        chains = range(program.chains)
        programs = [program] * program.chains
        return timed(program, lambda: list(processes.map(blocking_chain, programs, chains)))


def session(program: Program) -> al.Session:
    """A session with all processors, on the layer asked for."""
    storage = Path(program.folder, "storage.toml") if program.limit else None
    return al.Session(workers=program.processors, io_executors=program.writers, storage=storage)


def warm_up(program: Program) -> None:
    """Have every executor run a few tasks of each kind."""
    compute, write = al.task(bodies.compute), al.io(bodies.write)
    computing = program.chains * WARM_TASKS_PER_EXECUTOR
    waiting: list[Any] = [compute(bodies.START, WARM_ROUNDS + i) for i in range(computing)]
    for i in range(program.writers * WARM_TASKS_PER_EXECUTOR):
        chain, step = i % program.chains, i // program.chains % program.steps
        waiting.append(write(program.path(chain, step), bodies.START, 0, program.direct))
    al.wait_all(waiting)


def alongside(program: Program) -> Answer:
    """Ours: compute tasks and I/O tasks, called in the order of the sequential program."""
    compute, write = al.task(bodies.compute), al.io(bodies.write)
    with session(program):
        warm_up(program)

        def run() -> States:
            states: list[Any] = [bodies.START] * program.chains
            files = []
            for step in range(program.steps):
                for chain in range(program.chains):
                    states[chain] = compute(states[chain], program.rounds)
                    name = program.path(chain, step)
                    arguments = (states[chain], program.file_bytes, program.direct)
                    files.append(write(name, *arguments))
            al.wait_all(files)
            return [al.wait(state) for state in states]

        return timed(program, run)


def timed(program: Program, run: Callable[[], States]) -> Answer:
    """Time a run of the whole program; check its results and its files."""
    clock = Clock(tree_cpu_s)
    states = run()
    answer = clock.answer()
    if len(set(states)) != 1 or len(states) != program.chains:
        raise RuntimeError("the chains did not give the same result")
    for chain in range(program.chains):
        with Path(program.path(chain, program.steps - 1)).open("rb") as file:
            if file.read(len(states[chain])) != states[chain]:
                raise RuntimeError("a file does not hold the state that was computed")
    return answer


WAYS: dict[str, Callable[[Program], Answer]] = {
    "io_alone": io_alone,
    "io_alone_limited": io_alone_limited,
    "compute_alone": compute_alone,
    "side_by_side": side_by_side,
    "by_hand": by_hand,
    "blocking": blocking,
    "alongside": alongside,
}


def main() -> None:
    """Run the way asked for, write its answer."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=WAYS)
    parser.add_argument("program", type=Program.from_json)
    parser.add_argument("answer", type=Path)
    options = parser.parse_args()
    options.answer.write_text(json.dumps(WAYS[options.way](options.program)))


if __name__ == "__main__":
    main()
