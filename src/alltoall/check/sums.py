"""Sums for the checker over the pairs of group and node that occur, not over all there are.

A flow with a group for every pair of a thousand terminals has a million groups, each on a handful
of nodes: a table of groups by nodes would be nothing but zeros.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow


@dataclass(frozen=True, eq=False)
class Balances:
    """By pair of group and node, in ascending order: what enters less what leaves, and their sum.

    `ends` are the two places of each group in these arrays: that of its source and destination.
    """

    group: Ints
    node: Ints
    net: Floats
    gross: Floats
    ends: tuple[Ints, Ints]


def pair_demand(flow: Flow, destination: Ints) -> Floats:
    """Return what each group of a flow per commodity is to deliver, at rate 1."""
    return flow.problem.demand.of(flow.source, destination)


def entry_blocks(flow: Flow, size: int) -> Iterator[tuple[int, int]]:
    """Cut the groups of a flow into runs of about `size` numbers: entries, and ends of groups."""
    numbers = 2 * (flow.start + np.arange(flow.groups + 1))
    cuts = np.searchsorted(numbers, np.arange(size, int(numbers[-1]), size), side="right") - 1
    edges = [0, *cuts.tolist(), flow.groups]
    for begin, end in pairwise(edges):
        if begin < end:
            yield begin, end


def pair_balances(flow: Flow, destination: Ints, begin: int, end: int) -> Balances:
    """Sum over the links of groups begin..end-1, each to one destination, at every node they touch.

    The ends of every group take part, whether any link touches them or not.
    """
    topology = flow.problem.topology
    entries = slice(int(flow.start[begin]), int(flow.start[end]))
    link, amount = flow.link[entries], flow.amount[entries]
    rows = np.arange(end - begin) * topology.nodes
    row = np.repeat(rows, np.diff(flow.start[begin : end + 1]))
    key = np.concatenate(
        (
            rows + topology.terminals[flow.source[begin:end]],
            rows + topology.terminals[destination[begin:end]],
            row + topology.head[link],
            row + topology.tail[link],
        )
    )
    order = np.argsort(key, kind="stable")
    ordered = key[order]
    new = np.concatenate(([True], ordered[1:] != ordered[:-1]))
    place = np.empty(len(key), dtype=np.int64)
    place[order] = np.cumsum(new) - 1
    source, destination, into, out = np.split(place, np.cumsum([len(rows), len(rows), len(link)]))
    pairs = ordered[new]
    entering = np.bincount(into, amount, len(pairs))
    leaving = np.bincount(out, amount, len(pairs))
    return Balances(
        pairs // topology.nodes,
        pairs % topology.nodes,
        np.asarray(entering - leaving),
        np.asarray(entering + leaving),
        (source, destination),
    )
