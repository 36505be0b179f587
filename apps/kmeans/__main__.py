"""Lets `python -m apps.kmeans` run the application."""

import os
import sys


def start() -> int:
    """Run the command; NumPy keeps to one processor here as it does in a worker."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    from .run import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
