"""`alltoall.topology` and `alltoall.problem`: the network, and who sends to whom on it."""

import reprlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from alltoall.errors import UsageError
from alltoall.ir.fabric import Rate
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.registry import load
from alltoall.topologies import operators
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import (
    Given,
    GivenDemand,
    is_networkx,
    load_topology,
    problem_of,
    topology_of,
)
from alltoall.topologies.groups import GivenGroups

Ends = str | tuple[int, int]
"""A link: a text such as `3-4` or `gpu-01->gpu-02`, or the numbers of its nodes."""


def topology(
    given: Given,
    *,
    format: str | None = None,
    directed: bool = False,
    parallel: bool = False,
    undirected: bool = False,
    capacity_attribute: str | None = None,
    remove_links: Iterable[Ends] | None = None,
    remove_nodes: Iterable[str | int] | None = None,
    drop_links: int = 0,
    drop_nodes: int = 0,
    seed: int = 0,
    set_capacities: Iterable[str] | Mapping[Ends, float] | None = None,
    scale_capacity: float | None = None,
    host_bandwidth: float | None = None,
) -> Topology:
    """Build or read a network, then change it in the order of these keywords.

    >>> import alltoall
    >>> alltoall.topology("torus:3x3", remove_links=["0-1"], host_bandwidth=2)
    <Topology torus:3x3: nodes 27, links 52>

    """
    if seed < 0:
        raise UsageError(f"seed {seed}; expected 0 or more")
    for other in ("undirected", "parallel"):
        if directed and {"undirected": undirected, "parallel": parallel}[other]:
            raise UsageError(f"--directed and --{other}; expected one of them")
    found = _read(given, format, directed, capacity_attribute, parallel)
    if undirected:
        found = operators.both_ways(found)
    if remove_links:
        found = operators.remove_links(found, [_ends(found, link) for link in remove_links])
    if remove_nodes:
        nodes = [found.node_of(str(node)) for node in remove_nodes]
        found = operators.remove_nodes(found, nodes)
    if drop_links:
        found = operators.drop_links(found, drop_links, seed)
    if drop_nodes:
        found = operators.drop_nodes(found, drop_nodes, seed)
    if set_capacities:
        found = operators.set_capacities(found, _capacities(found, set_capacities))
    if scale_capacity is not None:
        found = operators.scale_capacities(found, scale_capacity)
    if host_bandwidth is not None:
        found = operators.with_host_bandwidth(found, host_bandwidth)
    return found


def problem(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
) -> Problem:
    """Define who sends to whom on a network; by default every pair of terminals sends one shard.

    >>> import alltoall
    >>> alltoall.problem("ring:4", groups=["0,2", "1,3"]).demand.total
    4.0

    """
    return problem_of(given, demand, groups, background, link_bandwidth)


def _read(
    given: Given, format: str | None, directed: bool, attribute: str | None, parallel: bool
) -> Topology:
    if isinstance(given, str | Path):
        return load_topology(str(given), format, directed, attribute, parallel)
    if is_networkx(given) and attribute is not None:
        found: Topology = load("alltoall.topologies.formats.networkx_graph:from_networkx")(
            given, capacity=attribute
        )
        return found
    return topology_of(given)


def _ends(topology: Topology, link: Ends) -> tuple[int, int]:
    return topology.ends_of(link) if isinstance(link, str) else link


def _capacities(
    topology: Topology, given: Iterable[str] | Mapping[Ends, float]
) -> dict[tuple[int, int], float]:
    """Return capacities by the ends of their links, of texts such as `3-4=2.5` or a mapping."""
    if isinstance(given, Mapping):
        return {_ends(topology, link): capacity for link, capacity in given.items()}
    found: dict[tuple[int, int], float] = {}
    for text in given:
        link, _, number = text.rpartition("=")
        try:
            found[topology.ends_of(link)] = float(number if link else "")
        except ValueError:
            raise UsageError(
                f"capacity {reprlib.repr(text)}; expected a link and a number, such as 3-4=2.5"
            ) from None
    return found
