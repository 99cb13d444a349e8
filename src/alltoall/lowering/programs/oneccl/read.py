"""Read oneCCL-style XML into a program; as strict as the schema in oneccl.xsd.

Every peer, direction and channel becomes a thread, as instructions between two syncs run at once.
The syncs are a thread of nops: each waits for what came before it, and what follows waits for it.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

from alltoall.errors import FormatError, InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.fields import take_number, take_text
from alltoall.ir.files.xml import parse_xml, require_element
from alltoall.ir.program import Instruction, Op, Place, Program, RankProgram, Step, Thread
from alltoall.lowering.programs.oneccl.emit import BUFFERS, UNEVEN_VERSION, VERSION

BUFFER_NAMES = {name: buffer for buffer, name in BUFFERS.items()}
FIFO_SLOTS = 1
"""Sends end when they are received: nothing may count on the network to hold a chunk."""

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
"""Attributes that an element may have besides: what the node of a rank is called."""

INSTRUCTIONS = ("send", "receive", "copy", "reduce", "sync")
LEAVES = ("shard", *INSTRUCTIONS)
Key = tuple[str, int, int]
"""What names a thread: the kind of its instructions, the peer and the channel."""
SYNCS: Key = ("sync", 0, 0)


@dataclass
class _Line:
    """A thread that is being read; `before` of its instructions come before the last sync."""

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
    try:
        chunks = _chunks(root, shards, len(ranks), where)
        return Program(root.attrib["name"], chunks, ranks, FIFO_SLOTS)
    except InputError as error:
        raise FormatError(f"{where}: {error}") from None


def _chunks(root: Element, shards: list[Element], ranks: int, where: str) -> Chunks:
    """Return the chunks of every pair: as many of all, or those of the shards that are listed."""
    if "chunks-per-shard" in root.attrib:
        return Chunks(ranks, take_number(root.attrib, "chunks-per-shard", where))
    rows = []
    for number, node in enumerate(shards):
        here = f"{where}: shard {number}"
        _check(node, "shard", here)
        source, to, count = (take_number(node.attrib, key, here) for key in ATTRIBUTES["shard"])
        rows.append((source, to, count))
    return Chunks.from_rows(ranks, rows)


def _rank(node: Element, rank: int, where: str) -> RankProgram:
    here = f"{where}: rank {rank}"
    _check(node, "rank", here)
    if take_number(node.attrib, "id", here) != rank:
        raise FormatError(f"{here}: its id is {node.attrib['id']}; expected the ranks in order")
    syncs = _Line()
    lines: dict[Key, _Line] = {SYNCS: syncs}
    for number, each in enumerate(node):
        spot = f"{here}, instruction {number}"
        if each.tag not in INSTRUCTIONS:
            raise FormatError(
                f"{spot}: found <{each.tag[:60]}>; expected {', '.join(INSTRUCTIONS)}"
            )
        _check(each, each.tag, spot)
        if each.tag == "sync":
            syncs.instructions.append(Instruction(Op.NOP, after=tuple(_since_sync(lines))))
        else:
            _add(lines, each, spot)
    sizes = [take_number(node.attrib, key, here) for key in ("input", "output", "scratch")]
    threads = tuple(
        Thread(line.channel, line.send_to, line.receive_from, tuple(line.instructions))
        for line in lines.values()
    )
    return RankProgram(sizes[0], sizes[1], sizes[2], threads)


def _since_sync(lines: dict[Key, _Line]) -> Iterator[Step]:
    """Yield the last instruction of every thread that has gone on since the last sync."""
    for index, (key, line) in enumerate(lines.items()):
        if key != SYNCS and len(line.instructions) > line.before:
            yield Step(index, len(line.instructions) - 1)
            line.before = len(line.instructions)


def _add(lines: dict[Key, _Line], node: Element, spot: str) -> None:
    """Add an instruction to its thread; the first after a sync waits for it."""
    key, empty, instruction = _instruction(node, spot)
    line, syncs = lines.setdefault(key, empty), len(lines[SYNCS].instructions)
    if syncs and len(line.instructions) == line.before:
        instruction = replace(instruction, after=(Step(0, syncs - 1),))
    line.instructions.append(instruction)


def _instruction(node: Element, spot: str) -> tuple[Key, _Line, Instruction]:
    """Return an instruction, the key of its thread, and that thread if it is the first there."""
    if node.tag == "reduce":
        raise FormatError(f"{spot}: reduces data; an all-to-all only moves it")
    count = take_number(node.attrib, "count", spot)
    if node.tag == "copy":
        source = _place(node, "from", "from-offset", spot)
        target = _place(node, "to", "to-offset", spot)
        return ("copy", 0, 0), _Line(), Instruction(Op.COPY, count, source, target)
    place = _place(node, "buffer", "offset", spot)
    peer, channel = (
        take_number(node.attrib, "peer", spot),
        take_number(node.attrib, "channel", spot),
    )
    key = (node.tag, peer, channel)
    if node.tag == "send":
        return key, _Line(channel, send_to=peer), Instruction(Op.SEND, count, source=place)
    return key, _Line(channel, receive_from=peer), Instruction(Op.RECEIVE, count, target=place)


def _place(node: Element, buffer: str, offset: str, spot: str) -> Place:
    name = take_text(node.attrib, buffer, spot, tuple(BUFFER_NAMES))
    return Place(BUFFER_NAMES[name], take_number(node.attrib, offset, spot))


def _check(node: Element, tag: str, here: str) -> None:
    require_element(node, tag, here, ATTRIBUTES[tag], OPTIONAL.get(tag, frozenset()), tag in LEAVES)
