"""Read path-steered XML for MPI runtimes, and check its queue pairs.

Each queue pair must land on its route, and together they carry every chunk once.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import FormatError, VerificationError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.files.fields import short, take_number, take_text
from alltoall.ir.files.xml import parse_xml, require_element
from alltoall.ir.words import escaped
from alltoall.lowering.tables.hashes import (
    FIRST_PORT,
    HASHES,
    LAST_PORT,
    parse_dotted,
    picked_routes,
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

    @cached_property
    def phase(self) -> Ints:
        """The phase of each queue pair."""
        return self.queues[:, 6]

    def most_routes(self, file: RoutedFile) -> int:
        """Return the largest number of routes of any send."""
        return int(pair_sizes(file.source, file.destination).max())

    def checked(self, file: RoutedFile) -> RoutedFile:
        """Return the file with the share that each route carries, or raise what is wrong."""
        sizes = pair_sizes(file.source, file.destination)
        violations = [*self._ranges(sizes), *self._coverage()]
        if not violations:
            violations += self._landing(sizes)
        send, count = self.queues[:, 0], self.queues[:, 5]
        route = np.minimum(starts_of(sizes)[send] + self.queues[:, 3], len(file.source) - 1)
        carried = np.bincount(route, count, len(file.source))
        for idle in np.flatnonzero(carried == 0)[:1]:
            violations.append(f"{file.route(int(idle))} has no queue pair")
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
        if len(found):
            more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
            yield f"{self._name(int(found[0]))} {words}{more}"

    def _ranges(self, sizes: Ints) -> Iterator[str]:
        send, number, port, route, _, count, _ = self.queues.T
        ports = f"{FIRST_PORT}..{LAST_PORT}"
        yield from self._first(
            (port < FIRST_PORT) | (port > LAST_PORT), f"has a source port outside {ports}"
        )
        yield from self._first(number >= MOST_QUEUE_PAIRS, "has a number of more than 24 bits")
        yield from self._first(route >= sizes[send], "takes a route that its send does not have")
        yield from self._first(count < 1, "carries no chunks")
        key = self.sends[send, 0] * MOST_QUEUE_PAIRS + number
        _, first = np.unique(key, return_index=True)
        again = np.ones(len(key), dtype=np.bool_)
        again[first] = False
        yield from self._first(again, "has the number of another one of its rank")

    def _coverage(self) -> Iterator[str]:
        """Hold the chunks of a send's queue pairs, end to end, against all its chunks."""
        send, first, count = self.queues[:, 0], self.queues[:, 4], self.queues[:, 5]
        order = np.lexsort((first, send))
        send, begin, end = send[order], first[order], (first + count)[order]
        expected = np.append(0, end[:-1])
        new = np.append(True, send[1:] != send[:-1])
        expected[new] = 0
        wrong = begin != expected
        last = np.append(new[1:], True)
        wrong |= last & (end != self.sends[send, 2])
        for at in np.flatnonzero(wrong)[:1]:
            source, destination, chunks = self.sends[send[at]]
            yield (
                f"the queue pairs of rank {source} to rank {destination} do not carry each of its "
                f"{chunks} chunks once (near chunk {begin[at]})"
            )

    def _landing(self, sizes: Ints) -> Iterator[str]:
        """Hash every queue pair as the fabric does."""
        send, number, port, route, _, _, _ = self.queues.T
        source, destination = self.address[self.sends[send, :2].T]
        lands = picked_routes(self.hash, port, source, destination, number, sizes[send])
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
"""Attributes that an element may have besides: what the node of a rank is called."""

_INTEGERS = re.compile(r"(0|[1-9][0-9]{0,9})( (0|[1-9][0-9]{0,9}))*")


@dataclass
class _Columns:
    """What is read, a row per send, route and queue pair."""

    sends: list[tuple[int, int, int]] = field(default_factory=list)
    """Source rank, destination rank and chunks."""
    routes: list[tuple[int, int, int]] = field(default_factory=list)
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
    queues = QueueTable(
        root.attrib["hash"], address, _array(columns.sends, 3), _array(columns.queues, 7)
    )
    return by_node(queues.checked(_with_facts(file, root, queues, where)))


