"""Flows in an array [groups, links], made exact some groups at a time: their load, and a list."""

from collections.abc import Iterator

import numpy as np

from alltoall.flows.exact import exact_flows
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.paths.blocks import row_blocks


def exact_blocks(program: FlowProgram, flows: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield the flows of some groups at a time, made exact, so that memory stays flat."""
    for rows in row_blocks(len(flows), program.graph.links):
        yield rows, exact_flows(program.graph, program.groups.part(rows), flows[rows])


def exact_load(program: FlowProgram, flows: Floats) -> Floats:
    """Return the weighted load of flows once they are made exact; they stay as they are."""
    load = np.zeros(program.graph.links)
    for rows, exact in exact_blocks(program, flows):
        load += program.weight[rows] @ exact
    return load


def exact_entries(program: FlowProgram, flows: Floats) -> tuple[Ints, Ints, Floats]:
    """Return flows, made exact, as (start, link, volume) by group."""
    counts, links, volumes = [], [], []
    for _, exact in exact_blocks(program, flows):
        group, link = np.nonzero(exact)
        counts.append(np.bincount(group, minlength=len(exact)))
        links.append(link)
        volumes.append(exact[group, link])
    link = np.concatenate(links)
    links.clear()  # At ten thousand nodes these are gigabytes.
    return starts_of(np.concatenate(counts)), link, np.concatenate(volumes)
