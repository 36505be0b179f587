"""The applications: how large their input is, and what is to be reached."""

from __future__ import annotations

from pathlib import Path

from apps.common import release
from apps.domains import run as domains
from apps.pairwise import run as pairwise
from apps.warc import pages
from apps.warc import run as warc

SIZES = {
    "warc": (500, 1000, 2317),
    "pairwise": (12_000, 24_000, 48_000),
    "domains": (64, 128, 256),
}
QUICK_SIZES = {"warc": (200,), "pairwise": (6000,), "domains": (32,)}
"""By application: pages; pairs of reads; subdomains."""

TOTAL_MAX = {"warc": 0.65, "pairwise": 0.65, "domains": 0.55}
"""Eager total over lazy, at the largest size.

`domains` can gain half at most (its producer and its consumers are one phase each, and the longer
one remains): 0.5, and the tenth that an eager run may be over the ideal.
"""

IDEAL_MAX = 1.1
"""Eager total over the ideal overlap."""


def make(name: str, size: int, folder: Path, *, quick: bool) -> release.Application:
    """Return an application; its input is made in `folder`, or found there.

    Raises an ImportError where what it needs is not installed, and its own error where its input
    cannot be had.
    """
    if name == "domains":
        return domains.Domains(folder / "mesh", size)
    if name == "pairwise":
        return pairwise.Pairwise(folder / "reads", size)
    assert name == "warc"
    archive = warc.find_archive(
        pages.cache_folder(), None, warc.QUICK_PAGES if quick else None, compressed=False
    )
    return warc.Warc(archive, size)
