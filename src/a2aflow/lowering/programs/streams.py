"""Thread assignment: one thread per end of a FIFO, and one for what a rank keeps.

Sends and receives never share a thread. So all waiting goes from a later move to an earlier one in
the one order of all moves, and no program from here can deadlock, however few slots a FIFO has.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from a2aflow.ir.chunks import Chunks
from a2aflow.ir.program import Buffer, Instruction, Op, Place
from a2aflow.lowering.programs.moves import Moves


@dataclass
class Stream:
    """A thread before its dependencies are known; `order` places its instructions in time."""

    channel: int
    send_to: int | None = None
    receive_from: int | None = None
    instructions: list[Instruction] = field(default_factory=list)
    order: list[int] = field(default_factory=list)

    def append(self, order: int, instruction: Instruction) -> None:
        """Add an instruction; `order` must not decrease."""
        self.order.append(order)
        self.instructions.append(instruction)


def streams_of(moves: Moves, most: int | None = None) -> list[list[Stream]]:
    """Return the streams of each rank: its own shard, what it sends, then what it receives."""
    own = [list(_own_shard(moves, rank, most)) for rank in range(moves.ranks)]
    sends: dict[tuple[int, int, int], Stream] = {}
    receives: dict[tuple[int, int, int], Stream] = {}
    rows = zip(*(getattr(moves, key).tolist() for key in _COLUMNS), strict=True)
    for order, (sender, receiver, channel, from_, at, to, where, count) in enumerate(rows, start=1):
        send = sends.setdefault((sender, channel, receiver), Stream(channel, send_to=receiver))
        send.append(order, Instruction(Op.SEND, count, source=Place(Buffer(from_), at)))
        receive = receives.setdefault(
            (receiver, channel, sender), Stream(channel, receive_from=sender)
        )
        receive.append(order, Instruction(Op.RECEIVE, count, target=Place(Buffer(to), where)))
    for streams in (sends, receives):
        for (rank, *_), stream in sorted(streams.items(), key=lambda item: item[0]):
            own[rank].append(stream)
    return own


_COLUMNS = (
    "sender",
    "receiver",
    "channel",
    "from_buffer",
    "from_offset",
    "to_buffer",
    "to_offset",
    "count",
)


def _own_shard(moves: Moves, rank: int, most: int | None) -> Iterator[Stream]:
    """Yield the thread of a rank's own shard, if it has any."""
    stream = Stream(channel=0)
    for offset, to, count in own_shard(moves.chunks, rank, most):
        source, target = Place(Buffer.INPUT, offset), Place(Buffer.OUTPUT, to)
        stream.append(0, Instruction(Op.COPY, count, source=source, target=target))
    if stream.order:
        yield stream


def own_shard(chunks: Chunks, rank: int, most: int | None = None) -> Iterator[tuple[int, int, int]]:
    """Yield input offset, output offset and count of the copies of a rank's own shard."""
    here = (np.array(rank), np.array(rank))
    count = int(chunks.of(*here))
    begin, to = int(chunks.in_input(*here)), int(chunks.in_output(*here))
    for done in range(0, count, most or max(count, 1)):
        yield begin + done, to + done, min(most or count, count - done)
