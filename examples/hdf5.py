"""An HDF5 file that is written while the program computes: h5py, one line more."""

import tempfile
from pathlib import Path

import h5py
import numpy as np

import alongside as al

STEPS = 5


def advance(field: np.ndarray) -> np.ndarray:
    for _ in range(20):
        field = (field + np.roll(field, 1, 0) + np.roll(field, -1, 0)) / 3
    return field


def main() -> None:
    field = np.zeros((512, 512))
    field[256] = 1.0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "field.h5"
        with al.hdf5.enabled(), h5py.File(path, "w") as file:
            for step in range(STEPS):
                file[f"step{step}"] = field  # copied; written while the next line computes
                field = advance(field)
        with h5py.File(path) as file:
            for name, dataset in file.items():
                print(f"{name}: the highest of {dataset.size} values is {dataset[...].max():.6f}")


if __name__ == "__main__":
    main()
