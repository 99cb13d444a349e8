"""`program_of`: a schedule through all passes, to a program.

MSCCL has one thread for an end that sends and one that receives. Each rank pairs its ends on a
channel, first those between which it forwards most. Within a shared thread instructions keep the
order of `dependencies`, which rules out deadlocks: sends go ahead of receives as far as the FIFO
holds their chunks. A step that sends no more than that, or receives nothing, loses no time in a
shared thread. Elsewhere the receives of a step hold up some of its sends, so such ends are paired
only where a runtime has no room for threads of their own.

A receive and the send of the same chunks are fused to a forward in place of the receive, if no
other send comes between them and the FIFO has room for it by then, so that it too waits for earlier
instructions only.
"""

from collections import Counter
from dataclasses import dataclass
from itertools import chain

from alltoall.errors import UsageError
from alltoall.ir.arrays import rows
from alltoall.ir.program import FIFO_SLOTS, Instruction, Op, Program, RankProgram
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.dependencies import Stream, When, streams_of, threads_of, turns_of
from alltoall.lowering.programs.moves import (
    ChunkMoves,
    balance,
    duplicate,
    merge,
    place,
    spread,
    transfers_of,
)

Forwards = tuple[dict[int, int], list[When]]


def forwards_of(moves: ChunkMoves) -> Forwards:
    """Find the moves that pass on exactly the chunks of one other move."""
    places = (moves.from_buffer, moves.from_offset, moves.to_buffer, moves.to_offset)
    table = list(rows(moves.step, moves.sender, moves.receiver, moves.count, *places))
    writer: dict[tuple[int, int, int], int] = {}  # by rank, buffer and offset
    origin: dict[int, int] = {}
    arrived = 0
    for move, (step, sender, _, count, buffer, offset, *_) in enumerate(table):
        while table[arrived][0] < step:
            receiver, size = table[arrived][2:4]
            to, where = table[arrived][6:]
            writer |= {(receiver, to, where + each): arrived for each in range(size)}
            arrived += 1
        brought = {writer.get((sender, buffer, offset + each)) for each in range(count)}
        found = brought.pop()
        if found is not None and not brought and table[found][3] == count:
            origin[move] = found
    return origin, turns_of(moves)[1]


@dataclass(frozen=True)
class Share:
    """Parameters of shared threads."""

    steps: int
    """Most instructions of a shared thread."""
    threads: int
    """Most threads of a rank; below that, copies have their own thread."""
    slower: bool = False
    """Whether to pair ends even at a cost of time, until there are few enough threads."""


def share_threads(streams: list[Stream], forwards: Forwards, share: Share) -> list[Stream]:
    """Pair the ends of a rank, whose streams are those of `streams_of`.

    Return the thread of copies, those that send, then those that only receive. Moves must be no
    longer than a FIFO holds if they may be paired at the cost of time.
    """
    copies = streams[0]
    sends = [stream for stream in streams if stream.send_to is not None]
    receives = [stream for stream in streams if stream.receive_from is not None]
    ends, pairs = len(sends) + len(receives), _rank_pairs(sends, receives, forwards)
    paired: dict[int, Stream] = {}
    taken: set[int] = set()

    def pair(free: bool, until: int) -> None:
        """Pair ends, in order of worth, while there are more than `until` threads."""
        for sending, receiving in pairs:
            if ends - len(paired) <= until:
                break
            if sending in paired or receiving in taken:
                continue
            thread = join_streams(sends[sending], receives[receiving], forwards)
            if len(thread.instructions) <= share.steps and (is_free(thread) or not free):
                paired[sending] = thread
                taken.add(receiving)

    pair(free=True, until=-1)
    fold = ends > 0 and 1 + ends - len(paired) > share.threads
    if share.slower:
        pair(free=False, until=share.threads - (not fold))
    threads = [paired.get(index, each) for index, each in enumerate(sends)]
    threads += [each for index, each in enumerate(receives) if index not in taken]
    if not fold:
        return [copies, *threads]
    # The copies follow in a thread that does other things first.
    shortest = min(threads, key=lambda each: len(each.instructions))
    for copy in copies.instructions:
        shortest.append(shortest.order[-1], copy)
    return threads


