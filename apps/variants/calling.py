"""Calling variants: how likely each base is at each position, in one sample and in all of them.

A virus has one copy of its genome (ploidy 1), so a genotype is a base. Single-base variants are
called, insertions and deletions are not. Files are VCF 4.2; that of one sample has a line for
every position, as GATK's GVCF with BP_RESOLUTION has, so that a missing call can be told from a
position like the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import pileup as piled
from . import sam
from .data import Genome

Likelihoods = npt.NDArray[np.int16]

QUALITY_MIN = 13
"""Bases below it are no evidence."""

CALL_MIN, DEPTH_MIN = 30, 4
"""A variant is called if so much (phred) speaks against the reference, on so many fragments."""

LIKELIHOOD_MAX = 9999
BASES = len(piled.LETTERS)


class Evidence(NamedTuple):
    """By position and base of LETTERS: phred-scaled likelihood (the best is 0), and the depth."""

    likelihoods: Likelihoods
    depth: Likelihoods


def evidence(genome: Genome, records: Sequence[sam.Record]) -> Evidence:
    """Return how likely each base is at each position of the genome."""
    bases = piled.bases_of(records)
    pileup = piled.once_a_fragment(piled.pile(records), bases)
    code, quality = bases.code[pileup.base], bases.quality[pileup.base]
    usable = (quality >= QUALITY_MIN) & (code < BASES)
    code, position = code[usable], pileup.position[usable]
    error = 10 ** (-quality[usable] / 10)
    size = len(genome.sequence)
    cell = position * BASES + code
    other = np.bincount(position, np.log10(error / 3), size)
    own = np.bincount(cell, np.log10(1 - error) - np.log10(error / 3), size * BASES)
    logs = other[:, None] + own.reshape(size, BASES)
    phred = np.rint(10 * (logs.max(axis=1, keepdims=True) - logs))
    depth = np.bincount(cell, minlength=size * BASES).reshape(size, BASES)
    return Evidence(np.minimum(phred, LIKELIHOOD_MAX).astype(np.int16), depth.astype(np.int16))


def _header(genome: Genome, samples: Sequence[str], lines: Sequence[str]) -> str:
    columns = ("#CHROM", "POS", "ID", "REF", "ALT", "QUAL", "FILTER", "INFO", "FORMAT", *samples)
    formats = (
        '##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">',
        '##FORMAT=<ID=DP,Number=1,Type=Integer,Description="Fragments on this position">',
    )
    contig = f"##contig=<ID={genome.name},length={len(genome.sequence)}>"
    return "\n".join(("##fileformat=VCFv4.2", contig, *formats, *lines, "\t".join(columns), ""))


def gvcf(genome: Genome, sample: str, found: Evidence) -> str:
    """Return every position of a sample: the reference's base first, then the others."""
    head = _header(genome, [sample], (
        '##FORMAT=<ID=AD,Number=R,Type=Integer,Description="Fragments with each base">',
        '##FORMAT=<ID=PL,Number=G,Type=Integer,Description="Phred-scaled likelihoods">',
    ))  # fmt: skip
    reference = piled.codes(genome.sequence)
    others = np.array([[at for at in range(BASES) if at != code] for code in range(BASES)])
    order = np.concatenate((reference[:, None], others[reference]), axis=1)
    depth = np.take_along_axis(found.depth, order, axis=1)
    likelihoods = np.take_along_axis(found.likelihoods, order, axis=1)
    best = likelihoods.argmin(axis=1)
    alternatives = [",".join(piled.LETTERS[at] for at in row) for row in others]
    rows = zip(reference.tolist(), best.tolist(), depth.tolist(), likelihoods.tolist(), strict=True)
    lines = []
    for position, (code, genotype, deep, likely) in enumerate(rows, 1):
        all_deep = sum(deep)
        called = genotype if all_deep else "."
        lines.append(
            f"{genome.name}\t{position}\t.\t{piled.LETTERS[code]}\t{alternatives[code]}\t"
            f"{likely[0]}\t.\t.\tGT:DP:AD:PL\t{called}:{all_deep}:"
            f"{','.join(map(str, deep))}:{','.join(map(str, likely))}\n"
        )
    return head + "".join(lines)


def joint(genome: Genome, samples: Sequence[str], found: Sequence[Evidence]) -> str:
    """Return the variants that any sample has, with the genotypes of all samples.

    INFO says in how many samples there are enough fragments (NS), and in which share of these
    each alternative was called (AF).
    """
    reference = piled.codes(genome.sequence)
    likelihoods = np.stack([one.likelihoods for one in found])
    depth = np.stack([one.depth.sum(axis=1) for one in found])
    against = np.take_along_axis(likelihoods, reference[None, :, None], axis=2)[:, :, 0]
    called = (against >= CALL_MIN) & (depth >= DEPTH_MIN)
    genotype = np.where(called, likelihoods.argmin(axis=2), reference)
    genotype[depth < DEPTH_MIN] = BASES  # not known
    lines = []
    for at in np.flatnonzero(called.any(axis=0)):
        own = genotype[:, at]
        known = own[own < BASES]
        present = [code for code in np.unique(known).tolist() if code != reference[at]]
        number = {int(reference[at]): "0", BASES: "."}
        number |= {code: str(allele) for allele, code in enumerate(present, 1)}
        shares = ",".join(f"{(known == code).mean():.3f}" for code in present)
        genotypes = "\t".join(
            f"{number[code]}:{deep}"
            for code, deep in zip(own.tolist(), depth[:, at].tolist(), strict=True)
        )
        alternatives = ",".join(piled.LETTERS[code] for code in present)
        quality = against[called[:, at], at].max()
        lines.append(
            f"{genome.name}\t{at + 1}\t.\t{genome.sequence[at]}\t"
            f"{alternatives}\t{quality}\tPASS\t"
            f"NS={len(known)};AF={shares}\tGT:DP\t{genotypes}\n"
        )
    return _header(genome, samples, (
        '##FILTER=<ID=PASS,Description="All filters passed">',
        '##INFO=<ID=NS,Number=1,Type=Integer,Description="Samples with enough fragments">',
        '##INFO=<ID=AF,Number=A,Type=Float,Description="Share of these with the base">',
    )) + "".join(lines)  # fmt: skip
