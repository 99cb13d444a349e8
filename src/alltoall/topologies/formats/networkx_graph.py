"""networkx graphs: `capacity` on edges, `terminal` on nodes."""

from collections.abc import Hashable
from dataclasses import replace
from typing import Any, TypeAlias

import networkx as nx

from alltoall.errors import TopologyError
from alltoall.ir.arrays import rows
from alltoall.ir.names import sound_names
from alltoall.ir.topology import Topology
from alltoall.ir.words import listed
from alltoall.topologies.formats.edge_lines import CAPACITY, WEIGHT

NAMES = ("name", "label")
"""The node attributes that may hold names; igraph writes the first into GraphML."""
UNIT = "bytes_per_second"
"""The graph attribute with the rate of a link of capacity 1."""
Edge: TypeAlias = tuple[Hashable, Hashable, dict[str, Any]]


def from_networkx(
    graph: "nx.Graph[Any]", name: str | None = None, capacity: str | None = None
) -> Topology:
    """Build a topology from any kind of networkx graph.

    Nodes labelled 0..n-1 keep their ids; other labels are numbered in the graph's order. Names are
    the distinct attributes `name` or `label`, else these other labels. A false node attribute
    `terminal` marks a switch. `capacity` names the edge attribute with the capacity, by default
    "capacity". A missing one counts as 1, with a note if edges have other numbers; a `weight` is
    ambiguous and must be named. Undirected edges become a link each way.
    """
    edges = _edges(graph)
    _check_attributes(edges, capacity)
    key = CAPACITY if capacity is None else capacity
    ids, notes, names = _numbering(list(graph.nodes))
    names = _attribute_names(graph, ids) or names
    marks = graph.nodes(data="terminal", default=True)
    terminals = [ids[label] for label, mark in marks if _is_true(mark)]
    links = [(ids[u], ids[v], _capacity(u, v, data.get(key, 1.0))) for u, v, data in edges]
    build = Topology.from_links if graph.is_directed() else Topology.from_edges
    notes += _assumed(edges, key)
    built = build(name or graph.name or "networkx", len(ids), links, terminals, notes, names)
    return replace(built, bytes_per_second=_unit(graph))


def to_networkx(topology: Topology) -> "nx.MultiDiGraph[int]":
    """Return a graph whose edge keys are the link indices, with `capacity` and `terminal`.

    Names of nodes become the attribute `name`, and the rate of a link of capacity 1 the graph's
    attribute `bytes_per_second`.
    """
    graph: nx.MultiDiGraph[int] = nx.MultiDiGraph(name=topology.name)
    if topology.bytes_per_second is not None:
        graph.graph[UNIT] = topology.bytes_per_second
    terminals = set(topology.terminals.tolist())
    graph.add_nodes_from((v, {"terminal": v in terminals}) for v in range(topology.nodes))
    if topology.names is not None:
        nx.set_node_attributes(graph, dict(enumerate(topology.names)), NAMES[0])
    links = rows(topology.tail, topology.head, topology.capacity)
    for link, (u, v, capacity) in enumerate(links):
        graph.add_edge(u, v, key=link, capacity=capacity)
    return graph


def _unit(graph: "nx.Graph[Any]") -> float | None:
    """Return the rate of a link of capacity 1, if the graph has the attribute."""
    found = graph.graph.get(UNIT)
    try:
        return None if found is None else float(found)
    except (TypeError, ValueError):
        raise TopologyError(
            f"the graph has {UNIT} {found!r}; expected a positive number, the bytes per second of "
            "a link of capacity 1"
        ) from None


def _numbering(
    labels: list[Hashable],
) -> tuple[dict[Hashable, int], tuple[str, ...], tuple[str, ...] | None]:
    """Return the id of each label, and the labels as names, or notes if they cannot be names."""
    if all(type(label) is int for label in labels) and set(labels) == set(range(len(labels))):
        return {label: label for label in range(len(labels))}, (), None
    ids = {label: index for index, label in enumerate(labels)}
    names = sound_names(labels)
    if names is not None:
        return ids, (), names
    shown = listed(f"{label}={index}" for label, index in ids.items())
    return ids, (f"nodes numbered in the order of the graph: {shown}",), None


def _attribute_names(graph: "nx.Graph[Any]", ids: dict[Hashable, int]) -> tuple[str, ...] | None:
    """Return the names in the attributes of the nodes, by id."""
    for key in NAMES:
        named = dict(graph.nodes(data=key))
        if all(isinstance(name, str) for name in named.values()):
            names = sound_names(named[label] for label in sorted(ids, key=ids.__getitem__))
            if names is not None:
                return names
    return None


def _check_attributes(edges: list[Edge], capacity: str | None) -> None:
    """Refuse a weight without a capacity, and a named attribute that no edge has."""
    if capacity is None:
        for u, v, data in edges:
            if CAPACITY not in data and data.get(WEIGHT, 1) != 1:
                ends = f"{u} -> {v}"
                raise TopologyError(
                    f"edge {ends} has the weight {data[WEIGHT]!r} and no capacity; if weights "
                    "are capacities say so: --capacity-attribute weight for a file, in Python "
                    'alltoall.topology(graph, capacity_attribute="weight"); if not, leave them out'
                )
    elif edges and not any(capacity in data for *_, data in edges):
        found = sorted({str(key) for *_, data in edges for key in data})
        raise TopologyError(
            f"no edge has the attribute {capacity!r} that is to be its capacity; "
            f"found {listed(found) or 'none'}"
        )


def _assumed(edges: list[Edge], key: str) -> tuple[str, ...]:
    """Note missing capacities: an unread `bandwidth` must not silently become a capacity of 1."""
    without = [data for *_, data in edges if key not in data]
    # A 1, or True, is no width that could get lost.
    numbers = {
        str(name)
        for data in without
        for name, value in data.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and value != 1
    }
    if not without or (len(without) == len(edges) and not numbers):
        return ()
    found = f"; not used: {listed(sorted(numbers))}" if numbers else ""
    return (f"no {key} on {len(without)} of {len(edges)} edges, taken as 1{found}",)


def _edges(graph: "nx.Graph[Any]") -> list[Edge]:
    """Return the edges in the graph's order, or by key if the keys are link indices."""
    if not isinstance(graph, nx.MultiDiGraph):
        return list(graph.edges(data=True))
    keyed = list(graph.edges(keys=True, data=True))
    if {key for *_, key, _ in keyed} == set(range(len(keyed))):
        keyed.sort(key=lambda edge: edge[2])
    return [(u, v, data) for u, v, _, data in keyed]


def _capacity(u: Hashable, v: Hashable, value: object) -> float:
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        found = f"edge {u} -> {v} has capacity {value!r}"
        raise TopologyError(f"{found}; expected a positive finite number") from None


def _is_true(mark: object) -> bool:
    """Read a flag, which some writers store as text."""
    if isinstance(mark, str):
        return mark.strip().lower() not in ("false", "0", "no", "")
    return bool(mark)