def _rank(element: Element, rank: int, here: str, columns: _Columns) -> tuple[int, int]:
    """Read a rank into the columns; return its node and address."""
    _check(element, "rank", here)
    take_text(element.attrib, "id", here, (str(rank),))
    address = parse_dotted(element.attrib["address"])
    if address is None:
        found = short(element.attrib["address"])
        raise FormatError(f"{here}: address is {found}; expected one such as 10.0.0.1")
    for send in element:
        _check(send, "send", here)
        _send(send, rank, f"{here}, send to {escaped(send.attrib['to'][:20])}", columns)
    return take_number(element.attrib, "node", here), address


def _send(element: Element, rank: int, here: str, columns: _Columns) -> None:
    """Read a send into the columns: its routes, then its queue pairs."""
    send, before = len(columns.sends), (len(columns.routes), len(columns.queues))
    columns.sends.append(
        (rank, take_number(element.attrib, "to", here), take_number(element.attrib, "chunks", here))
    )
    for each in element:
        if each.tag == "route" and len(columns.queues) == before[1]:
            _check(each, "route", here)
            row = (
                send,
                take_number(each.attrib, "id", here),
                take_number(each.attrib, "layer", here),
            )
            columns.routes.append(row)
            columns.nodes.append(_list(each, "nodes", here))
            columns.ports.append(_list(each, "ports", here))
        else:
            _check(each, "qp", here)
            columns.queues.append(
                (send, *(take_number(each.attrib, name, here) for name in ATTRIBUTES["qp"]))
            )
    if len(columns.routes) == before[0] or len(columns.queues) == before[1]:
        raise FormatError(f"{here}: expected at least one route, and then at least one queue pair")


def _file(columns: _Columns, node: Ints, where: str) -> RoutedFile:
    """Return the routes, without what they carry."""
    sends, rows = _array(columns.sends, 3), _array(columns.routes, 3)
    for stray in np.flatnonzero(sends[:, 1] >= len(node))[:1]:
        raise FormatError(
            f"{where}: rank {sends[stray, 0]} sends to rank {sends[stray, 1]}; expected ranks "
            f"0..{len(node) - 1}"
        )
    hops, others = (
        np.array([text.count(" ") + 1 for text in texts], dtype=np.int64)
        for texts in (columns.nodes, columns.ports)
    )
    file = RoutedFile(
        kind="ompi",
        name=where,
        source=node[sends[rows[:, 0], 0]],
        destination=node[sends[rows[:, 0], 1]],
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
    ends = sends[rows[:, 0]]
    require_order(replace(file, source=ends[:, 0], destination=ends[:, 1]), rows[:, 1], where)
    return file


def _with_facts(file: RoutedFile, root: Element, queues: QueueTable, where: str) -> RoutedFile:
    """Hold the numbers that the root states against the routes and queue pairs."""
    layers = 0 if file.layer is None else 1 + int(file.layer.max())
    most = take_number(root.attrib, "routes-per-destination", where)
    phases = 1 + int(queues.phase.max())
    for key, found, fits in (
        ("routes-per-destination", queues.most_routes(file), queues.most_routes(file) <= most),
        ("layers", layers, take_number(root.attrib, "layers", where) == layers),
        ("phases", phases, take_number(root.attrib, "phases", where) == phases),
    ):
        if not fits:
            raise FormatError(f"{where}: {key} is {root.attrib[key]}; found {found} in the file")
    return replace(file, facts={"hash": root.attrib["hash"], "phases": phases})


def _array(rows: Sequence[tuple[int, ...]], width: int) -> Ints:
    return np.array(rows, dtype=np.int64).reshape(-1, width)


def _numbers(texts: list[str]) -> Ints:
    """Return the integers of all lists."""
    return np.array(" ".join(texts).split(" ") if texts else [], dtype=np.int64)


def _list(element: Element, key: str, here: str) -> str:
    value = element.attrib[key]
    if not _INTEGERS.fullmatch(value):
        raise FormatError(f"{here}: {key} is {short(value)}; expected integers and single spaces")
    return value


def _check(element: Element, tag: str, here: str) -> None:
    optional, leaf = OPTIONAL.get(tag, frozenset()), tag in ("route", "qp")
    require_element(element, tag, here, ATTRIBUTES[tag], optional, leaf)
