"""From a schedule to the messages of its ranks, which `ir.messages` defines."""

import numpy as np

from alltoall.errors import InputError
from alltoall.ir.arrays import rows, run_starts, starts_of
from alltoall.ir.files.messages import messages_text
from alltoall.ir.messages import Messages, RankMessages
from alltoall.ir.program import Buffer
from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.dependencies import Hazards, Spot
from alltoall.lowering.programs.moves import BufferPlacement, place, transfers_of

REST = 8
"""Steps that scratch space rests before it is used again.

A sender learns that a message has left from its receiver's answer, which queues behind all that the
receiver sends the other way. Receives that wait for it stop the chunks behind them: without a rest,
28 steps on hypercube:3 took 1.6 times as long as necessary."""


def emit_messages(schedule: Schedule, _: Options) -> str:
    """Lower a schedule to the file of its messages."""
    return messages_text(messages_of(schedule))


def messages_of(schedule: Schedule) -> Messages:
    """Return the messages of all ranks, with scratch space placed."""
    placement = _place(schedule)
    parts = tuple(_part(schedule, placement, rank) for rank in range(placement.transfers.ranks))
    return Messages(schedule.problem.topology.name, parts)


def rank_messages(schedule: Schedule, rank: int) -> RankMessages:
    """Return the messages of one rank."""
    return _part(schedule, _place(schedule), rank)


def _place(schedule: Schedule) -> BufferPlacement:
    """Place a schedule's chunks; refuse a schedule in which a switch loses a chunk."""
    transfers = transfers_of(schedule)
    lost = np.flatnonzero(transfers.receiver < 0)
    if len(lost):
        raise InputError(
            f"what rank {transfers.sender[lost[0]]} sends in step {transfers.step[lost[0]]} enters "
            "a switch and does not leave it in that step; run `alltoall verify` on the schedule"
        )
    return place(transfers, rest=REST)


def _part(schedule: Schedule, placement: BufferPlacement, rank: int) -> RankMessages:
    transfers = placement.transfers
    received = np.flatnonzero(transfers.receiver == rank)
    sent = np.flatnonzero(transfers.sender == rank)
    which = np.concatenate((received, sent))
    sends = np.repeat((False, True), (len(received), len(sent)))
    peer = np.where(sends, transfers.receiver[which], transfers.sender[which])
    # A stable sort: within a message both ranks keep the order of the transfers.
    order = np.lexsort((peer, sends, transfers.step[which]))
    which, sends, peer = which[order], sends[order], peer[order]
    step = transfers.step[which]
    begins = run_starts(step, sends, peer)
    breaks = begins | run_starts(transfers.source[which], transfers.destination[which])
    for values in (transfers.chunk, placement.from_offset, placement.to_offset):
        breaks[1:] |= np.diff(values[which]) != 1
    ranges = np.flatnonzero(breaks)
    heads = np.flatnonzero(begins)
    from_buffer, to_buffer = placement.from_buffer[which], placement.to_buffer[which]
    from_slot = np.where(from_buffer == Buffer.SCRATCH, placement.from_offset[which], 0)
    to_slot = np.where(to_buffer == Buffer.SCRATCH, placement.to_offset[which], 0)
    waits: list[set[int]] = [set() for _ in heads]
    # Waits follow from the hazards of each place; inputs are never written.
    hazards: Hazards[int] = Hazards()
    buffer = np.where(sends, from_buffer, to_buffer)
    offset = np.where(sends, placement.from_offset[which], placement.to_offset[which])
    columns, stored = (np.cumsum(begins) - 1, sends, buffer, offset), buffer != Buffer.INPUT
    for one, sent, where, at in rows(*(column[stored] for column in columns)):
        spots: list[Spot] = [(where, at)]
        waits[one] |= hazards.touch(one, spots if sent else [], [] if sent else spots)
    return RankMessages(
        rank=rank,
        steps=transfers.steps,
        chunks=schedule.chunks,
        demand=schedule.problem.demand,
        scratch=int(placement.scratch[rank]),
        step=step[heads],
        peer=peer[heads],
        sends=sends[heads],
        first=np.searchsorted(ranges, np.append(heads, len(which))),
        source=transfers.source[which][ranges],
        destination=transfers.destination[which][ranges],
        chunk=transfers.chunk[which][ranges],
        count=np.diff(np.append(ranges, len(which))),
        from_buffer=from_buffer[ranges],
        from_slot=from_slot[ranges],
        to_buffer=to_buffer[ranges],
        to_slot=to_slot[ranges],
        waits_first=starts_of([len(each) for each in waits]),
        waits=np.array([each for row in waits for each in sorted(row)], dtype=np.int64),
    )
