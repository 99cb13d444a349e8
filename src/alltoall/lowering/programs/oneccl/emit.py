"""Step-by-step XML in the style of oneCCL's interpreter, for CPUs.

The schema is ours: docs/formats/oneccl.md and oneccl.xsd beside this file. A rank works through its
instructions from one `sync` to the next; between two of them all sends and receives are under way
at once. Each step of the schedule ends with a `sync`.
"""

from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

from alltoall.ir.program import Buffer
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.programs.compile import moves_of
from alltoall.lowering.programs.moves import Moves
from alltoall.lowering.programs.streams import own_shard

VERSION, UNEVEN_VERSION = 1, 2
"""Of files with as many chunks of every shard, and of files that tell those of each pair."""
BUFFERS = {Buffer.INPUT: "input", Buffer.OUTPUT: "output", Buffer.SCRATCH: "scratch"}

Lines = dict[tuple[int, int], list[str]]
"""The instructions of each rank and step."""


def emit_oneccl(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to oneCCL-style XML."""
    moves = moves_of(schedule, options.channels)
    return "".join(f"{line}\n" for line in _document(moves, schedule.problem.topology))


def _document(moves: Moves, topology: Topology) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    chunks = moves.chunks
    version, more = UNEVEN_VERSION, ""
    if chunks.uniform:
        version, more = VERSION, f' chunks-per-shard="{chunks.per_shard}"'
    yield (
        f'<schedule version="{version}" name={quoteattr(one_line(topology.name))} '
        f'collective="alltoall" ranks="{moves.ranks}"{more}>'
    )
    for source, to, count in chunks.rows():
        yield f'  <shard from="{source}" to="{to}" chunks="{count}"/>'
    lines = _instructions(moves)
    steps = 1 + int(moves.step.max(initial=0))
    inputs, outputs = chunks.inputs(), chunks.outputs()
    for rank in range(moves.ranks):
        called = quoteattr(topology.terminal_name(rank)) if topology.names is not None else None
        yield (
            f'  <rank id="{rank}" input="{inputs[rank]}" output="{outputs[rank]}" '
            f'scratch="{moves.scratch[rank]}"{f" name={called}" if called else ""}>'
        )
        for offset, to, count in own_shard(chunks, rank):
            yield (
                f'    <copy from="input" from-offset="{offset}" to="output" to-offset="{to}" '
                f'count="{count}"/>'
            )
        for step in range(steps):
            yield from lines.get((rank, step), [])
            yield "    <sync/>"
        yield "  </rank>"
    yield "</schedule>"


def _instructions(moves: Moves) -> Lines:
    lines: Lines = {}
    columns = (moves.sender, moves.receiver, moves.step, moves.channel, moves.count)
    places = (moves.from_buffer, moves.from_offset, moves.to_buffer, moves.to_offset)
    rows = zip(*(column.tolist() for column in (*columns, *places)), strict=True)
    for sender, receiver, step, channel, count, from_, at, to, where in rows:
        lines.setdefault((sender, step), []).append(
            _line("send", receiver, channel, Buffer(from_), at, count)
        )
        lines.setdefault((receiver, step), []).append(
            _line("receive", sender, channel, Buffer(to), where, count)
        )
    return lines


def _line(kind: str, peer: int, channel: int, buffer: Buffer, offset: int, count: int) -> str:
    return (
        f'    <{kind} peer="{peer}" channel="{channel}" buffer="{BUFFERS[buffer]}" '
        f'offset="{offset}" count="{count}"/>'
    )
