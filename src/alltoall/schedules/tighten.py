"""Shorten an order: drop its last steps while all chunks fit into the others.

List scheduling keeps chunks on their paths. If few pairs send much over long paths, the last links
of a path idle until the first chunk arrives, and the first ones while the last chunk goes on. So
the chunks negotiate (`placing.negotiate`) for links and steps at once, starting from a list of
short steps and its durations. The number of dropped steps is found by bisection, beginning with
one that is good enough.
"""

from dataclasses import replace

import numpy as np

from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, inner_index
from alltoall.ir.paths import NOTHING, Paths
from alltoall.placing.chunks import Chunks
from alltoall.placing.negotiate import negotiate
from alltoall.placing.network import in_steps
from alltoall.schedules.expansion import Expansion, without_detours
from alltoall.schedules.orders import Ordered, legs_of, order_by_list
from alltoall.schedules.placed import Placed
from alltoall.schedules.steps import least_steps
from alltoall.settings import Late


def tighten(placed: Placed, bound: float, enough: float, late: Late) -> Ordered | None:
    """Return an order of short steps that takes `enough`, or the least time found.

    No order takes less than the `bound`. Return None if it is late, or if there are too many chunks
    for a negotiation.
    """
    longest = longest_send(placed)
    steps = placed.time / longest
    if len(placed.size) * placed.problem.topology.links * steps > sizes.TIGHTENED_WORK:
        return None
    best = order_by_list(placed, longest, 1.0, late)
    if best is None:
        return None
    durations = best.durations()
    elapsed = np.cumsum(durations)
    # The negotiation needs enough steps for every shortest path.
    shortest = least_steps(placed.problem) - 1
    fails = max(shortest, int(np.searchsorted(elapsed, bound * (1 - 1e-9))))
    works = best.steps
    kept = max(fails + 1, int(np.searchsorted(elapsed, enough * (1 + 1e-9), side="right")))
    while fails + 1 < works and best.time > enough * (1 + 1e-9) and not late():
        found = within(best, durations[:kept], kept, late)
        if found is None:
            fails = kept
        else:
            works, best = kept, found
        kept = (fails + works) // 2
    return best.without_empty()


def longest_send(placed: Placed) -> float:
    """Return the duration of the slowest send of any chunk."""
    capacity, paths = placed.problem.topology.capacity, placed.paths
    return float((placed.size[paths.path_of_link] / capacity[paths.link]).max())


def within(start: Ordered, durations: Floats, steps: int, late: Late) -> Ordered | None:
    """Return an order of at most so many steps within these durations, if one is found.

    Fewer durations than steps repeat, and steps that share a duration share its budget.
    """
    placed = start.placed
    topology = placed.problem.topology
    expansion = Expansion(placed.problem, steps)
    ends = (expansion.starts[placed.paths.source], expansion.ends[placed.paths.destination])
    shared = len(durations) * topology.links
    free = np.full(expansion.graph.links - expansion.timed_links, shared)
    budget = np.outer(durations, topology.capacity).ravel()
    link_class = np.concatenate((np.arange(expansion.timed_links) % shared, free))
    # The path of each chunk in the expanded graph; that of a late chunk is an empty row.
    paths = placed.paths
    switches = topology.nodes - len(topology.terminals)
    table = np.full((paths.count, steps * (1 + switches)), NOTHING, dtype=np.int64)
    early = np.maximum.reduceat(start.step, paths.start[:-1]) < steps
    taken = np.repeat(early, paths.hops)
    timed = start.step * topology.links + paths.link
    table[paths.path_of_link[taken], inner_index(paths.hops)[taken]] = timed[taken]
    found, fits = negotiate(
        in_steps(expansion.graph, steps, topology.links, link_class, budget),
        Chunks(*ends, placed.size),
        table,
        budget,
        0,
        late,
        grain=float(np.median(placed.size)),
    )
    if not fits:
        return None
    direct = without_detours(expansion, found.astype(np.int64))
    sent = direct != NOTHING
    link = np.where(sent, direct % topology.links, NOTHING)
    paths = Paths.from_table(paths.source, paths.destination, link)
    step = (direct[sent] // topology.links)[legs_of(topology, paths).begin[:-1]]
    return Ordered.of(replace(placed, paths=paths), step)
