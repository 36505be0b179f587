"""The phases of the pipeline for a sample: each makes the text of one file from that of another.

preprocess ─> map_reads ─> mark_duplicates ─> recalibrate ─> call ──┐ of every sample
  FASTQ         SAM            SAM                SAM         GVCF  └─> call_jointly: VCF

They are those of the published pipeline in spirit (Elshazly's thesis, section 4.5.3.2, table 4.1):
data processing, data mapping and variant calling after the Broad Institute's Best Practices.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import calling, data, duplicates, mapping, recalibration, sam


def name_of(sample: int) -> str:
    """Return the name of a sample."""
    return f"sample-{sample:03}"


def preprocess(given: data.Input, sample: int) -> str:
    """Draw the pairs of a sample and trim their reads."""
    pairs = data.draw(data.read_pairs(given.reads), sample, given.share)
    return data.fastq(data.Pair(*map(mapping.trimmed, pair)) for pair in pairs)


def map_reads(given: data.Input, sample: int, fastq: str) -> str:
    """Find where the reads belong; they stay in their order."""
    genome = data.read_genome(given.genome)
    pairs = (mapping.map_pair(genome, pair) for pair in data.pairs_of(fastq))
    return sam.text(genome, "unsorted", name_of(sample), (one for pair in pairs for one in pair))


def mark_duplicates(given: data.Input, sample: int, mapped: str) -> str:
    """Tell the reads of a pair of each other, mark duplicates, and sort by position."""
    genome, name, records = data.read_genome(given.genome), name_of(sample), sam.parse(mapped)
    mates = zip(records[::2], records[1::2], strict=True)
    pairs = duplicates.marked(duplicates.mated(*both, name) for both in mates)
    return sam.text(genome, "coordinate", name, duplicates.by_coordinate(pairs))


def recalibrate(given: data.Input, sample: int, marked: str) -> str:
    """Correct the qualities of the bases; those of the sequencer are kept beside them."""
    genome = data.read_genome(given.genome)
    records = recalibration.recalibrated(genome, sam.parse(marked))
    return sam.text(genome, "coordinate", name_of(sample), records)


def call(given: data.Input, sample: int, recalibrated: str) -> tuple[str, calling.Evidence]:
    """Say of every position how likely each base is: as a file, and as arrays."""
    genome = data.read_genome(given.genome)
    found = calling.evidence(genome, sam.parse(recalibrated))
    return calling.gvcf(genome, name_of(sample), found), found


def call_jointly(given: data.Input, found: Sequence[calling.Evidence]) -> str:
    """Return the variants of all samples."""
    samples = [name_of(sample) for sample in range(len(found))]
    return calling.joint(data.read_genome(given.genome), samples, found)
