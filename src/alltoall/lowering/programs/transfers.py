"""The first passes of lowering: transfers between ranks, without switches, and where chunks lie.

A chunk starts in its source's input buffer, ends in its destination's output buffer, and on the
way lies in the scratch buffer of the ranks that forward it, from the step in which it arrives to
the last step in which it is sent on. Space is free again from the step after that, unless
`reuse` is off: runtimes that write into each other's memory have nobody to ask whether it is. With
a `rest`, it is free so many steps later: who sends without barriers hears late that it was sent.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import Buffer, check_space
from alltoall.ir.schedule import Schedule, receivers_of


@dataclass(frozen=True, eq=False)
class Transfers:
    """Transfer i: in `step[i]`, rank `sender[i]` gives rank `receiver[i]` one chunk.

    Ranks are positions in `topology.terminals`. The chunk is number `chunk[i]` of the shard from
    rank `source[i]` to rank `destination[i]`. Ordered by step, sender, receiver, then chunk.
    """

    ranks: int
    chunks: Chunks
    steps: int
    step: Ints
    sender: Ints
    receiver: Ints
    source: Ints
    destination: Ints
    chunk: Ints

    @property
    def count(self) -> int:
        """The number of transfers."""
        return len(self.step)

    def chunk_ids(self) -> Ints:
        """Return one number per chunk: by source, then destination, then chunk."""
        return (self.source * self.ranks + self.destination) * self.chunks.most + self.chunk


def transfers_of(schedule: Schedule) -> Transfers:
    """Return the transfers between ranks; hops through nodes that are not terminals are joined."""
    chunks, topology = plain_chunks(schedule), schedule.problem.topology
    check_space(chunks.stored, [0])
    rank = topology.position
    sender, receiver = rank[topology.tail[schedule.link]], receivers_of(schedule)
    starts = np.flatnonzero(sender >= 0)
    _refuse_returns(schedule, sender, receiver)
    order = starts[
        np.lexsort(
            (
                schedule.chunk[starts],
                schedule.destination[starts],
                schedule.source[starts],
                receiver[starts],
                sender[starts],
                schedule.step[starts],
            )
        )
    ]
    return Transfers(
        ranks=len(topology.terminals),
        chunks=chunks,
        steps=schedule.steps,
        step=schedule.step[order],
        sender=sender[order],
        receiver=receiver[order],
        source=schedule.source[order],
        destination=schedule.destination[order],
        chunk=schedule.chunk[order],
    )


def plain_chunks(schedule: Schedule) -> Chunks:
    """Return the chunks of a schedule: one number for all, also where that is said of each pair."""
    ranks, matrix = schedule.chunks.ranks, schedule.problem.demand.matrix
    pairs = ~np.eye(ranks, dtype=np.bool_)
    if schedule.chunks.counts is None:
        return schedule.chunks
    alike = matrix is None or np.ptp(matrix[pairs]) == 0
    if not alike or np.ptp(schedule.chunks.counts[pairs]) > 0:
        return schedule.chunks
    return Chunks(ranks, schedule.chunks.most)


def _refuse_returns(schedule: Schedule, sender: Ints, receiver: Ints) -> None:
    """Raise if a chunk comes back to its sender within a step: no rank can wait for itself."""
    returned = np.flatnonzero((sender == receiver) & (sender >= 0))
    if len(returned):
        send = int(returned[0])
        raise InputError(
            f"in step {schedule.step[send]} rank {sender[send]} sends chunk {schedule.chunk[send]} "
            f"of the shard from rank {schedule.source[send]} to rank {schedule.destination[send]} "
            "through a switch to itself; run `alltoall verify` on the schedule"
        )


def refuse_uneven(schedule: Schedule, target: str) -> None:
    """Raise for a target all of whose shards are equal if those of the schedule are not."""
    if plain_chunks(schedule).uniform:
        return
    demand = schedule.problem.demand
    most = float(demand.of(schedule.source, schedule.destination).max(initial=0.0))
    padded = most * demand.terminals * (demand.terminals - 1) / demand.total - 1.0
    raise InputError(
        f"{target} has shards of one size only, and this schedule is for an uneven demand or for "
        "groups; lower it to messages, mscclpp or oneccl, or pad every shard to the largest and "
        "schedule the uniform all-to-all (no --demand, no --group), which moves "
        f"{padded:.0%} more data"
    )


__all__ = ["Buffer", "BufferPlacement", "place"]


@dataclass(frozen=True, eq=False)
class BufferPlacement:
    """Where each transfer reads at its sender and writes at its receiver."""

    transfers: Transfers
    from_buffer: Ints
    from_offset: Ints
    to_buffer: Ints
    to_offset: Ints
    scratch: Ints
    """The size of each rank's scratch buffer."""


