"""The path-steered XML for an MPI runtime on a routed fabric: chunks, routes and queue pairs.

The schema is ours: docs/formats.md and ompi.xsd beside this file. A shard is cut into equal
chunks, every queue pair carries some of them on one route, and its UDP source port is chosen so
that the fabric's hash picks that route.

The reader checks the queue pairs: each must land on its route, and together they carry every chunk
once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element
from xml.sax.saxutils import quoteattr

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, InputError, VerificationError
from alltoall.ir.arrays import Ints, inner_index, rows, run_starts, starts_of
from alltoall.ir.files.fields import short, take_number, take_text
from alltoall.ir.files.xml import parse_xml, require_element
from alltoall.ir.routes import Routes
from alltoall.ir.words import one_line
from alltoall.lowering.options import TABLE_ROUTES, Options
from alltoall.lowering.tables.hashes import (
    FIRST_PORT,
    HASHES,
    LAST_PORT,
    addresses,
    dotted,
    find_ports,
    parse_addresses,
    parse_dotted,
    pick_routes,
)
from alltoall.lowering.tables.routed_file import (
    RoutedFile,
    by_node,
    check_room,
    in_file_order,
    one_layer_each,
    pair_name,
    pair_sizes,
    ports_of,
    require_order,
)

VERSION = 1
FIRST_QUEUE_PAIR = 16
"""Lower numbers belong to the verbs library's own queue pairs on common cards."""

MOST_QUEUE_PAIRS = 1 << 24
"""Queue pair numbers have 24 bits."""

MOST_CHUNKS = 4096
"""Most chunks per shard that make weights whole."""

MOST_COMMON = 256
"""Most chunks per shard if all shards are cut equally."""

USUAL_CHUNKS = 8
"""Chunks per shard proposed in the error for fractional weights."""

EXACT = 1e-7
"""Largest rounding error of whole chunks."""


def emit_ompi(routes: Routes, options: Options) -> str:
    """Return the XML for routes that have layers and weights of whole chunks."""
    one_layer_each(routes, "the file of Open MPI")
    terminals = len(routes.problem.topology.terminals)
    rank = np.arange(terminals) if options.rank is None else options.rank
    ordered, order = in_file_order(routes, rank)
    check_room(ordered, options.max_routes or TABLE_ROUTES)
    phase = np.zeros(routes.count, dtype=np.int64) if options.phase is None else options.phase
    if phase.shape != (routes.count,) or phase.min() < 0:
        found = f"{len(phase)} phases for {routes.count} routes"
        raise InputError(f"{found}; expected one per route, from 0 on")
    counts = chunk_counts(ordered)
    address = addresses(options.addresses, terminals)
    if options.address is not None:
        address[rank] = parse_addresses(options.address)
    queues = _queues(ordered, counts, phase[order], rank, address, options)
    lines = _document(ordered, counts, queues, rank, address, options)
    return "".join(f"{line}\n" for line in lines)


def chunk_counts(routes: Routes) -> Ints:
    """Return the chunks of each route; all chunks of a shard are equal.

    With a common denominator all chunks of all shards are. Without, or if it is large, each shard
    has as few chunks as its weights allow.
    """
    if routes.denominator is not None and routes.denominator <= MOST_COMMON:
        return np.rint(routes.weight * routes.denominator).astype(np.int64)
    sizes = pair_sizes(routes.source, routes.destination)
    first = starts_of(sizes)[:-1]
    total = np.add.reduceat(routes.weight, first)
    share = routes.weight / np.repeat(total, sizes)
    chunks = np.zeros(len(sizes), dtype=np.int64)
    left = np.arange(len(sizes))
    for tried in range(1, MOST_CHUNKS + 1):
        entries = np.repeat(first[left], sizes[left]) + inner_index(sizes[left])
        off = np.abs(share[entries] * tried - np.rint(share[entries] * tried))
        whole = np.maximum.reduceat(off, starts_of(sizes[left])[:-1]) <= EXACT
        chunks[left[whole]] = tried
        left = left[~whole]
        if not len(left):
            break
    if not chunks.all():
        few = USUAL_CHUNKS * total.max() <= MOST_CHUNKS
        raise InputError(
            f"the weights {pair_name(routes, int(first[np.argmin(chunks)]))} are no whole chunks, "
            f"of at most {MOST_CHUNKS} per shard; route again with "
            f"{f'--chunks {USUAL_CHUNKS}' if few else '--method single'}"
        )
    return np.asarray(np.rint(share * np.repeat(chunks, sizes)), dtype=np.int64)


