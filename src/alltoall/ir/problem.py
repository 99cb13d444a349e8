"""`Problem`: a topology and a demand, and both without failed links and nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from alltoall.errors import DemandError, TopologyError
from alltoall.ir.arguments import read_fields
from alltoall.ir.arrays import Floats, Ints, connected_pairs, reachable
from alltoall.ir.demand import Demand
from alltoall.ir.noun import Noun
from alltoall.ir.topology import LARGEST, SMALLEST, Topology
from alltoall.ir.words import counted


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Noun):
    """A topology and the demand between its terminals.

    Construction proves that the problem has an answer: every pair with a demand has a path.
    """

    TITLE = "topology.name"
    BRIEF = ("nodes", "links", "demand")

    topology: Topology
    demand: Demand

    def __post_init__(self) -> None:
        read_fields(self)
        terminals = len(self.topology.terminals)
        if self.demand.terminals != terminals:
            raise DemandError(
                f"demand between {self.demand.terminals} terminals on a topology with {terminals}; "
                "expected one row and column per terminal"
            )
        pairs = _cut_off_pairs(self.topology, self.demand)
        if len(pairs):
            what = "terminal" if self.demand.uniform else "pair"
            source, destination = (self.topology.node_name(int(node)) for node in pairs[0])
            raise TopologyError(
                f"{self.topology.name} is disconnected: terminal {source} cannot reach terminal "
                f"{destination} ({counted(len(pairs), f'such {what}')}); add links, or leave out a "
                "terminal or what it sends to the other"
            )
        # Raise unless times, which are demands over capacities, are numbers.
        least, most = float(self.topology.capacity.min()), float(self.topology.capacity.max())
        if not SMALLEST <= least <= most <= LARGEST:
            raise TopologyError(
                f"{self.topology.name}: capacities from {least:g} to {most:g}; expected "
                f"{SMALLEST:g} to {LARGEST:g}, so that no time overflows. Use another unit "
                "(--scale-capacity)"
            )

    @classmethod
    def all_to_all(cls, topology: Topology) -> "Problem":
        """Return the uniform all-to-all on `topology`."""
        return cls(topology, Demand(len(topology.terminals)))

    @cached_property
    def sources(self) -> Ints:
        """The terminals that send anything, as positions in `topology.terminals`."""
        return self.demand.sources()

    def node_demand(self, sources: Ints) -> Floats:
        """Return the demand of each node from each source, shape [sources, nodes]."""
        rows = np.zeros((len(sources), self.topology.nodes))
        rows[:, self.topology.terminals] = self.demand.rows(sources)
        return rows

    def _facts(self) -> dict[str, str]:
        demand = self.demand._facts()["total"]
        return {**self.topology._facts(), "demand": f"{self.demand._title()}, {demand} shards"}

    def _columns(self) -> dict[str, Iterable[object]]:
        source, destination = self.demand.pairs()
        terminal = self.topology.called(self.topology.terminals)
        amount = self.demand.of(source, destination)
        return {"source": terminal[source], "destination": terminal[destination], "amount": amount}

    def _repr_svg_(self) -> str | None:
        return self.topology._repr_svg_()


NONE: Ints = np.zeros(0, dtype=np.int64)


def _cut_off_pairs(topology: Topology, demand: Demand) -> Ints:
    """Return the nodes of pairs with a demand but no path; only some for a uniform demand."""
    terminals = topology.terminals
    forth = reachable(topology.nodes, topology.tail, topology.head, terminals[0])[terminals]
    back = reachable(topology.nodes, topology.head, topology.tail, terminals[0])[terminals]
    if demand.matrix is None:
        ends = [[0, each] for each in np.flatnonzero(~forth).tolist()]
        ends = ends or [[each, 0] for each in np.flatnonzero(~back).tolist()]
    elif (forth & back).all():  # All reach each other, by way of the first.
        ends = []
    else:
        joined = connected_pairs(topology.nodes, topology.tail, topology.head, terminals)
        ends = np.argwhere(~joined & (demand.matrix > 0)).tolist()
    return terminals[np.asarray(ends, dtype=np.int64).reshape(-1, 2)]


def without_links(topology: Topology, links: Ints, note: str) -> Topology:
    """Return the topology without some links, the others in order."""
    return topology.changed(note, **_links_at(topology, numbers_left(topology, links, NONE)[1]))


def without_nodes(topology: Topology, nodes: Ints, note: str) -> Topology:
    """Return the topology without some nodes and their links; others are renumbered in order."""
    left, kept = numbers_left(topology, NONE, nodes)
    fields: dict[str, Any] = _links_at(topology, kept)
    fields["terminals"] = np.intersect1d(topology.terminals, left)
    for key in ("tail", "head", "terminals"):
        fields[key] = np.searchsorted(left, fields[key])
    names = topology.names
    fields["names"] = None if names is None else tuple(names[node] for node in left.tolist())
    return topology.changed(note, nodes=len(left), **fields)


def _links_at(topology: Topology, links: Ints) -> dict[str, Ints | Floats]:
    return {key: getattr(topology, key)[links] for key in ("tail", "head", "capacity")}


def numbers_left(topology: Topology, links: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Return the remaining nodes and links, in order."""
    stays = ~np.isin(np.arange(topology.nodes), nodes)
    kept = stays[topology.tail] & stays[topology.head]
    kept[links] = False
    return np.flatnonzero(stays), np.flatnonzero(kept)


def demand_without(problem: Problem, nodes: Ints) -> Demand:
    """Return the demand of the remaining terminals."""
    stays = np.flatnonzero(~np.isin(problem.topology.terminals, nodes))
    if problem.demand.uniform:
        return Demand(len(stays))
    return Demand(len(stays), problem.demand.of(*np.meshgrid(stays, stays, indexing="ij")))
