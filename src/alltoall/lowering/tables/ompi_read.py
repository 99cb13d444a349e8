"""Read path-steered XML for MPI runtimes, and check its queue pairs.

Each queue pair must land on its route, and together they carry every chunk once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, VerificationError
from alltoall.ir.arrays import Ints, run_starts, starts_of
from alltoall.ir.files.fields import short, take_number, take_text
from alltoall.ir.files.xml import parse_xml, require_element
from alltoall.lowering.tables.hashes import (
    FIRST_PORT,
    HASHES,
    LAST_PORT,
    parse_dotted,
    pick_routes,
)
from alltoall.lowering.tables.ompi_emit import MOST_QUEUE_PAIRS, VERSION
from alltoall.lowering.tables.routed_file import RoutedFile, by_node, pair_sizes, require_order


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
