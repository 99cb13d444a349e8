"""The first passes of lowering: transfers between ranks, without switches, and places of chunks.

A chunk starts in its source's input buffer, ends in its destination's output buffer, and on the
way lies in the scratch buffer of the ranks that forward it, from the step in which it arrives to
the last step in which it is sent on. Space is free again from the step after that, unless `reuse`
is off: runtimes that write into each other's memory cannot ask its owner. With a `rest`, it is free
so many steps later: without barriers, a sender hears late that a message has left.

Moves are runs of chunks that one rank gives another in one instruction.

Their passes: `duplicate` runs the schedule on K parallel channels, each with its own Kth of every
shard; `merge` joins moves whose chunks lie next to each other at both ends; `spread` deals long
FIFOs out to several; `balance` limits how many of them share a channel.
"""

from collections import Counter
from dataclasses import dataclass, fields, replace
from itertools import pairwise

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, run_starts
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


def transfers_of(schedule: Schedule) -> Transfers:
    """Return the transfers between ranks; hops through nodes that are not terminals are joined."""
    chunks, topology = plain_chunks(schedule), schedule.problem.topology
    check_space(chunks.stored, [0])
    rank = topology.position
    sender, receiver = rank[topology.tail[schedule.link]], receivers_of(schedule)
    starts = np.flatnonzero(sender >= 0)
    for send in np.flatnonzero((sender == receiver) & (sender >= 0))[:1].tolist():
        # No rank can wait for itself within a step.
        raise InputError(_describe_send(schedule, sender, send, "through a switch to itself"))
    keys = (schedule.chunk, schedule.destination, schedule.source, receiver, sender, schedule.step)
    order = starts[np.lexsort([key[starts] for key in keys])]
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
    """Return the chunks of a schedule, as one number if all pairs have the same."""
    ranks, matrix = schedule.chunks.ranks, schedule.problem.demand.matrix
    pairs = ~np.eye(ranks, dtype=np.bool_)
    tables = [table for table in (schedule.chunks.counts, matrix) if table is not None]
    if schedule.chunks.counts is None or any(np.ptp(table[pairs]) > 0 for table in tables):
        return schedule.chunks
    return Chunks(ranks, schedule.chunks.most)


def _describe_send(of: Schedule | Transfers, sender: Ints, index: int, problem: str) -> str:
    return (
        f"in step {of.step[index]} rank {sender[index]} sends chunk {of.chunk[index]} of the shard "
        f"from rank {of.source[index]} to rank {of.destination[index]} {problem}; "
        "run `alltoall verify` on the schedule"
    )


def refuse_uneven(schedule: Schedule, target: str) -> None:
    """Raise if a target needs equal shards and those of the schedule differ."""
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


@dataclass(frozen=True, eq=False)
class BufferPlacement:
    """The places where transfers read and write."""

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
    # The last transfer that brought each chunk to its sender: what arrives in a step can leave from
    # the next step on.
    pair = transfers.source * transfers.ranks + transfers.destination
    chunk: Ints = pair * transfers.chunks.most + transfers.chunk
    ids, steps = np.unique(chunk, return_inverse=True)[1], transfers.steps + 1
    arrival = (transfers.receiver * transfers.count + ids) * steps + transfers.step
    departure = (transfers.sender * transfers.count + ids) * steps + transfers.step
    order = np.argsort(arrival, kind="stable")
    origin = order[np.searchsorted(arrival[order], departure[forwards]) - 1]
    brought = transfers.receiver[origin] == transfers.sender[forwards]
    brought &= (ids[origin] == ids[forwards]) & (transfers.step[origin] < transfers.step[forwards])
    for missing in forwards[~brought][:1]:
        problem = "before it has received it"
        raise InputError(_describe_send(transfers, transfers.sender, int(missing), problem))
    delivered = transfers.receiver == transfers.destination
    # From this step on nobody needs the chunk in the place to which a transfer brought it.
    until = transfers.step + 1
    np.maximum.at(until, origin, transfers.step[forwards] + 1)
    until += rest if reuse else transfers.steps
    slots, sizes = _allocate(transfers, np.flatnonzero(~delivered), until)
    to_buffer = np.where(delivered, Buffer.OUTPUT, Buffer.SCRATCH)
    to_offset = np.where(delivered, chunks.in_output(*pairs) + transfers.chunk, slots)
    from_buffer = np.full(transfers.count, Buffer.INPUT, dtype=np.int64)
    from_offset = chunks.in_input(*pairs) + transfers.chunk
    from_buffer[forwards], from_offset[forwards] = to_buffer[origin], to_offset[origin]
    return BufferPlacement(transfers, from_buffer, from_offset, to_buffer, to_offset, sizes)


