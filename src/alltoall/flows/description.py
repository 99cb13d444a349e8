"""`Description` of a topology: sizes, distances, symmetry, and bounds that need no solver."""

import math
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from alltoall.errors import TopologyError
from alltoall.flows.bounds import cut_bound, distance_bound, regular_bound
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.ir.answer import GIGA
from alltoall.ir.fabric import Fabric
from alltoall.ir.problem import Problem
from alltoall.topologies.properties import diameter, girth, mean_distance

MAX_COUNT = 10**300
"""Larger numbers of automorphisms are given by their logarithm only."""


@dataclass(frozen=True)
class Description:
    """The numbers that distinguish topologies.

    Degrees and capacities are the least and the largest; `girth` is None without a cycle;
    `diameter` and `mean_distance` are None if a terminal has no path to another; `automorphisms` is
    None if only their logarithm is known, `names` if nodes have none, `link_rates`, in bytes per
    second, if capacities have no unit. `bounds` are lower bounds on the all-to-all time by name.
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
        values = asdict(self).items()
        found = {key: list(value) if isinstance(value, tuple) else value for key, value in values}
        if self.names is None:
            del found["names"]
        rates = found.pop("link_rates")
        return found if rates is None else found | {"link_GBps": [rate / GIGA for rate in rates]}


def describe_problem(problem: Problem) -> Description:
    """Return the description of a topology, with the bounds for a demand."""
    topology = problem.topology
    symmetries = count_automorphisms(topology)
    longest: int | None = None
    mean: float | None = None
    with suppress(TopologyError):  # Terminals may not reach each other.
        longest, mean = diameter(topology), mean_distance(topology)
    rates: tuple[float, float] | None = None
    if topology.bytes_per_second is not None:
        every = Fabric(topology, topology.bytes_per_second).link_rates
        rates = float(every.min()), float(every.max())
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
        link_rates=rates,
    )


def _bounds(problem: Problem) -> dict[str, float]:
    """Return the bounds by name; `regular` only for the uniform demand on regular topologies."""
    topology, degree = problem.topology, problem.topology.out_degree
    bounds = {"distance": distance_bound(problem), "cut": cut_bound(problem).bound}
    regular = degree.min() == degree.max() and len(topology.terminals) == topology.nodes > 1
    if problem.demand.uniform and regular:
        bound = float(regular_bound(topology.nodes, int(degree[0])))
        bounds["regular"] = bound / float(topology.capacity.max())
    return bounds
