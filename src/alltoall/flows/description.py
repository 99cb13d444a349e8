"""What tells topologies apart: sizes, distances, symmetry, and the bounds that need no solver."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from alltoall.errors import TopologyError
from alltoall.flows.bounds import cut_bound, distance_bound, regular_bound
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.ir.answer import GIGA
from alltoall.ir.fabric import Fabric
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.properties import diameter, girth, mean_distance

MAX_COUNT = 10**300
"""Automorphisms are counted in full below this, and by their logarithm from here on."""


@dataclass(frozen=True)
class Description:
    """The numbers that tell topologies apart.

    Degrees and capacities are the least and the largest; `girth` is None without a cycle;
    `diameter` and `mean_distance` are None where a terminal has no path to another; `automorphisms`
    is None where only their logarithm can be told, `names` where nodes are called by their numbers,
    `link_rates`, in bytes per second, where capacities have no unit. `bounds` are lower bounds on
    the all-to-all time, by what proves them.
    """

    topology: str
    nodes: int
    terminals: int
    links: int
    bidirectional: bool
    out_degree: tuple[int, int]
    in_degree: tuple[int, int]
    capacity: tuple[float, float]
    diameter: int | None
    mean_distance: float | None
    girth: int | None
    automorphisms: int | None
    automorphisms_log10: float
    bounds: dict[str, float]
    notes: tuple[str, ...]
    names: tuple[str, ...] | None = None
    link_rates: tuple[float, float] | None = None

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values; names and rates of links only if there are any."""
        found = {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in asdict(self).items()
        }
        if self.names is None:
            del found["names"]
        rates = found.pop("link_rates")
        return found if rates is None else found | {"link_GBps": [each / GIGA for each in rates]}


def describe_problem(problem: Problem) -> Description:
    """Return the numbers that tell a topology apart, and the bounds that a demand has on it."""
    topology = problem.topology
    symmetries = count_automorphisms(topology)
    longest, mean = _distances(topology)
    return Description(
        topology=topology.name,
        nodes=topology.nodes,
        terminals=len(topology.terminals),
        links=topology.links,
        bidirectional=topology.bidirectional,
        out_degree=(int(topology.out_degree.min()), int(topology.out_degree.max())),
        in_degree=(int(topology.in_degree.min()), int(topology.in_degree.max())),
        capacity=(float(topology.capacity.min()), float(topology.capacity.max())),
        diameter=longest,
        mean_distance=mean,
        girth=girth(topology),
        automorphisms=symmetries if symmetries < MAX_COUNT else None,
        automorphisms_log10=math.log10(symmetries),
        bounds=_bounds(problem),
        notes=topology.notes,
        names=topology.names,
        link_rates=_link_rates(topology),
    )


def _distances(topology: Topology) -> tuple[int, float] | tuple[None, None]:
    """Return the diameter and the mean distance, if terminals all reach each other."""
    try:
        return diameter(topology), mean_distance(topology)
    except TopologyError:
        return None, None


def _link_rates(topology: Topology) -> tuple[float, float] | None:
    """Return the least and the largest rate of a link, if capacities have a unit."""
    if topology.bytes_per_second is None:
        return None
    rates = Fabric(topology, topology.bytes_per_second).link_rates
    return float(rates.min()), float(rates.max())


def _bounds(problem: Problem) -> dict[str, float]:
    """Return the bounds that hold for this problem; `regular` only for the uniform one."""
    topology = problem.topology
    bounds = {"distance": distance_bound(problem), "cut": cut_bound(problem).bound}
    if problem.demand.uniform and _regular(topology):
        bound = float(regular_bound(topology.nodes, int(topology.out_degree[0])))
        bounds["regular"] = bound / float(topology.capacity.max())
    return bounds


def _regular(topology: Topology) -> bool:
    """Whether all nodes are terminals with as many links out."""
    same = topology.out_degree.min() == topology.out_degree.max()
    return bool(same) and len(topology.terminals) == topology.nodes > 1
