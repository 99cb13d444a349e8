"""Splitting of flows into widest paths (`core/flow.h`).

A flow from one source that conserves is a sum of paths. For each destination in turn, the path
whose narrowest link is widest is taken off, as much as that link carries or the destination still
lacks, until the demand is met. Every path empties a link or serves a destination, so the paths of a
source are at most its links and destinations. No link ends up with more than it had.

**Rounding.** What is left of a demand when its inflow is used up belongs to the pair's widest path;
a demand so small beside others that rounding swallowed all its inflow takes the fewest links that
carried flow. Either way the widths of a pair add up to its demand.
"""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from alltoall import core
from alltoall.errors import InputError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths

Csr: TypeAlias = tuple[Ints, Ints, Floats]
"""(start, item, value) in compressed rows: links and amounts, or end nodes and demands."""


@dataclass(frozen=True, eq=False)
class FlowBlock:
    """The flows of some groups, each from one node to its destinations, in compressed rows.

    Group g leaves node `begin[g]`, which is terminal `source[g]`, with `amount[e]` on `link[e]` for
    e in start[g]:start[g + 1]. It is to bring `demand[p]` to node `end[p]`, which is terminal
    `destination[p]`, for p in pairs[g]:pairs[g + 1]. A block holds all that is needed, so that it
    can be worked on anywhere.
    """

    nodes: int
    tail: Ints
    head: Ints
    source: Ints
    begin: Ints
    start: Ints
    link: Ints
    amount: Floats
    pairs: Ints
    destination: Ints
    end: Ints
    demand: Floats


def split(block: FlowBlock) -> tuple[Paths, Floats, Ints]:
    """Return the widest paths of all pairs of a block, in order, their widths, and their pairs.

    The widths of a pair add up exactly.
    """
    failed, pair, width, start, link = core.split_flows(
        core.Graph(block.nodes, block.tail, block.head),
        block.begin,
        (block.start, block.link, block.amount),
        (block.pairs, block.end, block.demand),
    )
    if failed >= 0:
        first = int(np.searchsorted(block.pairs, failed, side="right")) - 1
        raise InputError(
            f"no flow from node {block.begin[first]} leads to node {block.end[failed]}, which "
            f"wants {block.demand[failed]:g}; expected a flow that conserves"
        )
    group = np.searchsorted(block.pairs, pair, side="right") - 1
    return Paths(block.source[group], block.destination[pair], start, link), width, pair
