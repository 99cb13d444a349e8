"""Flows in an array [groups, links], made exact, as a list of those that are not zero."""

import numpy as np

from alltoall.flows.exact import exact_flows
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints, Reals, starts_of

BLOCK_CELLS = 8_000_000
"""Flows that are made exact at once when the answer is written out."""


def exact_entries(program: FlowProgram, flows: Reals) -> tuple[Ints, Ints, Floats]:
    """Return flows, made exact, as (start, link, volume) by group; a block at a time."""
    rows = max(1, BLOCK_CELLS // program.graph.links)
    counts, links, volumes = [], [], []
    for begin in range(0, len(program.weight), rows):
        part = slice(begin, begin + rows)
        exact = exact_flows(
            program.graph, program.groups.part(part), flows[part].astype(np.float64)
        )
        group, link = np.nonzero(exact)
        counts.append(np.bincount(group, minlength=len(exact)))
        links.append(link)
        volumes.append(exact[group, link])
    link = np.concatenate(links)
    links.clear()  # At ten thousand nodes these are gigabytes.
    return starts_of(np.concatenate(counts)), link, np.concatenate(volumes)
