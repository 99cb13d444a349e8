"""`Topology`: nodes, directed links with capacities, and the terminals that send and receive."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError, TopologyError, escaped
from alltoall.ir.arguments import kind_of, read_argument, read_fields
from alltoall.ir.arrays import Floats, Ints, frozen
from alltoall.ir.names import checked_names, no_node, node_called, not_a_link, two_ends
from alltoall.ir.noun import Noun, Provenance, drawn
from alltoall.ir.words import counted, span

MAX_NODES = 1_000_000
SMALLEST, LARGEST = 1e-100, 1e100
"""Capacities and demands outside this range overflow when they are multiplied."""

NUMBERS = kind_of(Iterable[int])
"""The type of terminals as arguments."""

MAX_LINKS = 4_000_000
"""More than any method takes: the links of the complete graph on 2,000 nodes."""


@dataclass(frozen=True, eq=False, repr=False)
class Topology(Noun):
    """A directed multigraph with link capacities.

    The position of a link in `tail`, `head` and `capacity` is its index, and that index is the
    key of every per-link array in alltoall; parallel links are simply two indices. Nodes that are
    not terminals (switches, the NIC halves of a host) forward but neither send nor receive.
    `notes` say how the topology came to be: dropped self-loops, removed links, and the like. Nodes
    without `names` are called by their numbers. In the `name` and notes, which are parts of
    messages, line ends and control characters become escapes. `bytes_per_second` is the rate of
    capacity 1, where that is known: see `Fabric`.

    Topologies are equal if their nodes, links in order, capacities and terminals are: names, notes
    and provenance do not count.
    """

    TITLE = "name"
    BRIEF = ("nodes", "links")

    name: str = field(compare=False)
    nodes: int
    tail: Ints
    head: Ints
    capacity: Floats
    terminals: Ints
    notes: tuple[str, ...] = field(default=(), compare=False)
    names: tuple[str, ...] | None = field(default=None, compare=False)
    provenance: Provenance | None = field(default=None, compare=False)
    bytes_per_second: float | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        read_fields(self)
        object.__setattr__(self, "name", escaped(self.name.strip()))
        object.__setattr__(self, "notes", tuple(map(escaped, self.notes)))
        _check_node_count(self.name, self.nodes)
        if self.names is not None:
            object.__setattr__(self, "names", checked_names(self.name, self.nodes, self.names))
        for problem in _problems(self):
            raise TopologyError(f"{self.name}: {problem}")

    def changed(self, note: str, **fields: Any) -> "Topology":
        """Return the topology with other fields, one more note, and no provenance."""
        return replace(self, notes=(*self.notes, note), provenance=None, **fields)

    @classmethod
    def from_links(
        cls,
        name: str,
        nodes: int,
        links: Iterable[Sequence[float]],
        terminals: Iterable[int] | None = None,
        notes: Iterable[str] = (),
        names: Iterable[str] | None = None,
    ) -> "Topology":
        """Build from `(tail, head)` or `(tail, head, capacity)` tuples; capacity is 1 if left out.

        All nodes are terminals unless `terminals` says otherwise.
        """
        _check_node_count(name, nodes)
        ends = read_argument("terminals", range(nodes) if terminals is None else terminals, NUMBERS)
        columns: Any = _columns_of(name, links)
        given: dict[str, Any] = {"terminals": sorted(ends), "notes": notes, "names": names}
        return cls(name, nodes, *columns, **given)

    @classmethod
    def from_edges(
        cls,
        name: str,
        nodes: int,
        edges: Iterable[Sequence[float]],
        terminals: Iterable[int] | None = None,
        notes: Iterable[str] = (),
        names: Iterable[str] | None = None,
        parallel: bool = False,
    ) -> "Topology":
        """Build from undirected edges: each becomes a link either way, of the edge's capacity.

        Links are ordered by tail, then head, so that the same graph gets the same indices. Edges
        that name a pair in both orders may be one cable, listed from both ends, or two, and are
        refused without `parallel`.
        """
        tail, head, capacity = _columns_of(name, edges)
        if not read_argument("parallel", parallel, kind_of(bool)):
            _refuse_both_orders(name, tail, head)
        ends = np.concatenate([tail, head]), np.concatenate([head, tail])
        order = np.lexsort((np.tile(np.arange(len(tail)), 2), ends[1], ends[0]))
        links = np.stack([*ends, np.tile(capacity, 2)], axis=1)[order]
        return cls.from_links(name, nodes, links, terminals, notes, names)

    @property
    def links(self) -> int:
        """The number of directed links."""
        return len(self.tail)

    @cached_property
    def out_degree(self) -> Ints:
        """The number of links that leave each node."""
        return frozen(np.bincount(self.tail, minlength=self.nodes), np.int64)

    @cached_property
    def in_degree(self) -> Ints:
        """The number of links that enter each node."""
        return frozen(np.bincount(self.head, minlength=self.nodes), np.int64)

    @cached_property
    def position(self) -> Ints:
        """The position of each node among the terminals, -1 for other nodes."""
        position = np.full(self.nodes, -1, dtype=np.int64)
        position[self.terminals] = np.arange(len(self.terminals))
        return frozen(position, np.int64)

    @cached_property
    def bidirectional(self) -> bool:
        """Whether every link has a partner of the same capacity in the other direction."""
        forth = np.lexsort((self.capacity, self.head, self.tail))
        back = np.lexsort((self.capacity, self.tail, self.head))
        return bool(
            np.array_equal(self.tail[forth], self.head[back])
            and np.array_equal(self.head[forth], self.tail[back])
            and np.array_equal(self.capacity[forth], self.capacity[back])
        )

    def node_name(self, node: int) -> str:
        """Return the name of a node, or its number if it has none."""
        if self.names is None or not 0 <= node < self.nodes:
            return str(node)
        return self.names[node]

    def terminal_name(self, position: int) -> str:
        """Return the name of the terminal at a position."""
        return self.node_name(int(self.terminals[position]))

    def pair_name(self, source: int, destination: int) -> str:
        """Name a pair of terminals, given by position, for a message."""
        return f"from node {self.terminal_name(source)} to node {self.terminal_name(destination)}"

    def link_name(self, link: int) -> str:
        """Name a link by its ends, and by its index, or its place among parallel links."""
        tail, head = (self.node_name(int(ends[link])) for ends in (self.tail, self.head))
        if self.names is None:
            return f"link {link} ({tail} -> {head})"
        same = np.flatnonzero((self.tail == self.tail[link]) & (self.head == self.head[link]))
        which = f" ({1 + np.searchsorted(same, link)} of {len(same)})" if len(same) > 1 else ""
        return f"link {tail} -> {head}{which}"

    def called(self, nodes: Ints) -> Ints | NDArray[np.object_]:
        """Return the names of nodes, or their numbers if they have no names."""
        return nodes if self.names is None else np.array(self.names, dtype=np.object_)[nodes]

    def node_of(self, text: str) -> int:
        """Return the node named by a text, or else of that number."""
        node = self._find(text)
        if node is None:
            raise no_node(self.name, text, self.names or (), self.nodes)
        return node

    def has_node(self, text: str) -> bool:
        """Whether a text means a node, by its name or number."""
        return self._find(text) is not None

    def ends_of(self, text: str) -> tuple[int, int]:
        """Return the two nodes of a text such as `3-4`, `a,b` or `a->b`, in this order."""
        ways = two_ends(text, self._find)
        if len(ways) != 1:
            raise not_a_link(self.name, text, ways, self._find, self.names or ())
        return self.node_of(ways[0][0]), self.node_of(ways[0][1])

    def _find(self, text: str) -> int | None:
        return node_called(text, self._numbers, self.nodes)

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: node for node, name in enumerate(self.names or ())}

    def _facts(self) -> dict[str, str]:
        return {
            "nodes": f"{self.nodes:,}",
            "terminals": f"{len(self.terminals):,}",
            "links": f"{self.links:,}",
            "capacity": span(self.capacity.tolist()) if self.links else "none",
            **({"notes": "; ".join(self.notes)} if self.notes else {}),
        }

    def _columns(self) -> dict[str, Iterable[object]]:
        ends = {"tail": self.called(self.tail), "head": self.called(self.head)}
        return {**ends, "capacity": self.capacity}

    def _repr_svg_(self) -> str | None:
        return drawn(self)


def _columns_of(name: str, rows: Iterable[Sequence[float]]) -> Iterable[Floats]:
    """Return tails, heads and capacities of `(tail, head)` or `(tail, head, capacity)` rows."""
    try:
        found = np.array([(row[0], row[1], row[2] if len(row) > 2 else 1.0) for row in rows])
        return frozen(found, np.float64).reshape(-1, 3).T
    except (InputError, TypeError, ValueError, LookupError):
        raise TopologyError(
            f"{name}: links that are not all (tail, head) or (tail, head, capacity); "
            "expected the numbers of two nodes, and perhaps a capacity"
        ) from None


def _refuse_both_orders(name: str, one: Floats, other: Floats) -> None:
    """Refuse edges that name a pair in both orders: one cable from both its ends, or two cables."""
    edges = list(zip(one.tolist(), other.tolist(), strict=True))
    forth = set(edges)
    both = [(u, v) for u, v in edges if (v, u) in forth]
    for u, v in both:
        if u == v:
            continue
        raise TopologyError(
            f"{name}: edges name {counted(len(set(map(frozenset, both))), 'pair')} in "
            f"both orders, such as {u:g} and {v:g}; an edge goes both ways, and a cable that is "
            "listed from both ends would count twice; leave out one of the two, or say what they "
            "are: parallel=True if they are two cables, from_links if each is one direction"
        )


def _check_node_count(name: str, nodes: int) -> None:
    read_argument("nodes", nodes, kind_of(int))
    if not 0 < nodes <= MAX_NODES:
        raise TopologyError(f"{name}: {nodes} nodes; expected 1 to {MAX_NODES:,} nodes")


def _problems(topology: Topology) -> Iterator[str]:
    shapes = {topology.tail.shape, topology.head.shape, topology.capacity.shape}
    if len(shapes) > 1 or topology.tail.ndim != 1:
        yield (
            f"tail, head and capacity have shapes {sorted(shapes)}; expected one entry per link "
            "in each"
        )
        return
    if topology.links > MAX_LINKS:
        yield f"{topology.links:,} links; expected at most {MAX_LINKS:,}"
    yield from _link_problems(topology)
    terminals, nodes = topology.terminals, topology.nodes
    if terminals.ndim != 1:
        yield "terminals have no list; expected the nodes that send and receive"
        return
    bad = terminals[(terminals < 0) | (terminals >= nodes)]
    if len(bad):
        yield f"terminal {bad[0]} is not a node; expected nodes 0..{nodes - 1}"
    if np.any(np.diff(terminals) <= 0):
        yield "terminals must be distinct and in ascending order"
    if len(terminals) < 2:
        yield f"{len(terminals)} terminal(s); an all-to-all needs at least 2"
    rate = topology.bytes_per_second
    if rate is not None and not 0 < rate < np.inf:
        yield f"capacity 1 is {rate:g} bytes per second; expected a positive number"


def _link_problems(topology: Topology) -> Iterator[str]:
    """Yield each kind of fault, with its first link."""
    tail, head, nodes, capacity = topology.tail, topology.head, topology.nodes, topology.capacity
    beyond = f"an end outside the nodes 0..{nodes - 1}; renumber the nodes"
    for bad, problem in (
        ((tail < 0) | (tail >= nodes), beyond),
        ((head < 0) | (head >= nodes), beyond),
        (tail == head, "both ends at one node; a self-loop carries no traffic, remove it"),
        (
            ~(np.isfinite(capacity) & (capacity > 0)),
            "capacity {:g}; expected a positive finite number (leave out a link that carries "
            "nothing)",
        ),
    ):
        found = np.flatnonzero(bad)
        if len(found):
            link = int(found[0])
            more = f" (and {counted(len(found) - 1, 'more link')})" if len(found) > 1 else ""
            yield f"{topology.link_name(link)} has {problem.format(capacity[link])}{more}"
