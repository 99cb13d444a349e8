"""First flows and lengths of first-order searches, and exact flows of their iterates.

The most loaded link sets the time, so it matters where missing flow goes. `fill_missing` sends it
in parts, each along shortest paths under lengths that grow exponentially with the load so far.
`flows.exact` then removes the excess.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.flows.exact import exact_flows
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.paths.blocks import row_blocks, thread_count
from alltoall.paths.shortest import core_graph
from alltoall.settings import ALONE, Team


def exact_blocks(program: FlowProgram, flows: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield exact flows of a block of groups at a time, so that memory stays flat."""
    for rows in row_blocks(len(flows), program.graph.links):
        yield rows, exact_flows(program.graph, program.groups.part(rows), flows[rows])


def exact_load(program: FlowProgram, flows: Floats) -> Floats:
    """Return the weighted load of flows after making copies of them exact."""
    load = np.zeros(program.graph.links)
    for rows, exact in exact_blocks(program, flows):
        load += program.weight[rows] @ exact
    return load


def exact_entries(program: FlowProgram, flows: Floats) -> tuple[Ints, Ints, Floats]:
    """Return exact flows as (start, link, volume) by group."""
    counts, links, volumes = [], [], []
    for _, exact in exact_blocks(program, flows):
        group, link = np.nonzero(exact)
        counts.append(np.bincount(group, minlength=len(exact)))
        links.append(link)
        volumes.append(exact[group, link])
    link = np.concatenate(links)
    links.clear()  # gigabytes at ten thousand nodes
    return starts_of(np.concatenate(counts)), link, np.concatenate(volumes)


FILLING_PARTS = 8
"""Parts in which missing flow is sent."""

LOAD_STEEPNESS = 1000.0
"""A link with 0.1 % more load than another is e times as long."""


def fill_missing(program: FlowProgram, flow: Floats, team: Team = ALONE) -> None:
    """Add missing flow to flows [groups, links], in place; negative flow is dropped first."""
    graph, groups = core_graph(program.graph), program.groups
    np.copyto(flow, 0.0, where=~(flow > 0))
    part = _missing(program, flow) / FILLING_PARTS
    for _ in range(FILLING_PARTS):
        lengths = load_lengths(program, team.total(program.weight @ flow))
        for rows in row_blocks(len(flow), program.graph.links):
            given = lengths, groups.start[rows], part[rows], flow[rows]
            core.add_tree_flows(graph, *given, thread_count())


def load_lengths(program: FlowProgram, load: Floats) -> Floats:
    """Return link lengths that grow exponentially with the load of their class."""
    busy = program.busy(load)
    most = program.durations(load)[program.budget]
    share = np.divide(busy, most, out=np.zeros_like(busy), where=most > 0)
    return program.link_lengths(np.exp(LOAD_STEEPNESS * (share - 1)) / program.class_capacity)


def _missing(program: FlowProgram, flow: Floats) -> Floats:
    """Return what each node but the source lacks, [groups, nodes]."""
    graph, missing = program.graph, program.groups.wanted.copy()
    for group, row in enumerate(flow):
        missing[group] += np.bincount(graph.tail, row, graph.nodes)
        missing[group] -= np.bincount(graph.head, row, graph.nodes)
    missing[np.arange(len(missing)), program.groups.start] = 0.0
    return np.maximum(missing, 0.0)


@dataclass(frozen=True, eq=False)
class Guess:
    """A start of a search: volumes [groups, links] and link lengths, near the optimum or not."""

    volumes: Floats
    lengths: Floats


def shortest_paths(program: FlowProgram) -> Guess:
    """Return the default start: shortest paths, and lengths of links with equal utilisation."""
    nothing = np.zeros((len(program.weight), program.graph.links))
    volumes = exact_flows(program.graph, program.groups, nothing)
    return Guess(volumes, 1 / program.graph.capacity)


def useful_widths(program: FlowProgram, volumes: Floats, team: Team) -> Floats:
    """Return the useful width of each link, relative to the median.

    In the time of these volumes, all demand together uses no link beyond a certain width. In a team
    the program and its volumes are the part of one rank.
    """
    capacity = program.graph.capacity
    wanted = float(program.weight @ program.groups.wanted.sum(axis=1))
    total = team.total(np.append(program.weight @ volumes, wanted))
    time = float(program.durations(total[:-1]).sum())
    useful = np.minimum(capacity, total[-1] / time) if time > 0 else capacity
    return np.asarray(useful / np.quantile(useful, 0.5, method="lower"))


def within_budget(program: FlowProgram, lengths: Floats) -> Floats:
    """Return the mean length of each class, scaled so that capacity times price sums to 1."""
    total = np.bincount(program.link_class, lengths, program.classes)[: program.classes]
    price = total / program.class_size
    width = program.class_size * program.class_capacity
    spent = np.bincount(program.budget, width * price)
    even = 1 / np.bincount(program.budget, width)
    share = np.divide(1.0, spent, out=np.zeros_like(spent), where=spent > 0)[program.budget]
    return np.where(share > 0, price * share, even[program.budget])
