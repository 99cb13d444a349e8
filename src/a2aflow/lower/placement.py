"""Scratch allocation: where each chunk lies at each rank, reusing space by lifetime.

A chunk starts in its source's input buffer, ends in its destination's output buffer, and on the
way lies in the scratch buffer of the ranks that forward it, from the step in which it arrives to
the last step in which it is sent on. Space is free again from the step after that.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from a2aflow.ir.arrays import Ints
from a2aflow.lower.transfers import Transfers


class Buffer(IntEnum):
    """The three buffers of a rank, counted in chunks.

    The shard for rank d lies at `d * chunks_per_shard` in the input, the shard from rank s at
    `s * chunks_per_shard` in the output.
    """

    INPUT = 0
    OUTPUT = 1
    SCRATCH = 2


@dataclass(frozen=True, eq=False)
class Placement:
    """Where each transfer reads at its sender and writes at its receiver."""

    transfers: Transfers
    from_buffer: Ints
    from_offset: Ints
    to_buffer: Ints
    to_offset: Ints
    scratch: Ints
    """The size of each rank's scratch buffer."""


def place(transfers: Transfers) -> Placement:
    """Allocate scratch space; chunks that arrive together lie together where they fit."""
    ids, per_shard = transfers.chunk_ids(), transfers.chunks_per_shard
    delivered = transfers.receiver == transfers.destination
    fresh = transfers.sender == transfers.source
    scratch_in = np.full(transfers.count, -1)
    scratch_out = np.full(transfers.count, -1)
    last_sent = _last_sends(transfers, ids)
    sizes = np.zeros(transfers.ranks, dtype=np.int64)
    free_from: list[Ints] = [np.zeros(0, dtype=np.int64) for _ in range(transfers.ranks)]
    lies: dict[tuple[int, int], int] = {}
    for group in _arrivals(transfers, np.flatnonzero(~delivered)):
        rank, step = int(transfers.receiver[group[0]]), int(transfers.step[group[0]])
        slots = _fit(free_from[rank], len(group), step)
        until = np.array([last_sent.get((rank, int(ids[each])), step) + 1 for each in group])
        free_from[rank] = _occupied(free_from[rank], slots, until)
        sizes[rank] = len(free_from[rank])
        scratch_in[group] = slots
        lies.update({(rank, int(ids[each])): int(s) for each, s in zip(group, slots, strict=True)})
    for each in np.flatnonzero(~fresh):
        scratch_out[each] = lies[int(transfers.sender[each]), int(ids[each])]
    return Placement(
        transfers=transfers,
        from_buffer=np.where(fresh, Buffer.INPUT, Buffer.SCRATCH),
        from_offset=np.where(
            fresh, transfers.destination * per_shard + transfers.chunk, scratch_out
        ),
        to_buffer=np.where(delivered, Buffer.OUTPUT, Buffer.SCRATCH),
        to_offset=np.where(delivered, transfers.source * per_shard + transfers.chunk, scratch_in),
        scratch=sizes,
    )


def _last_sends(transfers: Transfers, ids: Ints) -> dict[tuple[int, int], int]:
    """Return the last step in which each rank sends each chunk; transfers are ordered by step."""
    keys = zip(transfers.sender.tolist(), ids.tolist(), strict=True)
    return dict(zip(keys, transfers.step.tolist(), strict=True))


def _arrivals(transfers: Transfers, which: Ints) -> list[Ints]:
    """Split transfers, in order, where the step, sender or receiver changes."""
    if not len(which):
        return []
    keys = np.stack((transfers.step, transfers.sender, transfers.receiver))[:, which]
    cuts = np.flatnonzero(np.any(np.diff(keys, axis=1) != 0, axis=0)) + 1
    return np.split(which, cuts)


def _fit(free_from: Ints, count: int, step: int) -> Ints:
    """Return `count` slots that are free in `step`: contiguous where possible, new ones last."""
    free = np.append(free_from <= step, np.ones(count, dtype=np.bool_))
    runs = np.convolve(free, np.ones(count, dtype=np.int64), mode="valid")
    begin = int(np.flatnonzero(runs == count)[0])
    return np.arange(begin, begin + count)


def _occupied(free_from: Ints, slots: Ints, until: Ints) -> Ints:
    """Return when each slot is free again, after `slots` have been taken."""
    grown = np.zeros(max(len(free_from), int(slots[-1]) + 1), dtype=np.int64)
    grown[: len(free_from)] = free_from
    grown[slots] = until
    return grown