def is_free(thread: Stream) -> bool:
    """Return whether a shared thread sends in each step before it receives.

    Then no chunk leaves in a later step than in its schedule.
    """
    received = -1
    for when, instruction in zip(thread.order, thread.instructions, strict=True):
        if instruction.op is not Op.SEND:
            received = when.step
        elif when.step == received:
            return False
    return True


def _rank_pairs(
    sends: list[Stream], receives: list[Stream], forwards: Forwards
) -> list[tuple[int, int]]:
    """Return the pairs of ends on one channel, first those that forward most chunks."""
    brought = {when.move: index for index, each in enumerate(receives) for when in each.order}
    worth: Counter[tuple[int, int]] = Counter()
    for index, stream in enumerate(sends):
        found = (brought.get(forwards[0].get(when.move, -1)) for when in stream.order)
        worth.update((index, receiving) for receiving in found if receiving is not None)
    pairs = [
        # A peer to which a rank sends its own chunks is best served by its answers.
        (-worth[sending, receiving], send.send_to != receive.receive_from, sending, receiving)
        for sending, send in enumerate(sends)
        for receiving, receive in enumerate(receives)
        if receive.channel == send.channel
    ]
    return [(sending, receiving) for *_, sending, receiving in sorted(pairs)]


def join_streams(send: Stream, receive: Stream, forwards: Forwards) -> Stream:
    """Return one thread that sends and receives, with receives and sends fused where legal."""
    origin, arrival = forwards
    thread = Stream(send.channel, send.send_to, receive.receive_from)
    received: dict[int, int] = {}  # the instruction that receives each move
    sent: list[tuple[When, int]] = []  # the arrival of each move sent so far, and its chunks
    last_sent = -1
    ends = [zip(each.order, each.instructions, strict=True) for each in (send, receive)]
    for when, instruction in sorted(chain(*ends), key=lambda row: row[0]):
        if instruction.op is Op.RECEIVE:
            received[when.move] = len(thread.instructions)
            thread.append(when, instruction)
            continue
        at = received.get(origin.get(when.move, -1), -1)
        # Chunks in the FIFO once all instructions before that receive are done.
        held = sum(chunks for arrives, chunks in sent if arrives >= thread.order[at])
        if at > last_sent and held + instruction.count <= FIFO_SLOTS:
            target = thread.instructions[at].target
            thread.instructions[at] = Instruction(Op.FORWARD, instruction.count, target=target)
            last_sent = at
        else:
            last_sent = len(thread.instructions)
            thread.append(when, instruction)
        sent.append((arrival[when.move], instruction.count))
    return thread


MAX_CHANNELS = 128
MAX_ENDS = 31
"""FIFO ends of a rank on one channel: MSCCL takes 32 thread blocks, one of them for copies."""


def moves_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    reuse: bool = True,
) -> ChunkMoves:
    """Return the moves between ranks.

    The schedule runs on `channels` parallel channels, in moves of at most `most` chunks; the moves
    of a FIFO are dealt out to `parts` FIFOs. Scratch space is used again unless `reuse` is off.
    """
    if not 1 <= channels <= MAX_CHANNELS:
        raise UsageError(f"{channels} channels; expected 1 to {MAX_CHANNELS}")
    placement = place(transfers_of(schedule), reuse)
    return spread(merge(duplicate(placement, channels), most), parts)


def program_of(
    schedule: Schedule,
    channels: int = 1,
    most: int | None = None,
    parts: int = 1,
    share: Share | None = None,
) -> Program:
    """Return the program of a schedule; see `moves_of` for the first parameters."""
    longest = FIFO_SLOTS if share is not None and share.slower else most
    moves = balance(moves_of(schedule, channels, longest, parts), MAX_ENDS)
    streams = streams_of(moves, most)
    if share is not None:
        forwards = forwards_of(moves)
        streams = [share_threads(each, forwards, share) for each in streams]
    inputs, outputs = moves.chunks.inputs().tolist(), moves.chunks.outputs().tolist()
    ranks = tuple(
        RankProgram(inputs[rank], outputs[rank], int(moves.scratch[rank]), threads_of(each))
        for rank, each in enumerate(streams)
    )
    return Program(schedule.problem.topology.name, moves.chunks, ranks)
