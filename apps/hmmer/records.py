"""Hits as plain values, and how lists of plain values look as bytes.

Every field that pyhmmer knows about a hit is kept, so that two runs can be compared exactly.
`pack` and `unpack` write the fields of a named tuple in order, little-endian: `int` and
`float` in 8 bytes, `bool` in 1, `str` as length and UTF-8, a tuple of records as count and
records. A list is its count and its records.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar, get_args, get_type_hints

R = TypeVar("R", bound=NamedTuple)

COUNT = struct.Struct("<Q")
SCALARS = {int: struct.Struct("<q"), float: struct.Struct("<d"), bool: struct.Struct("<?")}


class Domain(NamedTuple):
    """One domain of a hit with its alignment. Coordinates count from 1; scores in bits."""

    env_from: int
    env_to: int
    score: float
    bias: float
    correction: float
    envelope_score: float
    pvalue: float
    c_evalue: float
    i_evalue: float
    reported: bool
    included: bool
    hmm_name: str
    hmm_accession: str
    hmm_from: int
    hmm_to: int
    hmm_length: int
    hmm_sequence: str
    identity_sequence: str
    target_name: str
    target_from: int
    target_to: int
    target_length: int
    target_sequence: str
    posterior_probabilities: str


class Hit(NamedTuple):
    """One sequence found by one profile. An absent accession or description is empty."""

    query: int
    query_name: str
    target: str
    accession: str
    description: str
    length: int
    score: float
    pre_score: float
    sum_score: float
    bias: float
    pvalue: float
    evalue: float
    included: bool
    best_domain: int
    domains: tuple[Domain, ...]


class SequenceHead(NamedTuple):
    """What the bytes of a sequence fragment say about one sequence before its residues."""

    name: str
    accession: str
    description: str
    length: int


class BadRecordError(ValueError):
    """The bytes are not a list of such records."""


def _shape(kind: type[Any]) -> tuple[Any, ...]:
    """Return the type of each field: int, float, bool, str, or the record type of a tuple."""
    if kind not in _shapes:
        hints = get_type_hints(kind)
        _shapes[kind] = tuple((get_args(hints[f]) or (hints[f],))[0] for f in kind._fields)
    return _shapes[kind]


_shapes: dict[type[Any], tuple[Any, ...]] = {}


def _put(record: NamedTuple, out: list[bytes]) -> None:
    for shape, value in zip(_shape(type(record)), record, strict=True):
        if shape is str:
            text = value.encode()
            out += (COUNT.pack(len(text)), text)
        elif shape in SCALARS:
            out.append(SCALARS[shape].pack(value))
        else:
            out.append(COUNT.pack(len(value)))
            for nested in value:
                _put(nested, out)


def pack(records: Sequence[NamedTuple]) -> bytes:
    """Return the bytes of a list of records of one type."""
    out = [COUNT.pack(len(records))]
    for record in records:
        _put(record, out)
    return b"".join(out)


class _Reader:
    def __init__(self, data: bytes | memoryview) -> None:
        self.data = memoryview(data)
        self.at = 0

    def take(self, size: int) -> memoryview:
        piece = self.data[self.at : self.at + size]
        if len(piece) != size:
            raise BadRecordError(f"the records end at byte {len(self.data)}, in the middle of one")
        self.at += size
        return piece

    def count(self) -> int:
        value: int = COUNT.unpack(self.take(COUNT.size))[0]
        if value > len(self.data):
            raise BadRecordError(f"a length of {value} at byte {self.at - COUNT.size} is too large")
        return value

    def record(self, kind: type[Any]) -> Any:
        values: list[Any] = []
        for shape in _shape(kind):
            if shape is str:
                values.append(str(self.take(self.count()), "utf-8"))
            elif shape in SCALARS:
                scalar = SCALARS[shape]
                values.append(scalar.unpack(self.take(scalar.size))[0])
            else:
                values.append(tuple(self.record(shape) for _ in range(self.count())))
        return kind(*values)


def unpack(kind: type[R], data: bytes | memoryview) -> tuple[list[R], int]:
    """Return the records at the start of `data` and how many bytes they took.

    Raises BadRecordError if the bytes end too early or a length makes no sense.
    """
    reader = _Reader(data)
    return [reader.record(kind) for _ in range(reader.count())], reader.at
