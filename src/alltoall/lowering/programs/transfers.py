"""The first step of lowering: what ranks send to each other, without switches in between."""

from dataclasses import dataclass

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import check_space
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
