"""`place_quickly`: chunks on paths in a few rounds, without a goal."""

import numpy as np

from alltoall.ir.arrays import Ints, inner_index
from alltoall.placing.chunks import Chunks
from alltoall.placing.network import Network
from alltoall.placing.place import Placement, PlacementParams, place

TOGETHER_SHARE = 0.7
"""The share of the rounds in which chunks of a pair may move together."""


def place_quickly(
    network: Network, chunks: Chunks, steepness: float, rounds: int, together: int = 1
) -> Placement | None:
    """Place chunks, sorted by their start, in so many rounds; `steepness` is the last.

    In the first rounds, in which one chunk hardly counts, up to `together` chunks of a pair move as
    one, which saves their time. Return None if some chunk has no path.
    """
    growing = np.geomspace(PlacementParams.first, steepness, rounds)
    split = round(TOGETHER_SHARE * rounds) if together > 1 else 0
    start, prices = None, []
    if split:
        coarse, part = _merge(chunks, together)
        params = PlacementParams(last=float(growing[split - 1]), rounds=split, last_rounds=0)
        first = place(network, coarse, 0.0, params)
        if first is None:
            return None
        start, prices = first.table[part], first.prices
    params = PlacementParams(float(growing[split]), steepness, rounds - split, last_rounds=0)
    placed = place(network, chunks, 0.0, params, start)
    if placed is None:
        return None
    return Placement(placed.table, placed.time, placed.repaired, prices + placed.prices)


def _merge(chunks: Chunks, most: int) -> tuple[Chunks, Ints]:
    """Merge up to so many chunks of a pair; also return the merged chunk of each."""
    other = (np.diff(chunks.start) != 0) | (np.diff(chunks.end) != 0)
    first = np.concatenate(([0], 1 + np.flatnonzero(other)))
    counts = np.diff(np.append(first, len(chunks.start)))
    fewer = -(-counts // most)
    inner = inner_index(counts) * np.repeat(fewer, counts) // np.repeat(counts, counts)
    part = np.repeat(np.cumsum(fewer) - fewer, counts) + inner
    size = np.bincount(part, chunks.size).astype(np.float64)
    start, end = (np.repeat(ends[first], fewer) for ends in (chunks.start, chunks.end))
    return Chunks(start, end, size), part
