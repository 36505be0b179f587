"""Finds the input in the installed wheels and splits it into fragments.

The profile HMMs are the data files of the wheel `bigecyhmm`, the proteome is test data of the
wheel `pyhmmer`.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from pyhmmer.easel import Alphabet, DigitalSequence, DigitalSequenceBlock, SequenceFile
from pyhmmer.plan7 import HMM, HMMFile

from apps.common import wheels
from apps.common.spans import Span, now_ns

from .records import SequenceHead, pack, unpack

Bytes = npt.NDArray[np.uint8]

HMM_WHEEL, HMM_FOLDER = "bigecyhmm", "hmm_databases/hmm_files/"
SEQUENCE_WHEEL, SEQUENCE_FILE = "pyhmmer", "tests/data/seqs/938293.PRJEB85.HG003687.faa"
REMEDY = {
    HMM_WHEEL: "python -m pip install --no-deps bigecyhmm",
    SEQUENCE_WHEEL: "python -m pip install pyhmmer",
}
PACK_LEVEL = 1  # zlib: profiles shrink to 40 % at little cost


class Input(NamedTuple):
    """The whole input: one file a profile, and one file of sequences."""

    hmm_files: tuple[Path, ...]
    sequence_file: Path
    sequences: int
    residues: tuple[int, ...]

    @property
    def database_size(self) -> float:
        """How many targets the whole database has: Z of every E-value."""
        return float(self.sequences)


class Fragment(NamedTuple):
    """A part of the input, digitised: ready to search, and packed for checkpoints."""

    first: int
    items: int
    data: Bytes
    packed: Bytes
    span: Span


def find_input(every_hmm: int = 1) -> Input:
    """Find the whole input, or every `every_hmm`-th profile with all sequences.

    Raises DataMissingError with the pip command if a wheel is not installed.
    """
    hmms = wheels.files_of(
        HMM_WHEEL,
        lambda name: name.startswith(HMM_FOLDER) and name.endswith(".hmm"),
        "the profile HMMs",
        REMEDY[HMM_WHEEL],
    )
    (sequence_file,) = wheels.files_of(
        SEQUENCE_WHEEL,
        lambda name: name == SEQUENCE_FILE,
        "the proteome's sequences",
        REMEDY[SEQUENCE_WHEEL],
    )
    lengths = tuple(len(sequence) for sequence in read_sequences(sequence_file))
    return Input(tuple(hmms[::every_hmm]), sequence_file, len(lengths), lengths)


def read_sequences(path: Path) -> DigitalSequenceBlock[Any]:
    """Read a FASTA file of proteins as digitised sequences."""
    with SequenceFile(str(path), digital=True, alphabet=Alphabet.amino()) as file:
        block = file.read_block()
    assert isinstance(block, DigitalSequenceBlock)
    return block


def read_hmms(paths: Sequence[Path]) -> list[HMM[Any]]:
    """Read profile HMMs, one or more a file, in order."""
    hmms: list[HMM[Any]] = []
    for path in paths:
        with HMMFile(str(path)) as file:
            hmms.extend(file)
    return hmms


def split(weights: Sequence[int], parts: int) -> list[range]:
    """Cut a row of weights into `parts` runs, none empty, of about equal weight.

    Raises ValueError if there are fewer items than parts.
    """
    if not 1 <= parts <= len(weights):
        raise ValueError(f"cannot cut {len(weights)} items into {parts} fragments")
    total, reached = sum(weights), 0
    ends: list[int] = []
    for index, weight in enumerate(weights):
        reached += weight
        left = parts - len(ends)
        enough = reached * parts >= total * (len(ends) + 1)
        if left > 1 and (enough or len(weights) - index - 1 == left - 1):
            ends.append(index + 1)
    bounds = [0, *ends, len(weights)]
    return [range(a, b) for a, b in pairwise(bounds)]


def as_bytes_array(content: bytes) -> Bytes:
    """Return bytes as an array, which is passed between processes without copying."""
    return np.frombuffer(content, dtype=np.uint8)


def _fragment(first: int, items: int, data: bytes, start_ns: int) -> Fragment:
    packed = zlib.compress(data, PACK_LEVEL)
    span = Span("split", start_ns, now_ns())
    return Fragment(first, items, as_bytes_array(data), as_bytes_array(packed), span)


def digitise_hmms(first: int, paths: Sequence[Path]) -> Fragment:
    """Read the profiles of a fragment and keep them in HMMER's binary format."""
    start_ns = now_ns()
    out = io.BytesIO()
    hmms = read_hmms(paths)
    for hmm in hmms:
        hmm.write(out, binary=True)
    return _fragment(first, len(hmms), out.getvalue(), start_ns)


def digitise_sequences(path: Path, part: range) -> Fragment:
    """Read the sequences of a fragment and keep names and residue codes."""
    start_ns = now_ns()
    block = read_sequences(path)[part.start : part.stop]
    heads = [
        SequenceHead(s.name or "", s.accession or "", s.description or "", len(s)) for s in block
    ]
    residues = b"".join(bytes(memoryview(s.sequence)) for s in block)
    return _fragment(part.start, len(part), pack(heads) + residues, start_ns)


def hmms_of(data: bytes | memoryview) -> list[HMM[Any]]:
    """Return the profiles of a fragment's data."""
    with closing(HMMFile(io.BytesIO(data))) as file:
        return list(file)


def sequences_of(data: bytes | memoryview) -> DigitalSequenceBlock[Any]:
    """Return the sequences of a fragment's data."""
    alphabet, view = Alphabet.amino(), memoryview(data)
    heads, at = unpack(SequenceHead, view)
    block = DigitalSequenceBlock(alphabet)
    for head in heads:
        block.append(
            DigitalSequence(
                alphabet,
                name=head.name,
                accession=head.accession or None,
                description=head.description or None,
                sequence=bytes(view[at : at + head.length]),
            )
        )
        at += head.length
    return block
