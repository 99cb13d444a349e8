"""Read MSCCL algorithm XML, ours or a peer's, into a program.

As strict as the real parsers, and stricter where they accept a file and then run it wrongly: every
range is checked whole, a wait must name a step that announces itself, waits must not form a circle,
and nops must wait for something (the runtime numbers its steps by their waits).

The XML dialect is no wider than that of the parsers. They read character by character: no XML
declaration, only blanks and line breaks between elements, values in double quotes, one blank before
each attribute and no line break between them, no entities, at most 16 attributes of up to 255
characters. Elements they do not know are skipped.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter

from alltoall.errors import FormatError, UsageError
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.fields import naming, take_number, take_text
from alltoall.ir.program import (
    EFFECTS,
    Instruction,
    Op,
    Place,
    Program,
    RankProgram,
    Step,
    Thread,
    spot,
)
from alltoall.lowering.options import Options
from alltoall.lowering.programs.msccl_emit import (
    BUFFERS,
    FIFO_SLOTS,
    NEEDED,
    RUNTIMES,
    TYPES,
    excesses,
    msccl_text,
)

MAX_ATTRIBUTES = 16
MAX_STRING = 255
MAX_DEPTH = 8
MAX_ELEMENTS = 2_000_000
"""Most tags of a file; an element takes half a kilobyte."""

_GAP = re.compile(r"[ \n\r]*")
_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z_][\w.-]*)"
    r'(?P<attributes>(?: [A-Za-z_][\w.-]*="[^"]*")*)'
    r"(?P<end> ?/?)>"
)
_ATTRIBUTE = re.compile(r' ([A-Za-z_][\w.-]*)="([^"]*)"')

_HINTS = {
    "<?": "an XML declaration; the MSCCL parsers know none, remove it",
    "<!": "a document type or CDATA; only comments are allowed, remove it",
    "\t": "a tab; the MSCCL parsers take blanks and line breaks only",
}


@dataclass(slots=True)
class Node:
    """An element: its name, attributes, line in the file, and the elements in it."""

    name: str
    attributes: dict[str, str]
    line: int
    children: list["Node"] = field(default_factory=list)

    def named(self, name: str) -> list["Node"]:
        """Return the children of one name."""
        return [child for child in self.children if child.name == name]


def parse_dialect(text: str, where: str) -> list[Node]:
    """Return the top elements of the file, with their descendants."""
    top = Node("", {}, 0)
    open_nodes = [top]
    for opens, closes, node in _tags(text, where):
        if opens:
            open_nodes[-1].children.append(node)
            open_nodes.append(node)
        if closes:
            parent = open_nodes.pop()
            if parent.name != node.name or not open_nodes:
                expected = f"</{parent.name}>" if open_nodes else "no closing tag"
                problem = f"found </{node.name}>, expected {expected}"
                raise FormatError(f"{where}: line {node.line}: {problem}")
        if len(open_nodes) > MAX_DEPTH:
            problem = f"<{node.name}> is nested deeper than {MAX_DEPTH}"
            raise FormatError(f"{where}: line {node.line}: {problem}")
    if len(open_nodes) > 1:
        node = open_nodes[-1]
        problem = f"<{node.name}> of line {node.line} is never closed"
        raise FormatError(f"{where}: {problem}; check that the file is complete")
    return top.children


def attributes_of(name: str, text: str, where: str) -> dict[str, str]:
    """Return the attributes of the first element of a name, empty if there is none."""
    opened = (node for opens, _, node in _tags(text, where) if opens)
    return next((node.attributes for node in opened if node.name == name), {})


def _tags(text: str, where: str) -> Iterator[tuple[bool, bool, Node]]:
    """Yield every tag: whether it opens an element, whether it closes one, and the element."""
    at, line, counted, elements = 0, 1, 0, 0
    while True:
        gap = _GAP.match(text, at)
        at = gap.end() if gap else at
        line, counted = line + text.count("\n", counted, at), at
        if at == len(text):
            return
        if text.startswith("<!--", at):
            at = text.find("-->", at + len("<!--")) + len("-->")
            if at < len("-->"):
                problem = "a comment that never ends; check that the file is complete"
                raise FormatError(f"{where}: line {line}: {problem}")
            continue
        match = _TAG.match(text, at)
        if match is None:
            raise FormatError(f"{where}: line {line}: {_hint(text, at)}")
        elements += 1
        if elements > MAX_ELEMENTS:
            raise FormatError(f"{where}: more than {MAX_ELEMENTS:,} tags")
        node = Node(match["name"], _attributes(match, f"{where}: line {line}"), line)
        closing = bool(match["close"])
        yield not closing, closing or match["end"].endswith("/"), node
        at = match.end()


def _attributes(match: re.Match[str], where: str) -> dict[str, str]:
    pairs = _ATTRIBUTE.findall(match["attributes"])
    # The parsers count a blank before the end of the tag as one more attribute.
    if len(pairs) + match["end"].startswith(" ") > MAX_ATTRIBUTES:
        raise FormatError(f"{where}: <{match['name']}> has more than {MAX_ATTRIBUTES} attributes")
    # The same few words and numbers fill a file: each is kept in memory once.
    attributes = {sys.intern(key): sys.intern(value) for key, value in pairs}
    if len(attributes) < len(pairs):
        raise FormatError(f"{where}: <{match['name']}> has an attribute twice")
    for key in (key for key, value in pairs if max(len(key), len(value)) > MAX_STRING):
        raise FormatError(f"{where}: {key[:60]} is longer than {MAX_STRING} characters")
    return attributes


def _hint(text: str, at: int) -> str:
    for start, words in _HINTS.items():
        if text.startswith(start, at):
            return words
    shown = text[at : at + 60].splitlines()[0]
    return (
        f"cannot read {shown!r}; expected an element on one line, one blank before each attribute "
        'and values in double quotes, such as <gpu id="0">; the file may be truncated'
    )


OPS = {kind: op for op, kind in TYPES.items()} | {"nop": Op.NOP}
REDUCTIONS = ("rrc", "rrs", "rrcs", "re")
BUFFER_NAMES = {name: buffer for buffer, name in BUFFERS.items()}
MAX_GPUS = 4096
MAX_BYTES = 2**63 - 1

Fifo = tuple[int, int, int]
"""Sender, receiver and channel."""


def read_msccl(text: str, where: str) -> Program:
    """Build a program from MSCCL XML."""
    algos = [node for node in parse_dialect(text, where) if node.name == "algo"]
    if len(algos) != 1:
        raise FormatError(f"{where}: {len(algos)} <algo> elements; expected one")
    algo = algos[0]
    take_text(algo.attributes, "coll", where, ("alltoall",))
    if "outofplace" in algo.attributes:
        take_number(algo.attributes, "outofplace", where, least=1, most=1)
    for key in ("minBytes", "maxBytes", "inplace"):
        if key in algo.attributes:
            take_number(algo.attributes, key, where, most=MAX_BYTES)
    ranks = take_number(algo.attributes, "ngpus", where, least=2, most=MAX_GPUS)
    chunks = take_number(algo.attributes, "nchunksperloop", where, least=1)
    if chunks % ranks:
        expected = f"expected a multiple of the {ranks} GPUs"
        raise FormatError(f"{where}: nchunksperloop is {chunks}; {expected}")
    channels = take_number(algo.attributes, "nchannels", where, least=1)
    gpus = _by_id(algo.named("gpu"), ranks, "gpu", where)
    codes = [_gpu(node, rank, channels, where) for rank, node in enumerate(gpus)]
    slots = FIFO_SLOTS[take_text(algo.attributes, "proto", where, tuple(FIFO_SLOTS))]
    with naming(where):
        name = algo.attributes.get("name", "alltoall")
        program = Program(name, Chunks(ranks, chunks // ranks), tuple(codes), slots)
    # Refuse waits that form a circle within a rank.
    for rank, code in enumerate(program.ranks):
        graph = {
            Step(thread, index): [*each.after, *([Step(thread, index - 1)] if index else [])]
            for thread, line in enumerate(code.threads)
            for index, each in enumerate(line.instructions)
        }
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            steps = "; ".join(spot(rank, *step) for step in error.args[1][:4])
            problem = f"these wait for each other in a circle: {steps}"
            raise FormatError(f"{where}: {problem}") from None
    _check_counts(program, where)
    problems = [list(excesses(program, runtime)) for runtime in RUNTIMES]
    if all(problems):
        raise FormatError(f"{where}: no runtime takes this file; {problems[0][0][1]}")
    return program


def _gpu(node: Node, rank: int, channels: int, where: str) -> RankProgram:
    here = f"{where}: gpu {rank}"
    blocks = _by_id(node.named("tb"), len(node.named("tb")), "tb", here)
    numbered = enumerate(blocks)
    threads = tuple(_thread(block, channels, f"{here}, tb {index}") for index, block in numbered)
    keys = ("i_chunks", "o_chunks", "s_chunks")
    sizes = [take_number(node.attributes, key, here) for key in keys]
    announced = {
        Step(index, number)
        for index, block in enumerate(blocks)
        for number, step in enumerate(block.named("step"))
        if step.attributes.get("hasdep") == "1" and step.attributes.get("type") != "nop"
    }
    for block, thread in enumerate(threads):
        after_nop = False
        for number, instruction in enumerate(thread.instructions):
            place = f"{here}, tb {block}, step {number}"
            if after_nop and not instruction.after:
                raise FormatError(f"{place}: follows a nop, so it must have the last wait itself")
            after_nop = instruction.op is Op.NOP
            for step in instruction.after:
                if step not in announced:
                    raise FormatError(
                        f"{place}: waits for tb {step.thread}, step {step.number}, "
                        "which does not exist, does not have hasdep=1, or is a nop"
                    )
    return RankProgram(sizes[0], sizes[1], sizes[2], threads)


def _by_id(nodes: list[Node], count: int, name: str, where: str) -> list[Node]:
    """Return the elements in the order of their ids, which must be 0 to count - 1, each once."""
    by_id: dict[int, Node] = {}
    for node in nodes:
        here = f"{where}: line {node.line}: {name}"
        number = take_number(node.attributes, "id", here, most=max(count - 1, 0))
        if by_id.setdefault(number, node) is not node:
            raise FormatError(f"{here} {number} is there twice")
    for number in range(count):
        if number not in by_id:
            raise FormatError(f"{where}: {name} {number} is missing; expected 0 to {count - 1}")
    return [by_id[number] for number in range(count)]


def _thread(node: Node, channels: int, here: str) -> Thread:
    steps = enumerate(node.named("step"))
    instructions = tuple(_instruction(step, k, f"{here}, step {k}") for k, step in steps)
    if instructions and instructions[-1].op is Op.NOP:
        raise FormatError(f"{here}: ends with a nop; its wait must sit on an operation")
    channel = take_number(node.attributes, "chan", here, most=channels - 1)
    peers = (take_number(node.attributes, key, here, least=-1) for key in ("send", "recv"))
    send_to, receive_from = (None if peer < 0 else peer for peer in peers)
    return Thread(channel, send_to, receive_from, instructions)


def _instruction(node: Node, number: int, here: str) -> Instruction:
    if take_number(node.attributes, "s", here) != number:
        expected = f"expected {number}, steps are numbered from 0"
        raise FormatError(f"{here}: s is {node.attributes['s']}; {expected}")
    kind = take_text(node.attributes, "type", here)
    if kind in REDUCTIONS:
        raise FormatError(f"{here}: type {kind} reduces data; an all-to-all only moves it")
    op = OPS[take_text(node.attributes, "type", here, tuple(OPS))]
    source = _place(node, "src", EFFECTS[op].reads, here)
    target = _place(node, "dst", EFFECTS[op].writes, here)
    count = take_number(node.attributes, "cnt", here, least=0 if op is Op.NOP else 1)
    take_number(node.attributes, "hasdep", here, most=1)
    thread = take_number(node.attributes, "depid", here, least=-1)
    index = take_number(node.attributes, "deps", here, least=-1)
    if thread < 0 and op is Op.NOP:
        raise FormatError(f"{here}: a nop that waits for nothing; the runtime would not count it")
    after = (Step(thread, index),) if thread >= 0 else ()
    return Instruction(op, max(count, 1), source, target, after)


def _place(node: Node, side: str, used: bool, here: str) -> Place | None:
    buffer = BUFFER_NAMES[take_text(node.attributes, f"{side}buf", here, tuple(BUFFER_NAMES))]
    offset = take_number(node.attributes, f"{side}off", here, least=0 if used else -1)
    return Place(buffer, offset) if used else None


def _check_counts(program: Program, where: str) -> None:
    """Refuse a receive of another count than its send: the runtime packs chunks by the count."""
    sends: dict[Fifo, list[tuple[int, str]]] = defaultdict(list)
    receives: dict[Fifo, list[tuple[int, str]]] = defaultdict(list)
    for rank, code in enumerate(program.ranks):
        for index, thread in enumerate(code.threads):
            for number, each in enumerate(thread.instructions):
                here, effects = (each.count, spot(rank, index, number)), EFFECTS[each.op]
                if effects.sends and thread.send_to is not None:
                    sends[rank, thread.send_to, thread.channel].append(here)
                if effects.receives and thread.receive_from is not None:
                    receives[thread.receive_from, rank, thread.channel].append(here)
    for fifo, ends in sends.items():
        # The interpreter finds a missing partner: it blocks, or leaves chunks behind.
        for (sent, sender), (received, receiver) in zip(ends, receives[fifo], strict=False):
            if sent != received:
                raise FormatError(
                    f"{where}: {sender} sends {sent} chunks where {receiver} receives {received}; "
                    "the counts of a send and its receive must be equal"
                )


def refusals(program: Program, text: str, where: str) -> dict[str, str]:
    """Return the reasons of each runtime that rejects a file with this program."""
    given = attributes_of("algo", text, where)
    found: dict[str, str] = {}
    for runtime in RUNTIMES:
        reasons = [problem for _, problem in excesses(program, runtime)]
        missing = [key for key in NEEDED[runtime] if key not in given]
        if missing:
            reasons.insert(
                0,
                f"its parser requires {', '.join(missing)}, which the file does not have; "
                "`alltoall lower FILE --to msccl` writes it completed",
            )
        if reasons:
            found[runtime] = "; ".join(reasons)
    return found


def complete_msccl(text: str, options: Options, where: str) -> str:
    """Add the attributes that any parser requires to an MSCCL file; its own stay."""
    program, given = read_msccl(text, where), attributes_of("algo", text, where)
    for key, kept, default in (
        ("channels", 1, Options.channels),
        ("protocol", given["proto"], Options.protocol),
    ):
        asked = getattr(options, key)
        if asked not in (kept, default):
            raise UsageError(
                f"{where}: {key}={asked} for a lowered file; leave it out, or lower the "
                "schedule again"
            )
    own = replace(
        options,
        protocol=given["proto"],
        min_bytes=int(given.get("minBytes", options.min_bytes)),
        max_bytes=int(given.get("maxBytes", options.max_bytes)),
    )
    return msccl_text(program, own)