def place(transfers: Transfers, reuse: bool = True, rest: int = 0) -> BufferPlacement:
    """Allocate scratch space; chunks that arrive together lie together where they fit."""
    pairs, chunks = (transfers.source, transfers.destination), transfers.chunks
    fresh = transfers.sender == transfers.source
    forwards = np.flatnonzero(~fresh)
    origin = _origins(transfers, forwards)
    delivered = transfers.receiver == transfers.destination
    until = _until(transfers, forwards, origin) + (rest if reuse else transfers.steps)
    slots, sizes = _allocate(transfers, np.flatnonzero(~delivered), until)
    to_buffer = np.where(delivered, Buffer.OUTPUT, Buffer.SCRATCH)
    to_offset = np.where(delivered, chunks.in_output(*pairs) + transfers.chunk, slots)
    from_buffer = np.full(transfers.count, Buffer.INPUT, dtype=np.int64)
    from_offset = chunks.in_input(*pairs) + transfers.chunk
    from_buffer[forwards], from_offset[forwards] = to_buffer[origin], to_offset[origin]
    return BufferPlacement(transfers, from_buffer, from_offset, to_buffer, to_offset, sizes)


def _origins(transfers: Transfers, forwards: Ints) -> Ints:
    """Return, for each transfer in `forwards`, the transfer that brought its chunk to its sender.

    What arrives in a step can leave from the next step on.
    """
    ids = transfers.chunk_ids().tolist()
    step, sender = transfers.step.tolist(), transfers.sender.tolist()
    receiver = transfers.receiver.tolist()
    brought: dict[tuple[int, int], int] = {}
    arrived = 0
    origin = np.empty(len(forwards), dtype=np.int64)
    for position, each in enumerate(forwards.tolist()):
        while step[arrived] < step[each]:
            brought[receiver[arrived], ids[arrived]] = arrived
            arrived += 1
        found = brought.get((sender[each], ids[each]))
        if found is None:
            raise InputError(_missing(transfers, each))
        origin[position] = found
    return origin


def _missing(transfers: Transfers, each: int) -> str:
    return (
        f"in step {transfers.step[each]} rank {transfers.sender[each]} sends chunk "
        f"{transfers.chunk[each]} of the shard from rank {transfers.source[each]} to rank "
        f"{transfers.destination[each]} before it has received it; run `alltoall verify` on the "
        "schedule"
    )


def _until(transfers: Transfers, forwards: Ints, origin: Ints) -> Ints:
    """Return the step from which on nobody needs what each transfer brought to where it lies."""
    until = transfers.step + 1
    np.maximum.at(until, origin, transfers.step[forwards] + 1)
    return until


def _allocate(transfers: Transfers, stored: Ints, until: Ints) -> tuple[Ints, Ints]:
    """Return the slot of each transfer in `stored` (0 for the others), and the ranks' sizes."""
    slots = np.zeros(transfers.count, dtype=np.int64)
    free_from: list[Ints] = [np.zeros(0, dtype=np.int64) for _ in range(transfers.ranks)]
    for group in _arrivals(transfers, stored):
        rank, step = int(transfers.receiver[group[0]]), int(transfers.step[group[0]])
        slots[group] = _fit(free_from[rank], len(group), step)
        free_from[rank] = _occupied(free_from[rank], slots[group], until[group])
    return slots, np.array([len(free) for free in free_from], dtype=np.int64)


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