def _queues(
    routes: Routes, counts: Ints, phase: Ints, rank: Ints, address: Ints, options: Options
) -> tuple[Ints, ...]:
    """Return the queue pairs, one per chunk or per route, in file order, as columns.

    They are the route of each, and the values of its attributes in their order; the port is the one
    that picks the route.
    """
    sizes = pair_sizes(routes.source, routes.destination)
    before = starts_of(counts)[:-1]
    before -= np.repeat(before[starts_of(sizes)[:-1]], sizes)
    per_route = counts if options.queue_pairs == "chunk" else np.ones_like(counts)
    route = np.repeat(np.arange(routes.count), per_route)
    count = (counts // per_route)[route]
    source = rank[routes.source[route]]
    number = FIRST_QUEUE_PAIR + inner_index(np.bincount(source, minlength=len(address)))
    if number.max() >= MOST_QUEUE_PAIRS:
        raise InputError(
            f"{number.max() + 1 - FIRST_QUEUE_PAIR} queue pairs on a rank; their numbers have 24 "
            "bits; lower with --to ompi:queue-pairs=route, or route again with --chunks 8"
        )
    destination = rank[routes.destination[route]]
    flow = (address[source], address[destination], number)
    wanted, choices = inner_index(sizes)[route], np.repeat(sizes, sizes)[route]
    port = find_ports(options.hash, *flow, wanted, choices)
    first = before[route] + inner_index(per_route) * count
    return route, number, port, wanted, first, count, phase[route]


def _document(
    routes: Routes,
    counts: Ints,
    queues: tuple[Ints, ...],
    rank: Ints,
    address: Ints,
    options: Options,
) -> Iterator[str]:
    topology = routes.problem.topology
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield (
        f'<alltoall version="{VERSION}" name={quoteattr(one_line(topology.name))} '
        f'ranks="{len(address)}" hash="{options.hash}" '
        f'routes-per-destination="{options.max_routes or TABLE_ROUTES}" '
        f'layers="{routes.layers}" phases="{int(queues[-1].max()) + 1}">'
    )
    sizes = pair_sizes(routes.source, routes.destination)
    pair_first = starts_of(sizes)[:-1]
    chunks = np.add.reduceat(counts, pair_first)
    route_lines, queue_lines = _route_lines(routes), list(map(_queue_line, rows(*queues[1:])))
    queue_start = np.searchsorted(queues[0], np.append(pair_first, routes.count))
    lines: list[list[str]] = [[] for _ in routes.problem.topology.terminals]
    ends = (routes.source[pair_first], rank[routes.destination[pair_first]], chunks)
    ranges = (pair_first, pair_first + sizes, queue_start[:-1], queue_start[1:])
    for source, destination, total, first, last, begin, end in rows(*ends, *ranges):
        lines[source] += [
            f'    <send to="{destination}" chunks="{total}">',
            *route_lines[first:last],
            *queue_lines[begin:end],
            "    </send>",
        ]
    for number, position in enumerate(np.argsort(rank).tolist()):
        node = int(topology.terminals[position])
        called = "" if topology.names is None else f" name={quoteattr(topology.names[node])}"
        own = dotted(int(address[number]))
        yield f'  <rank id="{number}" node="{node}" address="{own}"{called}>'
        yield from lines[position]
        yield "  </rank>"
    yield "</alltoall>"


def _route_lines(routes: Routes) -> list[str]:
    topology = routes.problem.topology
    ids = inner_index(pair_sizes(routes.source, routes.destination))
    layers = one_layer_each(routes, "the file of Open MPI")
    nodes = list(map(str, topology.tail[routes.link].tolist()))
    ports = list(map(str, ports_of(topology)[routes.link].tolist()))
    return [
        f'      <route id="{own}" layer="{layer}" nodes="{" ".join(nodes[low:high])}" '
        f'ports="{" ".join(ports[low:high])}"/>'
        for own, layer, low, high in rows(ids, layers, routes.start[:-1], routes.start[1:])
    ]


def _queue_line(values: tuple[int, ...]) -> str:
    named = zip(ATTRIBUTES["qp"], values, strict=True)
    words = " ".join(f'{key}="{value}"' for key, value in named)
    return f"      <qp {words}/>"


@dataclass(frozen=True, eq=False)
class QueueTable:
    """The sends (source rank, destination rank, chunks), and the queue pairs.

    A queue pair is a row: send, number, source port, route, first chunk, count and phase.
    """

    hash: str
    address: Ints
    sends: Ints
    queues: Ints

    @property
    def phase(self) -> Ints:
        """The phase of each queue pair."""
        return self.queues[:, 6]

    def checked(self, file: RoutedFile) -> RoutedFile:
        """Return the file with the share of each route; raise if it is wrong."""
        sizes = pair_sizes(file.source, file.destination)
        violations = [*self._ranges(sizes), *self._coverage()]
        violations = violations or list(self._landing(sizes))
        send, count = self.queues[:, 0], self.queues[:, 5]
        route = np.minimum(starts_of(sizes)[send] + self.queues[:, 3], len(file.source) - 1)
        carried = np.bincount(route, count, len(file.source))
        idle = np.flatnonzero(carried == 0)[:1].tolist()
        violations += [f"{file.route(each)} has no queue pair" for each in idle]
        if violations:
            raise VerificationError(file.name, violations)
        per_rank = np.bincount(self.sends[send, 0], minlength=len(self.address))
        facts = {
            **file.facts,
            "queue_pairs": len(self.queues),
            "max_queue_pairs_per_rank": int(per_rank.max()),
            "chunks_per_shard": int(self.sends[:, 2].max()),
        }
        return replace(file, weight=carried / np.repeat(self.sends[:, 2], sizes), facts=facts)

    def _name(self, index: int) -> str:
        send = self.sends[self.queues[index, 0]]
        return f"queue pair {self.queues[index, 1]} of rank {send[0]} to rank {send[1]}"

    def _first(self, wrong: NDArray[np.bool_], words: str) -> Iterator[str]:
        found = np.flatnonzero(wrong)
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        yield from (f"{self._name(int(index))} {words}{more}" for index in found[:1])

    def _ranges(self, sizes: Ints) -> Iterator[str]:
        send, number, port, route, _, count, _ = self.queues.T
        outside = (port < FIRST_PORT) | (port > LAST_PORT)
        again = np.ones(len(send), dtype=np.bool_)
        key = self.sends[send, 0] * MOST_QUEUE_PAIRS + number
        again[np.unique(key, return_index=True)[1]] = False
        yield from self._first(outside, f"has a source port outside {FIRST_PORT}..{LAST_PORT}")
        yield from self._first(number >= MOST_QUEUE_PAIRS, "has a number of more than 24 bits")
        yield from self._first(route >= sizes[send], "takes a route that its send does not have")
        yield from self._first(count < 1, "carries no chunks")
        yield from self._first(again, "has the number of another one of its rank")

    def _coverage(self) -> Iterator[str]:
        """Compare the chunks of a send's queue pairs with all its chunks."""
        send, first, count = self.queues[:, 0], self.queues[:, 4], self.queues[:, 5]
        order = np.lexsort((first, send))
        send, begin, end = send[order], first[order], (first + count)[order]
        new = run_starts(send)
        wrong = begin != np.where(new, 0, np.roll(end, 1))
        wrong |= np.roll(new, -1) & (end != self.sends[send, 2])
        for at in np.flatnonzero(wrong)[:1]:
            source, destination, chunks = self.sends[send[at]]
            yield (
                f"the queue pairs of rank {source} to rank {destination} do not carry each of its "
                f"{chunks} chunks once (near chunk {begin[at]})"
            )

    def _landing(self, sizes: Ints) -> Iterator[str]:
        """Return the route of every queue pair by the fabric's hash."""
        send, number, port, route, _, _, _ = self.queues.T
        source, destination = self.address[self.sends[send, :2].T]
        lands = pick_routes(self.hash, port, source, destination, number, sizes[send])
        for at in np.flatnonzero(lands != route)[:1]:
            yield (
                f"{self._name(int(at))} with source port {port[at]} lands on route {lands[at]}; "
                f"expected route {route[at]} ({int((lands != route).sum())} such queue pairs)"
            )


ATTRIBUTES = {
    "alltoall": ("version", "name", "ranks", "hash", "routes-per-destination", "layers", "phases"),
    "rank": ("id", "node", "address"),
    "send": ("to", "chunks"),
    "route": ("id", "layer", "nodes", "ports"),
    "qp": ("number", "source-port", "route", "first", "count", "phase"),
}
"""The attributes of each element, all of them required; see docs/formats.md."""

OPTIONAL = {"rank": frozenset({"name"})}
"""Optional attributes of an element: the name of a rank's node."""

_INTEGERS = re.compile(r"(0|[1-9][0-9]{0,9})( (0|[1-9][0-9]{0,9}))*")


@dataclass
class _Columns:
    """Rows of the file: sends, routes and queue pairs."""

    sends: list[tuple[int, ...]] = field(default_factory=list)
    """Source rank, destination rank and chunks."""
    routes: list[tuple[int, ...]] = field(default_factory=list)
    """Send, id and layer."""
    nodes: list[str] = field(default_factory=list)
    ports: list[str] = field(default_factory=list)
    queues: list[tuple[int, ...]] = field(default_factory=list)
    """Send, number, source port, route, first chunk, count and phase."""


def read_ompi(text: str, where: str) -> RoutedFile:
    """Read the XML; a queue pair that would land on another route is a violation."""
    root = parse_xml(text, where)
    _check(root, "alltoall", where)
    take_text(root.attrib, "version", where, (str(VERSION),))
    take_text(root.attrib, "hash", where, tuple(HASHES))
    if len(root) != take_number(root.attrib, "ranks", where):
        raise FormatError(f"{where}: {len(root)} ranks; expected {root.attrib['ranks']}")
    columns = _Columns()
    ranks = [_rank(each, rank, f"{where}: rank {rank}", columns) for rank, each in enumerate(root)]
    node, address = np.array(ranks, dtype=np.int64).reshape(-1, 2).T
    if len(np.unique(node)) != len(node):
        raise FormatError(f"{where}: two ranks have the same node; expected one each")
    file = _file(columns, node, where)
    sends, queue_pairs = _array(columns.sends, 3), _array(columns.queues, 7)
    queues = QueueTable(root.attrib["hash"], address, sends, queue_pairs)
    # Hold the numbers in the root against the routes and queue pairs.
    phases = 1 + int(queues.phase.max())
    for key, found in (
        ("routes-per-destination", int(pair_sizes(file.source, file.destination).max())),
        ("layers", 0 if file.layer is None else 1 + int(file.layer.max())),
        ("phases", phases),
    ):
        stated = take_number(root.attrib, key, where)
        if found > stated or (found < stated and key != "routes-per-destination"):
            raise FormatError(f"{where}: {key} is {root.attrib[key]}; found {found} in the file")
    facts = {"hash": root.attrib["hash"], "phases": phases}
    return by_node(queues.checked(replace(file, facts=facts)))


def _rank(element: Element, rank: int, here: str, columns: _Columns) -> tuple[int, int]:
    _check(element, "rank", here)
    take_text(element.attrib, "id", here, (str(rank),))
    address = parse_dotted(element.attrib["address"])
    if address is None:
        found = short(element.attrib["address"])
        raise FormatError(f"{here}: address is {found}; expected one such as 10.0.0.1")
    for send in element:
        _check(send, "send", here)
        _send(send, rank, f"{here}, send to {send.attrib['to'][:20]}", columns)
    return take_number(element.attrib, "node", here), address


def _send(element: Element, rank: int, here: str, columns: _Columns) -> None:
    send, before = len(columns.sends), (len(columns.routes), len(columns.queues))
    columns.sends.append((rank, *_take_numbers(element, ATTRIBUTES["send"], here)))
    for each in element:
        if each.tag == "route" and len(columns.queues) == before[1]:
            _check(each, "route", here)
            columns.routes.append((send, *_take_numbers(each, ("id", "layer"), here)))
            columns.nodes.append(_list(each, "nodes", here))
            columns.ports.append(_list(each, "ports", here))
        else:
            _check(each, "qp", here)
            columns.queues.append((send, *_take_numbers(each, ATTRIBUTES["qp"], here)))
    if len(columns.routes) == before[0] or len(columns.queues) == before[1]:
        raise FormatError(f"{here}: expected at least one route, and then at least one queue pair")


def _take_numbers(element: Element, keys: tuple[str, ...], here: str) -> Iterator[int]:
    return (take_number(element.attrib, key, here) for key in keys)


def _file(columns: _Columns, node: Ints, where: str) -> RoutedFile:
    """Return the routes, without their weights."""
    sends, rows = _array(columns.sends, 3), _array(columns.routes, 3)
    for stray in np.flatnonzero(sends[:, 1] >= len(node))[:1]:
        found = f"rank {sends[stray, 0]} sends to rank {sends[stray, 1]}"
        raise FormatError(f"{where}: {found}; expected ranks 0..{len(node) - 1}")
    lists = (columns.nodes, columns.ports)
    hops, others = (np.array([text.count(" ") + 1 for text in each], np.int64) for each in lists)
    source, destination, _ = sends[rows[:, 0]].T
    file = RoutedFile(
        kind="ompi",
        name=where,
        source=node[source],
        destination=node[destination],
        start=starts_of(hops),
        node=_numbers(columns.nodes),
        port=_numbers(columns.ports),
        weight=np.zeros(len(rows)),
        layer=rows[:, 2],
        shares=True,
    )
    for index in np.flatnonzero(hops != others)[:1]:
        raise FormatError(
            f"{where}: {file.route(int(index))} has {hops[index]} nodes and {others[index]} ports; "
            "expected a port per node that is left"
        )
    require_order(replace(file, source=source, destination=destination), rows[:, 1], where)
    return file


def _array(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _numbers(texts: list[str]) -> Ints:
    return np.array(" ".join(texts).split(" ") if texts else [], dtype=np.int64)


def _list(element: Element, key: str, here: str) -> str:
    value = element.attrib[key]
    if not _INTEGERS.fullmatch(value):
        raise FormatError(f"{here}: {key} is {short(value)}; expected integers and single spaces")
    return value


def _check(element: Element, tag: str, here: str) -> None:
    optional, leaf = OPTIONAL.get(tag, frozenset()), tag in ("route", "qp")
    require_element(element, tag, here, ATTRIBUTES[tag], optional, leaf)
