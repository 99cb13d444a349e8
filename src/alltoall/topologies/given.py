"""Arguments of callers, turned into a topology, a demand or a problem."""

import sys
from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union

import numpy as np

from alltoall.errors import DemandError, InputError, UsageError
from alltoall.ir.arrays import frozen
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.demand import demand_from_matrix
from alltoall.ir.files.node_tables import group_of, read_demand, read_groups
from alltoall.ir.flow import Flow
from alltoall.ir.jobs import Job, joint_demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.registry import deferred, load
from alltoall.topologies.background import GivenBackground, without_background
from alltoall.topologies.families import FAMILIES, names_file
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build

if TYPE_CHECKING:
    import networkx as nx
    from numpy.typing import ArrayLike

read_topology: Callable[..., Topology] = deferred("alltoall.topologies.formats:read_topology")
read_jobs: Callable[[Path, Topology], tuple[Job, ...]] = deferred(
    "alltoall.ir.files.jobs:read_jobs"
)
"""Readers, imported when called."""

Answer: TypeAlias = Flow | Routes | Schedule

Given: TypeAlias = Union[str, PathLike[str], "nx.Graph[Any]", Topology, Problem, Answer]
"""A SPEC, a file, a networkx graph, a topology, a problem, or an answer to one."""

GivenDemand: TypeAlias = Union[Demand, "ArrayLike", str, PathLike[str], None]
"""A demand, its matrix [terminals, terminals], a file of either, or None for the uniform one."""

GivenGroups: TypeAlias = Iterable[Iterable[str | int]] | str | PathLike[str] | None
"""Groups of terminals, each by its name or number, or a file with a group a line."""

GivenJobs: TypeAlias = Sequence[Job] | str | PathLike[str] | None
"""Jobs that share a fabric, or the file of them."""


def topology_of(given: Given) -> Topology:
    """Return the topology of a SPEC such as `torus:3x3x3`, a file, a graph, a problem or answer."""
    if isinstance(given, Topology):
        return given
    if isinstance(given, Problem):
        return given.topology
    if isinstance(given, Answer):
        return given.problem.topology
    if isinstance(given, str):
        return load_topology(given)
    if isinstance(given, PathLike):
        return read_topology(Path(given))
    networkx = sys.modules.get("networkx")  # Whoever has a graph has imported networkx.
    if networkx is not None and isinstance(given, networkx.Graph):
        built: Topology = load("alltoall.topologies.formats.networkx_graph:from_networkx")(given)
        return built
    raise UsageError(
        f"a {type(given).__name__} in the place of a topology; expected a SPEC such as "
        "'torus:3x3x3', the path of a file, a networkx graph, a Topology or a Problem"
    )


def problem_of(
    given: Given,
    demand: GivenDemand = None,
    host_bandwidth: float | None = None,
    groups: GivenGroups = None,
    jobs: GivenJobs = None,
    background: GivenBackground = None,
) -> Problem:
    """Return the problem on a topology: uniform unless there is a demand, groups or jobs.

    `host_bandwidth` caps the traffic of each host, in units of one link. Jobs add up their demands,
    each by its weight. Background traffic is subtracted from the capacities.
    """
    posed = given.problem if isinstance(given, Answer) else given
    topology = topology_of(posed)
    if host_bandwidth is not None:
        topology = with_host_bandwidth(topology, host_bandwidth)
    topology = without_background(topology, background)
    demands = {"demand": demand, "groups": groups, "jobs": jobs}
    several = [name for name, each in demands.items() if each is not None]
    if len(several) > 1:
        expected = "expected one of them, as each gives the whole demand"
        raise UsageError(f"{' and '.join(several)}; {expected}")
    if jobs is not None:
        demand = joint_demand(jobs_of(jobs, topology))
    if groups is not None:
        demand = Demand.of_groups(len(topology.terminals), groups_of(groups, topology))
    if demand is not None:
        return Problem(topology, demand_of(demand, topology))
    if isinstance(posed, Problem):
        return posed if topology is posed.topology else Problem(topology, posed.demand)
    return Problem.all_to_all(topology)


def demand_of(given: GivenDemand, topology: Topology) -> Demand:
    """Return the demand between the terminals of a topology."""
    if given is None:
        return Demand(len(topology.terminals))
    if isinstance(given, Demand):
        return given
    if isinstance(given, str | PathLike):
        return read_demand(Path(given), topology)
    try:
        matrix = frozen(given, np.float64)
    except InputError:
        raise DemandError(
            f"a {type(given).__name__} in the place of a demand; expected a square matrix of "
            "numbers, a file of one, or a Demand"
        ) from None
    return demand_from_matrix(matrix, topology, "demand")


def groups_of(given: GivenGroups, topology: Topology) -> list[list[int]]:
    """Return groups of terminals by position."""
    if isinstance(given, str | PathLike):
        return read_groups(Path(given), topology)
    return [group_of(map(str, group), topology) for group in given or ()]


def jobs_of(given: GivenJobs, topology: Topology) -> tuple[Job, ...]:
    """Return jobs, from a file if a path is given."""
    if isinstance(given, str | PathLike):
        return read_jobs(Path(given), topology)
    return tuple(given or ())


def load_topology(
    spec: str,
    input_format: str | None = None,
    directed: bool = False,
    capacity_attribute: str | None = None,
    parallel: bool = False,
) -> Topology:
    """Build a family if SPEC begins with the name of one, else read a file.

    A file named like a family is read as `./ring`, or with a format.
    """
    family = spec.strip().partition(":")[0]
    if input_format or (family not in FAMILIES and names_file(spec)):
        return read_topology(Path(spec), input_format, directed, capacity_attribute, parallel)
    topology = build(spec)
    if directed or parallel:
        option = "--directed" if directed else "--parallel"
        raise UsageError(
            f"{option} with {spec!r}, which is built; expected an edge-list file, "
            f"whose lines {option} explains; leave it out"
        )
    if capacity_attribute is not None:
        raise UsageError(
            f"--capacity-attribute with {spec!r}, which is built; expected a GraphML file or an "
            "edge list of networkx, whose edges have attributes; leave it out"
        )
    return topology
