"""Base quality recalibration: what the qualities of a sample say, held against its mismatches.

By reported quality, and by sequencing cycle, the share of bases that differ from the reference is
counted where no variant is suspected; both shift the quality of every base. It is the method of
GATK's BaseRecalibrator with fewer covariates, and without known variants: a position at which a
third of the bases differ is taken for one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from . import pileup as piled
from . import sam
from .data import Genome

Floats = npt.NDArray[np.float64]

WEIGHT = 200
"""How many bases of observation the reported quality counts as."""

QUALITY_MIN, QUALITY_MAX = 2, 41
SUSPECTED_SHARE = 1 / 3


def recalibrated(genome: Genome, records: Sequence[sam.Record]) -> list[sam.Record]:
    """Return the records with new qualities, and those of the sequencer in the tag OQ."""
    bases, pileup = piled.bases_of(records), piled.pile(records)
    quality = _new_qualities(genome, bases, pileup)
    text = (quality + 33).astype(np.uint8).tobytes().decode("ascii")
    result, at = [], 0
    for record in records:
        own = text[at : at + len(record.sequence)]
        at += len(own)
        result.append(record._replace(quality=own, tags=(*record.tags, f"OQ:Z:{record.quality}")))
    return result


def _new_qualities(genome: Genome, bases: piled.Bases, pileup: piled.Pileup) -> piled.Ints:
    reference = piled.codes(genome.sequence)
    differs = bases.code[pileup.base] != reference[pileup.position]
    depth = np.bincount(pileup.position, minlength=len(reference))
    differing = np.bincount(pileup.position, differs, len(reference))
    known = ~(differing >= SUSPECTED_SHARE * depth)[pileup.position]
    known &= bases.code[pileup.base] < len(piled.LETTERS)
    base, differs = pileup.base[known], differs[known]

    by_quality = np.arange(bases.quality.max() + 1)
    shift = _shift(bases.quality[base], differs, 10 ** (-by_quality / 10))
    reported = bases.quality + shift[bases.quality]
    error = 10 ** (-reported[base] / 10)
    cycles = np.bincount(bases.cycle[base], minlength=bases.cycle.max() + 1)
    expected = np.bincount(bases.cycle[base], error, len(cycles))
    mean = np.where(cycles, expected / np.maximum(cycles, 1), error.mean() if len(error) else 1.0)
    quality = reported + _shift(bases.cycle[base], differs, mean)[bases.cycle]
    return np.clip(np.rint(quality), QUALITY_MIN, QUALITY_MAX).astype(np.int32)


def _shift(covariate: piled.Ints, differs: npt.NDArray[np.bool_], expected: Floats) -> Floats:
    """Return by value of a covariate how much higher the quality is than its error rate says."""
    count = np.bincount(covariate, minlength=len(expected))
    errors = np.bincount(covariate, differs, len(expected))
    observed = (errors + WEIGHT * expected) / (count + WEIGHT)
    shift: Floats = -10 * np.log10(observed / expected)
    return shift
