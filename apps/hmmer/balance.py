"""The published balance of I/O and computation, and how a checkpoint's size follows from it.

Published for this application (MareNostrum 4): 12 nodes of 48 cores, 48 x 48 = 2,304 pairs,
so each core computes 4 pairs one after the other; each pair writes and fsyncs 290 MB to the
node's own SSD, which takes 450 MB/s. All cores of a node write at once, so a pair has
450 / 48 = 9.375 MB/s and its checkpoint takes 30.9 s.

The time to compute a pair is not published. It is inferred from the gain: overlapping
computation and I/O was "more than 38 %" faster than checkpoints as compute tasks. With W
pairs a core, compute time c and I/O time i a pair, no overlap takes W (c + i), and full overlap
takes max(W c + i, c + W i). The gain is largest where c = i, and there it is (W - 1) / 2 W:
37.5 % for W = 4. The published gain reaches that limit (what is above it can come from less
congestion), and no other balance comes near it. So this is the balance used:

    I/O time : compute time = 1 : 1 for every pair, at the storage bandwidth of one core.

On this machine, a pair that computes c seconds therefore writes c x 9.375 MB.
"""

from __future__ import annotations

from collections.abc import Sequence

from apps.common.layers import CORE_BANDWIDTH, NODE_BANDWIDTH, NODE_CORES
from apps.common.report import Row

PAIR_BYTES = 290_000_000
PAIRS_A_CORE = 4
IO_OVER_COMPUTE = 1.0
PUBLISHED_GAIN = 0.38

PAIR_IO_S = PAIR_BYTES / CORE_BANDWIDTH
GAIN_AT_BALANCE = (PAIRS_A_CORE - 1) / (2 * PAIRS_A_CORE)


def checkpoint_bytes(compute_s: float) -> int:
    """Return the size of a checkpoint whose pair computes so long, at the published balance."""
    return round(IO_OVER_COMPUTE * compute_s * CORE_BANDWIDTH)


def explain() -> str:
    """Return the assumption behind the balance, for the program's output."""
    return (
        f"published balance (MareNostrum 4): {PAIR_BYTES / 1e6:.0f} MB a pair, "
        f"{NODE_CORES} cores on a {NODE_BANDWIDTH / 1e6:.0f} MB/s disk, so I/O takes "
        f"{PAIR_IO_S:.1f} s a pair.\n"
        f"  Compute time a pair is not published; assumed equal to the I/O time (1 : 1): with "
        f"{PAIRS_A_CORE} pairs a core\n"
        f"  overlap can gain {GAIN_AT_BALANCE:.1%} at 1 : 1 and less at any other balance, and "
        f'the published gain is "more than {PUBLISHED_GAIN:.0%}".'
    )


def used(rows: Sequence[Row]) -> str:
    """Return the balance of I/O and computation that the first run had, at a core's share."""
    first = rows[0]
    if not first.checkpoints or not first.cpu_s:
        return "balance used: none, as nothing was searched and written"
    size, compute_s = first.written / first.checkpoints, first.cpu_s / first.checkpoints
    io_s = size / CORE_BANDWIDTH
    ratio = f"{io_s / compute_s:.2f} : 1; published {IO_OVER_COMPUTE:.0f} : 1"
    return (
        f"balance used: {size / 1e6:.2f} MB a pair, {io_s:.3f} s at a core's share of "
        f"{CORE_BANDWIDTH / 1e6:.3f} MB/s, to {compute_s:.3f} s of processor time to "
        f"search it\n  (I/O : compute = {ratio})"
    )