def _allocate(transfers: Transfers, stored: Ints, until: Ints) -> tuple[Ints, Ints]:
    """Return the slot of each transfer in `stored` (0 for the others), and the ranks' sizes."""
    slots = np.zeros(transfers.count, dtype=np.int64)
    free_from: list[Ints] = [np.zeros(0, dtype=np.int64) for _ in range(transfers.ranks)]
    keys = (transfers.step, transfers.sender, transfers.receiver)
    begins = np.flatnonzero(run_starts(*(key[stored] for key in keys)))
    for begin, end in pairwise((*begins.tolist(), len(stored))):
        group = stored[begin:end]
        rank, count = int(transfers.receiver[group[0]]), len(group)
        # The first free run of slots; new ones follow the last.
        grown = np.append(free_from[rank], np.zeros(count, dtype=np.int64))
        free = grown <= transfers.step[group[0]]
        runs = np.convolve(free, np.ones(count, dtype=np.int64), mode="valid")
        first = int(np.flatnonzero(runs == count)[0])
        slots[group] = np.arange(first, first + count)
        grown[slots[group]] = until[group]
        free_from[rank] = grown[: max(len(free_from[rank]), first + count)]
    return slots, np.array([len(free) for free in free_from], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ChunkMoves:
    """Move i takes `count[i]` chunks from a place at its sender to a place at its receiver.

    Ordered by step, channel, sender, receiver, and place at the sender: the order of every FIFO.
    """

    ranks: int
    chunks: Chunks
    scratch: Ints
    step: Ints
    channel: Ints
    sender: Ints
    receiver: Ints
    from_buffer: Ints
    from_offset: Ints
    to_buffer: Ints
    to_offset: Ints
    count: Ints

    def take(self, which: Ints) -> "ChunkMoves":
        """Return the moves with these indices, in this order."""
        arrays = [each.name for each in fields(self)[3:]]
        return replace(self, **{key: getattr(self, key)[which] for key in arrays})

    def sort(self) -> "ChunkMoves":
        """Return the moves in order."""
        ends = (self.receiver, self.sender, self.channel, self.step)
        return self.take(np.lexsort((self.from_offset, self.from_buffer, *ends)))


def duplicate(placement: BufferPlacement, channels: int) -> ChunkMoves:
    """Return one move per chunk and channel.

    Channel k carries the kth of `channels` equal parts of every shard, cut into as many chunks as
    the schedule has per shard, and has its own part of every scratch buffer.
    """
    transfers, copies = placement.transfers, np.arange(channels, dtype=np.int64)[:, None]
    count = transfers.chunks.of(transfers.source, transfers.destination)

    def offsets(buffer: Ints, offset: Ints, rank: Ints) -> Ints:
        first = (offset - transfers.chunk) * channels
        in_shards = first + copies * count + transfers.chunk
        in_scratch = copies * placement.scratch[rank] + offset
        return np.where(buffer == Buffer.SCRATCH, in_scratch, in_shards).ravel()

    def repeated(values: Ints) -> Ints:
        return np.tile(values, channels)

    moves = ChunkMoves(
        ranks=transfers.ranks,
        chunks=transfers.chunks.times(channels),
        scratch=placement.scratch * channels,
        step=repeated(transfers.step),
        channel=np.repeat(copies.ravel(), transfers.count),
        sender=repeated(transfers.sender),
        receiver=repeated(transfers.receiver),
        from_buffer=repeated(placement.from_buffer),
        from_offset=offsets(placement.from_buffer, placement.from_offset, transfers.sender),
        to_buffer=repeated(placement.to_buffer),
        to_offset=offsets(placement.to_buffer, placement.to_offset, transfers.receiver),
        count=np.ones(transfers.count * channels, dtype=np.int64),
    )
    return moves.sort()


def merge(moves: ChunkMoves, most: int | None = None) -> ChunkMoves:
    """Join moves that lie next to each other at both ends, to at most `most` chunks each."""
    if not len(moves.step):
        return moves
    ends = (moves.step, moves.channel, moves.sender, moves.receiver)
    shift = moves.from_offset - moves.to_offset
    begins = run_starts(*ends, moves.from_buffer, moves.to_buffer, shift)
    begins[1:] |= np.diff(moves.from_offset) != moves.count[:-1]
    first = np.flatnonzero(begins)
    if most is not None:
        within = np.arange(len(begins)) - first[np.cumsum(begins) - 1]
        begins |= within % most == 0
        first = np.flatnonzero(begins)
    counts = np.add.reduceat(moves.count, first)
    return replace(moves.take(first), count=counts)


def spread(moves: ChunkMoves, parts: int) -> ChunkMoves:
    """Deal the moves of each FIFO out to `parts` channels in turn, so that each holds fewer."""
    if parts == 1:
        return moves
    keys = (moves.channel, moves.receiver, moves.sender)
    order = np.lexsort(keys)
    begins = run_starts(*(key[order] for key in keys))
    turn = np.empty(len(order), dtype=np.int64)
    turn[order] = np.arange(len(order)) - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    return replace(moves, channel=moves.channel * parts + turn % parts).sort()


def balance(moves: ChunkMoves, most: int) -> ChunkMoves:
    """Give FIFOs other channels where a rank would have more than `most` ends on one channel."""
    fifos = np.stack((moves.channel, moves.sender, moves.receiver))
    keys, which = np.unique(fifos, axis=1, return_inverse=True)
    ends: Counter[tuple[int, int]] = Counter()
    taken: set[tuple[int, int, int]] = set()
    channels = np.empty(keys.shape[1], dtype=np.int64)
    for fifo, (sender, receiver) in enumerate(keys[1:].T.tolist()):
        channel = 0
        while (sender, receiver, channel) in taken or max(
            ends[sender, channel], ends[receiver, channel]
        ) >= most:
            channel += 1
        ends.update([(sender, channel), (receiver, channel)])
        taken.add((sender, receiver, channel))
        channels[fifo] = channel
    return replace(moves, channel=channels[which.ravel()]).sort()
