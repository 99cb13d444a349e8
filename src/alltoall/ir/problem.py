"""`Problem`: a topology and a demand, and both without failed links and nodes."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import compress

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
    """What every solver takes: the topology, and who sends how much to whom.

    Construction proves that the problem has an answer: every terminal reaches those it sends to.
    """

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
        _require_connected(self.topology, self.demand)
        _require_range(self.topology)

    @classmethod
    def all_to_all(cls, topology: Topology) -> "Problem":
        """Return the uniform all-to-all on `topology`."""
        return cls(topology, Demand(len(topology.terminals)))

    @classmethod
    def where_connected(cls, topology: Topology) -> "Problem":
        """Return the all-to-all of the pairs of terminals that have a path."""
        ends = topology.terminals
        joined = connected_pairs(topology.nodes, topology.tail, topology.head, ends)
        if joined.all():
            return cls.all_to_all(topology)
        return cls(topology, Demand(len(ends), joined - np.eye(len(ends))))

    @cached_property
    def sources(self) -> Ints:
        """The terminals that send anything, as positions in `topology.terminals`."""
        return self.demand.sources()

    def node_demand(self, sources: Ints) -> Floats:
        """Return what each node is to receive from each source, shape [sources, nodes]."""
        rows = np.zeros((len(sources), self.topology.nodes))
        rows[:, self.topology.terminals] = self.demand.rows(sources)
        return rows

    def _title(self) -> str:
        return self.topology.name

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


def _require_range(topology: Topology) -> None:
    """Raise unless times, which are demands over capacities, are numbers."""
    least, most = float(topology.capacity.min()), float(topology.capacity.max())
    if not SMALLEST <= least <= most <= LARGEST:
        raise TopologyError(
            f"{topology.name}: capacities from {least:g} to {most:g}; expected {SMALLEST:g} to "
            f"{LARGEST:g}, so that no time overflows. Use another unit (--scale-capacity)"
        )


def _require_connected(topology: Topology, demand: Demand) -> None:
    """Raise, naming a pair, unless every terminal reaches those that it sends to."""
    pairs = _cut_off_pairs(topology, demand)
    if len(pairs):
        what = "terminal" if demand.uniform else "pair"
        source, destination = (topology.node_name(int(node)) for node in pairs[0])
        raise TopologyError(
            f"{topology.name} is disconnected: terminal {source} cannot reach terminal "
            f"{destination} ({counted(len(pairs), f'such {what}')}); add links, or leave out a "
            "terminal or what it sends to the other"
        )


def _cut_off_pairs(topology: Topology, demand: Demand) -> Ints:
    """Return the nodes of pairs with a demand and no path; of the uniform one some that show it."""
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
    """Return the topology without some links, which leaves the others in order."""
    kept = np.ones(topology.links, dtype=np.bool_)
    kept[links] = False
    return topology.changed(
        note,
        tail=topology.tail[kept],
        head=topology.head[kept],
        capacity=topology.capacity[kept],
    )


def without_nodes(topology: Topology, nodes: Ints, note: str) -> Topology:
    """Return the topology without some nodes and their links; others are renumbered in order."""
    stays = np.ones(topology.nodes, dtype=np.bool_)
    stays[nodes] = False
    renumbered = np.cumsum(stays) - 1
    kept = stays[topology.tail] & stays[topology.head]
    return topology.changed(
        note,
        nodes=int(stays.sum()),
        tail=renumbered[topology.tail[kept]],
        head=renumbered[topology.head[kept]],
        capacity=topology.capacity[kept],
        terminals=renumbered[topology.terminals[stays[topology.terminals]]],
        names=None if topology.names is None else tuple(compress(topology.names, stays)),
    )


def numbers_left(topology: Topology, links: Ints, nodes: Ints) -> tuple[Ints, Ints]:
    """Return which nodes and which links are left, each at its number among those that are."""
    stays = ~np.isin(np.arange(topology.nodes), nodes)
    kept = stays[topology.tail] & stays[topology.head]
    kept[links] = False
    return np.flatnonzero(stays), np.flatnonzero(kept)


def demand_without(problem: Problem, nodes: Ints) -> Demand:
    """Return the demand of the terminals that are left without some nodes."""
    stays = np.flatnonzero(~np.isin(problem.topology.terminals, nodes))
    if problem.demand.uniform:
        return Demand(len(stays))
    return Demand(len(stays), problem.demand.of(*np.meshgrid(stays, stays, indexing="ij")))
