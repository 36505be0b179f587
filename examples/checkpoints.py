"""A simulation that writes a checkpoint a step: the writes run alongside the next steps."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import alongside as al

STEPS = 5


@al.task
def simulate(state: np.ndarray) -> Any:
    """One step of a diffusion on a ring."""
    return state + 0.1 * (np.roll(state, 1) + np.roll(state, -1) - 2 * state)


@al.io(durable=True)
def checkpoint(path: al.FileOut, state: np.ndarray) -> None:
    """When its future is done, the file is on the device."""
    with open(path, "wb") as file:
        np.save(file, state)


def main() -> None:
    """The program: sequential without a session, tasks under one."""
    with tempfile.TemporaryDirectory() as folder:
        state: Any = np.zeros(100_000)
        state[0] = 1000.0
        written = []
        for step in range(STEPS):
            state = simulate(state)
            written.append(checkpoint(f"{folder}/step-{step}.npy", state))
        al.wait_all(written)
        print("files:", sorted(path.name for path in Path(folder).iterdir()))
        print(f"heat at the start: {al.wait(state)[0]:.3f}")


if __name__ == "__main__":
    main()
