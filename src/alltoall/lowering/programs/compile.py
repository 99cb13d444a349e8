"""`program_of`: a schedule through all passes, to a program."""

from alltoall.errors import UsageError
from alltoall.ir.program import FIFO_SLOTS, Program, RankProgram
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.dependencies import threads_of
from alltoall.lowering.programs.moves import Moves, balanced, duplicated, merged, spread
from alltoall.lowering.programs.placement import place
from alltoall.lowering.programs.sharing import Share, forwards_of, shared
from alltoall.lowering.programs.streams import streams_of
from alltoall.lowering.programs.transfers import transfers_of

MAX_CHANNELS = 128
MAX_ENDS = 31
"""FIFO ends that a rank has on one channel: MSCCL takes 32 thread blocks, one is for its copies."""


def moves_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    reuse: bool = True,
) -> Moves:
    """Return what the ranks give each other.

    The schedule runs on `channels` parallel channels, in moves of at most `most` chunks; the moves
    of a FIFO are dealt out to `parts` FIFOs. Scratch space is used again unless `reuse` is off.
    """
    if not 1 <= channels <= MAX_CHANNELS:
        raise UsageError(f"{channels} channels; expected 1 to {MAX_CHANNELS}")
    placement = place(transfers_of(schedule), reuse)
    return spread(merged(duplicated(placement, channels), most), parts)


def program_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    share: Share | None = None,
) -> Program:
    """Return the program of a schedule; see `moves_of` for the first parameters."""
    longest = FIFO_SLOTS if share is not None and share.slower else most
    moves = balanced(moves_of(schedule, channels, longest, parts), MAX_ENDS)
    streams = streams_of(moves, most)
    if share is not None:
        forwards = forwards_of(moves)
        streams = [shared(each, forwards, share) for each in streams]
    inputs, outputs = moves.chunks.inputs().tolist(), moves.chunks.outputs().tolist()
    ranks = tuple(
        RankProgram(inputs[rank], outputs[rank], int(moves.scratch[rank]), threads_of(each))
        for rank, each in enumerate(streams)
    )
    return Program(schedule.problem.topology.name, moves.chunks, ranks)
