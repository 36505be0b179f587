"""What an application does before it imports anything that starts threads."""

from __future__ import annotations

import os


def keep_to_one_processor() -> None:
    """Have NumPy keep to one processor here, as it does in a worker. Before NumPy is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ.setdefault(name, "1")
