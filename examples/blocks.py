"""Objects that tasks change: `InOut`, `Concurrent` and `Commutative`."""

import numpy as np

import alongside as al

BLOCKS = 4


@al.task
def scale(array: al.InOut[np.ndarray], factor: float) -> None:
    """One after the other, in the order of the calls."""
    array *= factor


@al.task
def fill_block(array: al.Concurrent[np.ndarray], block: int) -> None:
    """All at the same time, in shared memory, each in its own part."""
    width = len(array) // BLOCKS
    array[block * width : (block + 1) * width] += block


@al.task
def tally(totals: al.Commutative[dict[int, float]], block: int, array: np.ndarray) -> None:
    """One at a time, in whatever order they become ready."""
    width = len(array) // BLOCKS
    totals[block] = float(array[block * width : (block + 1) * width].sum())


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    array = np.ones(1000)
    totals: dict[int, float] = {}
    scale(array, 2.0)
    for block in range(BLOCKS):
        fill_block(array, block)
    scale(array, 0.5)
    for block in range(BLOCKS):
        tally(totals, block, array)
    print("sum of the array:", al.wait(array).sum())
    print("by block:", sorted(al.wait(totals).items()))


if __name__ == "__main__":
    main()
