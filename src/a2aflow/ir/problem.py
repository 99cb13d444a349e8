"""`Problem`: a topology and the demand that it has to carry."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from a2aflow.errors import DemandError, TopologyError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.demand import Demand
from a2aflow.ir.noun import Noun
from a2aflow.ir.reach import reachable
from a2aflow.ir.topology import LARGEST, SMALLEST, Topology
from a2aflow.ir.words import counted


@dataclass(frozen=True, eq=False, repr=False)
class Problem(Noun):
    """What every solver takes: the topology, and who sends how much to whom.

    Construction proves that the problem has an answer: every terminal reaches every other one.
    """

    BRIEF = ("nodes", "links", "demand")

    topology: Topology
    demand: Demand

    def __post_init__(self) -> None:
        terminals = len(self.topology.terminals)
        if self.demand.terminals != terminals:
            raise DemandError(
                f"demand between {self.demand.terminals} terminals on a topology with {terminals}; "
                "expected one row and column per terminal"
            )
        require_connected(self.topology)
        _require_range(self.topology)

    @classmethod
    def all_to_all(cls, topology: Topology) -> "Problem":
        """Return the uniform all-to-all on `topology`."""
        return cls(topology, Demand(len(topology.terminals)))

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

    def _columns(self) -> dict[str, Ints | Floats]:
        source, destination = self.demand.pairs()
        node, amount = self.topology.terminals, self.demand.of(source, destination)
        return {"source": node[source], "destination": node[destination], "amount": amount}

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


def require_connected(topology: Topology) -> None:
    """Raise, naming a pair, unless every terminal reaches every other one."""
    first = int(topology.terminals[0])
    forth = reachable(topology.nodes, topology.tail, topology.head, first)
    back = reachable(topology.nodes, topology.head, topology.tail, first)
    for seen, words in ((forth, "{0} cannot reach terminal {1}"), (back, "{1} cannot reach {0}")):
        missed = topology.terminals[~seen[topology.terminals]]
        if len(missed):
            ends = (topology.node_name(node) for node in (first, int(missed[0])))
            raise TopologyError(
                f"{topology.name} is disconnected: terminal {words.format(*ends)} "
                f"({counted(len(missed), 'such terminal')}); add links or leave these terminals out"
            )
