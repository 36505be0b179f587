"""Built-in I/O tasks: arrays go to files and come back, and no Python runs for that meanwhile."""

import tempfile
from typing import Any

import numpy as np

import alongside as al

STEPS = 4
CELLS = 100_000


@al.task
def step(field: np.ndarray, number: int) -> Any:
    """The field after one more step."""
    return np.roll(field, 1) * 0.5 + number


@al.task
def mean(data: bytes) -> float:
    """The mean of what was read from a file."""
    return round(float(np.frombuffer(data).mean()), 3)


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    with tempfile.TemporaryDirectory() as folder:
        field: Any = np.arange(CELLS, dtype=np.float64)
        written = []
        for number in range(STEPS):
            field = step(field, number)
            # Straight from shared memory, while the next step is computed.
            written.append(al.write(f"{folder}/step-{number}", field, durable=True))
        copied = al.copy(f"{folder}/step-{STEPS - 1}", f"{folder}/last")
        first = mean(al.read(f"{folder}/step-0"))
        part = mean(al.read(f"{folder}/last", offset=0, size=800))
        print("bytes written:", al.wait_all(written))
        print("bytes copied:", al.wait(copied))
        print("mean of the first step, and of a part of the last:", al.wait([first, part]))


if __name__ == "__main__":
    main()
