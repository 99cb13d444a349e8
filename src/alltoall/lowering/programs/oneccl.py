"""Step-by-step XML in the style of oneCCL's interpreter, for CPUs: writer and strict reader.

The schema is ours: docs/formats.md and oneccl.xsd beside this file. A rank works through its
instructions from one `sync` to the next; between two of them all sends and receives are under way
at once. Each step of the schedule ends with a `sync`.

Read back, every peer, direction and channel is a thread, and the syncs are a thread of nops: each
waits for the instructions before it, and those after it wait for it.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

from alltoall.errors import FormatError
from alltoall.ir.arrays import rows
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.fields import naming, take_number, take_text
from alltoall.ir.files.xml import parse_xml, require_element
from alltoall.ir.program import Buffer, Instruction, Op, Place, Program, RankProgram, Step, Thread
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import one_line
from alltoall.lowering.options import Options
from alltoall.lowering.programs.compile import moves_of
from alltoall.lowering.programs.dependencies import own_shard
from alltoall.lowering.programs.moves import ChunkMoves

VERSION, UNEVEN_VERSION = 1, 2
"""Versions of files with equal shards, and of files with the chunks of each pair."""
BUFFERS = {Buffer.INPUT: "input", Buffer.OUTPUT: "output", Buffer.SCRATCH: "scratch"}

Lines = dict[tuple[int, int], list[str]]
"""The instructions of each rank and step."""


def emit_oneccl(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to oneCCL-style XML."""
    moves = moves_of(schedule, options.channels)
    return "".join(f"{line}\n" for line in _document(moves, schedule.problem.topology))


