"""Arguments of callers, turned into a topology, a demand or a problem."""

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, Union, cast

import numpy as np

from alltoall.errors import DemandError, InputError, UsageError
from alltoall.ir.arrays import frozen
from alltoall.ir.demand import Demand
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.files.json.demand import demand_from_matrix
from alltoall.ir.files.node_tables import read_demand
from alltoall.ir.files.text import read_text
from alltoall.ir.flow import Flow
from alltoall.ir.jobs import Job, joint_demand
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.registry import deferred, load
from alltoall.topologies.background import GivenBackground, without_background
from alltoall.topologies.families import FAMILIES, names_file
from alltoall.topologies.groups import GivenGroups, with_groups
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

GivenDemand: TypeAlias = Union[Demand, Sequence[Job], "ArrayLike", str, PathLike[str], None]
"""A demand, its matrix [terminals, terminals], jobs, a file of any, or None for the uniform one."""

GivenJobs: TypeAlias = Sequence[Job] | str | PathLike[str]
"""Jobs that share a fabric, or the file of them."""

JOBS_SUFFIX = ".toml"
"""Suffix of TOML files of jobs; any other file of jobs is JSON."""


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
    if is_networkx(given):
        built: Topology = load("alltoall.topologies.formats.networkx_graph:from_networkx")(given)
        return built
    raise UsageError(
        f"a {type(given).__name__} in the place of a topology; expected a SPEC such as "
        "'torus:3x3x3', the path of a file, a networkx graph, a Topology or a Problem"
    )


def problem_of(
    given: Given,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
) -> Problem:
    """Return the caller's problem: uniform unless there is a demand, jobs or groups.

    The demand of jobs is the sum of theirs, each by its weight. A background is subtracted from
    the capacities.
    """
    posed = given.problem if isinstance(given, Answer) else given
    topology = without_background(topology_of(posed), background)
    topology = with_unit(topology, link_bandwidth)
    if demand is not None and groups is not None:
        raise UsageError(
            "demand and groups; expected one of them, as either says who sends to whom"
        )
    if groups is not None:
        topology, members = with_groups(groups, topology)
        demand = Demand.of_groups(len(topology.terminals), members)
    if demand is not None:
        return Problem(topology, demand_of(demand, topology))
    if isinstance(posed, Problem):
        return posed if topology is posed.topology else Problem(topology, posed.demand)
    return Problem.all_to_all(topology)


def with_unit(topology: Topology, link_bandwidth: Rate | None) -> Topology:
    """Return a topology that states the rate of a capacity-1 link."""
    rate = link_rate(topology, link_bandwidth)
    if rate is None or topology.bytes_per_second is not None:
        return topology
    note = Fabric(topology, rate).note()
    notes = topology.notes if note is None else (*topology.notes, note)
    return replace(topology, bytes_per_second=rate, notes=notes)


def demand_of(given: GivenDemand, topology: Topology) -> Demand:
    """Return the demand between the terminals of a topology."""
    if given is None:
        return Demand(len(topology.terminals))
    if isinstance(given, Demand):
        return given
    given = collected(given)
    jobs = jobs_in(given, topology)
    if jobs is not None:
        return joint_demand(jobs)
    if isinstance(given, str | PathLike):
        return read_demand(Path(given), topology)
    try:
        matrix = frozen(cast(Any, given), np.float64)
    except InputError:
        raise DemandError(
            f"a {type(given).__name__} in the place of a demand; expected a square matrix of "
            "numbers, a file of one, a Demand, or jobs"
        ) from None
    return demand_from_matrix(matrix, topology, "demand")


def collected(given: GivenDemand) -> GivenDemand:
    """Return a demand that can be read twice; a generator of jobs becomes a list."""
    return tuple(given) if isinstance(given, Iterator) else given


def jobs_in(given: GivenDemand, topology: Topology) -> tuple[Job, ...] | None:
    """Return the jobs in a demand, or None."""
    if isinstance(given, str | PathLike):
        path = Path(given)
        listed = path.suffix == JOBS_SUFFIX
        if not listed:
            text = read_text(path)
            listed = text.lstrip()[:1] == "{" and re.search(r'"jobs?"\s*:\s*\[', text) is not None
        return jobs_of(path, topology) if listed else None
    if isinstance(given, Sequence) and given and all(isinstance(each, Job) for each in given):
        return tuple(given)
    return None


def jobs_of(given: GivenJobs, topology: Topology) -> tuple[Job, ...]:
    """Return jobs, from a file if a path is given."""
    if isinstance(given, str | PathLike):
        return read_jobs(Path(given), topology)
    return tuple(given)


def load_topology(
    spec: str,
    input_format: str | None = None,
    directed: bool = False,
    capacity_attribute: str | None = None,
    parallel: bool = False,
) -> Topology:
    """Build a family if SPEC begins with its name, else read a file.

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


def is_networkx(given: object) -> bool:
    """Return whether this is a networkx graph, without importing networkx."""
    networkx = sys.modules.get("networkx")
    return networkx is not None and isinstance(given, networkx.Graph)
