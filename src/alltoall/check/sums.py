"""Blocks for the checkers, and sums over the pairs of group and node that occur.

A flow with a group for every pair of a thousand terminals has a million groups, each on a handful
of nodes: a table of groups by nodes would be nothing but zeros.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.errors import VerificationError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow


@dataclass(frozen=True, eq=False)
class Balances:
    """By pair of group and node, in ascending order: inflow minus outflow, and their sum.

    `ends` are the places of the source and the destination of each group in these arrays.
    """

    group: Ints
    node: Ints
    net: Floats
    gross: Floats
    ends: tuple[Ints, Ints]


def pair_demand(flow: Flow, destination: Ints) -> Floats:
    """Return the demand of each group of a flow per commodity."""
    return flow.problem.demand.of(flow.source, destination)


def runs(before: Ints, most: int) -> Iterator[slice]:
    """Cut items into runs of at most `most` numbers, or of one item.

    `before` has the numbers before each item and, last, those of all.
    """
    first = 0
    while first + 1 < len(before):
        last = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        yield slice(first, max(last, first + 1))
        first = max(last, first + 1)


def distinct_values(ordered: Ints) -> Ints:
    """Return the distinct ones of ordered values, none negative; `np.unique` is far slower."""
    return np.asarray(ordered[np.diff(ordered, prepend=-1) != 0])


def raise_if(subject: str, violations: Sequence[str]) -> None:
    """Raise if there are any violations."""
    if violations:
        raise VerificationError(subject, violations)


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
    pairs = distinct_values(ordered)
    place = np.empty(len(key), dtype=np.int64)
    place[order] = np.searchsorted(pairs, ordered)
    source, destination, into, out = np.split(place, np.cumsum([len(rows), len(rows), len(link)]))
    entering = np.bincount(into, amount, len(pairs))
    leaving = np.bincount(out, amount, len(pairs))
    return Balances(
        pairs // topology.nodes,
        pairs % topology.nodes,
        np.asarray(entering - leaving),
        np.asarray(entering + leaving),
        (source, destination),
    )