def _document(moves: ChunkMoves, topology: Topology) -> Iterator[str]:
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
        name = f" name={quoteattr(topology.terminal_name(rank))}" if topology.names else ""
        yield (
            f'  <rank id="{rank}" input="{inputs[rank]}" output="{outputs[rank]}" '
            f'scratch="{moves.scratch[rank]}"{name}>'
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


def _instructions(moves: ChunkMoves) -> Lines:
    lines: Lines = defaultdict(list)
    columns = (moves.sender, moves.receiver, moves.step, moves.channel, moves.count)
    places = (moves.from_buffer, moves.from_offset, moves.to_buffer, moves.to_offset)
    for sender, receiver, step, channel, count, from_, at, to, where in rows(*columns, *places):
        for kind, rank, peer, buffer, offset in (
            ("send", sender, receiver, from_, at),
            ("receive", receiver, sender, to, where),
        ):
            lines[rank, step].append(
                f'    <{kind} peer="{peer}" channel="{channel}" buffer="{BUFFERS[Buffer(buffer)]}" '
                f'offset="{offset}" count="{count}"/>'
            )
    return lines


BUFFER_NAMES = {name: buffer for buffer, name in BUFFERS.items()}
FIFO_SLOTS = 1
"""Sends end when they are received: programs must not count on the network to hold a chunk."""

ATTRIBUTES = {
    "schedule": ("version", "name", "collective", "ranks", "chunks-per-shard"),
    "shard": ("from", "to", "chunks"),
    "rank": ("id", "input", "output", "scratch"),
    "send": ("peer", "channel", "buffer", "offset", "count"),
    "receive": ("peer", "channel", "buffer", "offset", "count"),
    "copy": ("from", "from-offset", "to", "to-offset", "count"),
    "reduce": ("from", "from-offset", "to", "to-offset", "count"),
    "sync": (),
}
OPTIONAL = {"rank": frozenset({"name"})}
"""Optional attributes of an element: the name of a rank's node."""

INSTRUCTIONS = ("send", "receive", "copy", "reduce", "sync")
LEAVES = ("shard", *INSTRUCTIONS)
Key = tuple[str, int, int]
"""The key of a thread: the kind of its instructions, the peer and the channel."""
SYNCS: Key = ("sync", 0, 0)


@dataclass
class _ThreadLine:
    """A thread being read; `before` of its instructions come before the last sync."""

    channel: int = 0
    send_to: int | None = None
    receive_from: int | None = None
    instructions: list[Instruction] = field(default_factory=list)
    before: int = 0


def read_oneccl(text: str, where: str) -> Program:
    """Build a program from oneCCL-style XML."""
    root = parse_xml(text, where)
    uneven = root.tag == "schedule" and root.attrib.get("version") == str(UNEVEN_VERSION)
    require_element(root, "schedule", where, ATTRIBUTES["schedule"][: -1 if uneven else None])
    take_text(root.attrib, "version", where, (str(VERSION), str(UNEVEN_VERSION)))
    take_text(root.attrib, "collective", where, ("alltoall",))
    shards = [node for node in root if node.tag == "shard"] if uneven else []
    found, expected_ranks = len(root) - len(shards), take_number(root.attrib, "ranks", where)
    if found != expected_ranks:
        raise FormatError(f"{where}: {found} ranks; expected {expected_ranks}")
    ranks = tuple(_rank(node, rank, where) for rank, node in enumerate(root[len(shards) :]))
    with naming(where):
        chunks = _chunks(root, shards, len(ranks), where)
        return Program(root.attrib["name"], chunks, ranks, FIFO_SLOTS)


def _chunks(root: Element, shards: list[Element], ranks: int, where: str) -> Chunks:
    """Return the chunks of every pair: equal ones, or those of the listed shards."""
    if "chunks-per-shard" in root.attrib:
        return Chunks(ranks, take_number(root.attrib, "chunks-per-shard", where))
    table = []
    for number, node in enumerate(shards):
        here = f"{where}: shard {number}"
        _check(node, "shard", here)
        source, to, count = (take_number(node.attrib, key, here) for key in ATTRIBUTES["shard"])
        table.append((source, to, count))
    return Chunks.from_rows(ranks, table)


def _rank(node: Element, rank: int, where: str) -> RankProgram:
    here = f"{where}: rank {rank}"
    _check(node, "rank", here)
    if take_number(node.attrib, "id", here) != rank:
        raise FormatError(f"{here}: its id is {node.attrib['id']}; expected the ranks in order")
    syncs = _ThreadLine()
    lines: dict[Key, _ThreadLine] = {SYNCS: syncs}
    for number, each in enumerate(node):
        spot = f"{here}, instruction {number}"
        if each.tag not in INSTRUCTIONS:
            expected = ", ".join(INSTRUCTIONS)
            raise FormatError(f"{spot}: found <{each.tag[:60]}>; expected {expected}")
        _check(each, each.tag, spot)
        if each.tag == "sync":
            # It waits for the last instruction of every thread since the last sync.
            after = []
            for index, line in enumerate(lines.values()):
                if line is not syncs and len(line.instructions) > line.before:
                    line.before = len(line.instructions)
                    after.append(Step(index, line.before - 1))
            syncs.instructions.append(Instruction(Op.NOP, after=tuple(after)))
        else:
            _add(lines, each, spot)
    sizes = [take_number(node.attrib, key, here) for key in ("input", "output", "scratch")]
    ends = ((line.channel, line.send_to, line.receive_from) for line in lines.values())
    code = (tuple(line.instructions) for line in lines.values())
    threads = tuple(Thread(*end, each) for end, each in zip(ends, code, strict=True))
    return RankProgram(sizes[0], sizes[1], sizes[2], threads)


def _add(lines: dict[Key, _ThreadLine], node: Element, spot: str) -> None:
    """Add an instruction to its thread; the first after a sync waits for it."""
    if node.tag == "reduce":
        raise FormatError(f"{spot}: reduces data; an all-to-all only moves it")
    count = take_number(node.attrib, "count", spot)
    peer = channel = 0
    if node.tag == "copy":
        source, target = (_place(node, side, f"{side}-offset", spot) for side in ("from", "to"))
        line, instruction = _ThreadLine(), Instruction(Op.COPY, count, source, target)
    else:
        place = _place(node, "buffer", "offset", spot)
        peer, channel = (take_number(node.attrib, key, spot) for key in ("peer", "channel"))
        if node.tag == "send":
            instruction = Instruction(Op.SEND, count, source=place)
            line = _ThreadLine(channel, send_to=peer)
        else:
            instruction = Instruction(Op.RECEIVE, count, target=place)
            line = _ThreadLine(channel, receive_from=peer)
    line, syncs = lines.setdefault((node.tag, peer, channel), line), len(lines[SYNCS].instructions)
    if syncs and len(line.instructions) == line.before:
        instruction = replace(instruction, after=(Step(0, syncs - 1),))
    line.instructions.append(instruction)


def _place(node: Element, buffer: str, offset: str, spot: str) -> Place:
    name = take_text(node.attrib, buffer, spot, tuple(BUFFER_NAMES))
    return Place(BUFFER_NAMES[name], take_number(node.attrib, offset, spot))


def _check(node: Element, tag: str, here: str) -> None:
    require_element(node, tag, here, ATTRIBUTES[tag], OPTIONAL.get(tag, frozenset()), tag in LEAVES)
