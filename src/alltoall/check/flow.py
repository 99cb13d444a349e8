"""Independent checks of flows.

Nothing here is shared with the code that produces flows: the shortest paths are Bellman-Ford over
arrays, not the producers' Dijkstra, and sums are formed from the artefact's own numbers. Claims are
compared so that NaN fails. A check collects every kind of violation, each with its worst offender,
and raises once.

A flow with generators claims its average over the group that they generate. An automorphism maps a
conserved flow of one source to a conserved flow of another, so the average is a flow of all
sources, whose load of a link is the mean over the orbit of the link. It remains to check that the
generators preserve links, capacities, terminals and demand.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from alltoall.check.sums import distinct_values, pair_balances, pair_demand, raise_if, runs
from alltoall.ir.arrays import Floats, Ints, products, reachable
from alltoall.ir.flow import Flow, Orbits, orbits_of, sources_per_group
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology


def check_generators(problem: Problem, generators: Ints) -> Iterator[str]:
    """Yield the faults of claimed automorphisms, permutations [generators, nodes]."""
    topology, matrix = problem.topology, problem.demand.matrix
    everyone = np.arange(topology.nodes)
    for index, nodes in enumerate(generators):
        if not np.array_equal(np.sort(nodes), everyone):
            yield f"generator {index} is not a permutation of the nodes"
        elif not np.array_equal(np.sort(nodes[topology.terminals]), topology.terminals):
            yield f"generator {index} moves a terminal to a node that is none"
        else:
            keys = (topology.capacity, topology.head, topology.tail)
            images = (topology.capacity, nodes[topology.head], nodes[topology.tail])
            before, after = np.lexsort(keys), np.lexsort(images)
            both = zip(keys, images, strict=True)
            if not all(np.array_equal(key[before], image[after]) for key, image in both):
                yield f"generator {index} does not map links to links of the same capacity"
                continue
            moved = np.searchsorted(topology.terminals, nodes[topology.terminals])
            if matrix is not None and not np.array_equal(matrix[np.ix_(moved, moved)], matrix):
                yield f"generator {index} does not keep the demand"


TOLERANCE = 1e-9
"""Largest accepted error, relative to a claim: a demand, a capacity, a bound."""

ROUNDING = 1e-14
"""Rounding error of a sum, relative to the sum of absolute values."""

BLOCK = 4_000_000
"""Numbers per block: checks run in blocks, so that memory does not grow with the problem."""

DISTANCE_BLOCK = 250_000
"""Distances per block: blocks that fit in the cache take half of the time."""


@dataclass(frozen=True)
class FlowReport:
    """The values that a check of a flow recomputed."""

    time: float
    bound: float
    gap: float
    max_load: float
    groups: int


def check_topology(topology: Topology) -> None:
    """Check that capacities are positive and finite and that terminals reach each other."""
    violations = []
    if not (np.isfinite(topology.capacity) & (topology.capacity > 0)).all():
        violations.append("a capacity is not positive and finite")
    here = int(topology.terminals[0])
    forth = reachable(topology.nodes, topology.tail, topology.head, here)
    back = reachable(topology.nodes, topology.head, topology.tail, here)
    for seen, words in ((forth, "cannot be reached from"), (back, "cannot reach")):
        lost = topology.terminals[~seen[topology.terminals]]
        if len(lost):
            far, near = topology.node_name(int(lost[0])), topology.node_name(here)
            violations.append(f"terminal {far} {words} terminal {near}")
    raise_if(f"topology {topology.name}", violations)


def check_flow(flow: Flow, tolerance: float = TOLERANCE) -> FlowReport:
    """Check that a flow is feasible at its rate, and that its bound holds."""
    subject, orbits = f"flow on {flow.problem.topology.name}", None
    if flow.generators is not None:
        raise_if(subject, list(check_generators(flow.problem, flow.generators)))
        orbits = orbits_of(flow.problem.topology, flow.generators)
    # A few numbers may claim many: refuse them before there is work or room for all.
    raise_if(subject, list(_check_shape(flow, orbits)))
    amount, links = flow.amount, flow.problem.topology.links
    if orbits is not None:
        weight = sources_per_group(flow.problem, flow.source, orbits)
        amount = amount * np.repeat(weight, np.diff(flow.start))
    load = np.bincount(flow.link, amount, links).astype(np.float64, copy=False)
    if orbits is not None:
        load = orbits.mean(load)
    violations = [
        *_check_amounts(flow, load, tolerance),
        *_check_conservation(flow, tolerance),
    ]
    bound, trouble = _flow_bound(flow, orbits, tolerance)
    violations += trouble
    if not trouble:
        violations += _check_claims(flow, bound, tolerance)
    raise_if(subject, violations)
    utilisation = float((load / flow.problem.topology.capacity).max())
    return FlowReport(flow.time, bound, flow.time / bound - 1, utilisation, flow.groups)


def _flow_bound(flow: Flow, orbits: Orbits | None, tolerance: float) -> tuple[float, list[str]]:
    """Return the bound of a flow's lengths: from one source per orbit, if it has symmetry."""
    lengths = flow.certificate.lengths
    if orbits is None:
        return recompute_bound(flow.problem, lengths)
    weight = sources_per_group(flow.problem, flow.source, orbits)
    bound, trouble = recompute_bound(flow.problem, lengths, flow.source, weight)
    if not trouble and not orbits.even(lengths, tolerance):
        trouble = ["certificate: the lengths differ between links that are symmetric"]
    return bound, trouble


def recompute_bound(
    problem: Problem, lengths: Floats, sources: Ints | None = None, weight: Floats | None = None
) -> tuple[float, list[str]]:
    """Return the bound proven by link lengths, or the fault of the lengths.

    Under symmetry `sources` are one of each orbit, each with the `weight` of its orbit.
    """
    wrong = np.flatnonzero(~(np.isfinite(lengths) & (lengths >= 0)))
    if len(wrong):
        link = int(wrong[0])
        name = problem.topology.link_name(link)
        return 0.0, [f"certificate: {name} has length {lengths[link]:g}, not a number >= 0"]
    if not lengths.any():
        return 0.0, ["certificate: all lengths are zero, which proves nothing"]
    topology = problem.topology
    lengths = lengths / lengths.max()  # only ratios matter, and these cannot overflow
    weighted = 0.0
    every = problem.sources if sources is None else sources
    for rows in _blocks(np.arange(len(every)), topology.nodes, DISTANCE_BLOCK):
        some = every[rows]
        starts = topology.terminals[some]
        distance = shortest_distances(topology.nodes, topology.tail, topology.head, lengths, starts)
        sums = products(problem.demand.rows(some), distance[:, topology.terminals]).sum(axis=1)
        weighted += float(sums.sum() if weight is None else weight[rows] @ sums)
    bound = weighted / float(topology.capacity @ lengths)
    if not 0 < bound < np.inf:
        return 0.0, [f"certificate: its lengths give {bound:g}, which proves nothing"]
    return bound, []


def shortest_distances(nodes: int, tail: Ints, head: Ints, lengths: Floats, starts: Ints) -> Floats:
    """Return shortest distances from each start to each node, by Bellman-Ford over all starts.

    A round relaxes one link into each node, so that tables are nodes by starts: links by starts
    would be several times as slow.
    """
    order = np.argsort(head, kind="stable")
    entered, first, count = np.unique(head[order], return_index=True, return_counts=True)
    rounds = []
    for place in range(int(count.max(initial=0))):
        some = count > place
        link = order[first[some] + place]
        rounds.append((entered[some], tail[link], lengths[link][:, None]))
    distance = np.full((nodes, len(starts)), np.inf)
    distance[starts, np.arange(len(starts))] = 0.0
    while True:
        before = distance.copy()
        for node, other, step in rounds:
            distance[node] = np.minimum(distance[node], distance[other] + step)
        if np.array_equal(before, distance):
            return distance.T


def _check_shape(flow: Flow, orbits: Orbits | None) -> Iterator[str]:
    """Check values, and that there is exactly one group per source or pair with a demand."""
    if not np.isfinite(flow.rate) or flow.rate <= 0:
        yield f"the rate is {flow.rate:g}; expected a positive number"
    bad = np.flatnonzero(~(np.isfinite(flow.amount) & (flow.amount >= 0)))
    if len(bad):
        name = flow.problem.topology.link_name(int(flow.link[bad[0]]))
        first = f"{flow.amount[bad[0]]:g} on {name}"
        yield f"{len(bad)} amounts are not numbers >= 0; the first is {first}"
    # Blocks of groups are small if none has more entries than there are links.
    sizes, links = np.diff(flow.start), flow.problem.topology.links
    longest = int(sizes.max(initial=0))
    if longest > links:
        start = flow.problem.topology.terminal_name(int(flow.source[int(np.argmax(sizes))]))
        yield f"a flow from node {start} has {longest} entries for {links} links; one each suffices"
    terminals = flow.problem.topology.terminals
    kind, found = "source", flow.source
    if flow.destination is not None:
        kind, found = "pair", found * len(terminals) + flow.destination
        amount = pair_demand(flow, flow.destination)
        # A list of all pairs with a demand could be larger than any file.
        matrix, most = flow.problem.demand.matrix, len(terminals) * (len(terminals) - 1)
        wanted = most if matrix is None else int(np.count_nonzero(matrix))
        served = int((amount > 0).sum())
    else:
        every = flow.problem.sources
        if orbits is not None:
            kind = "orbit of sources"
            found, every = orbits.of_node[terminals[found]], orbits.of_node[terminals[every]]
        served, wanted = int(np.isin(found, every).sum()), len(distinct_values(np.sort(every)))
    distinct = len(distinct_values(np.sort(found)))
    if not len(found) == distinct == served == wanted:
        yield (
            f"{len(found)} groups ({distinct} distinct, {served} with a demand) where the demand "
            f"has {wanted}; expected exactly one per {kind} with a positive demand"
        )


def _check_amounts(flow: Flow, load: Floats, tolerance: float) -> Iterator[str]:
    """Compare loads to capacities, and amounts to all that their group sends.

    Amounts above that can only circulate, and hide errors.
    """
    capacity = flow.problem.topology.capacity
    over = int((load - capacity * (1 + tolerance) > 0).sum())
    if over:
        link = int(np.argmax(load / capacity))
        name = flow.problem.topology.link_name(link)
        yield (
            f"{over} links carry more than their capacity; the worst is {name} with "
            f"{load[link]:.12g} over {capacity[link]:.12g}"
        )
    most = np.repeat(_group_totals(flow) * (1 + tolerance), np.diff(flow.start))
    wrong = np.flatnonzero(flow.amount > most)
    if len(wrong):
        name = flow.problem.topology.link_name(int(flow.link[wrong[0]]))
        yield (
            f"{len(wrong)} amounts exceed all that their group sends; the first is "
            f"{flow.amount[wrong[0]]:.12g} on {name}, where the group sends {most[wrong[0]]:.12g}"
        )


_Offender = tuple[float, int, int, float, float]
"""The largest error relative to the allowed one, its node, its source, the net flow, the wanted."""


def _check_conservation(flow: Flow, tolerance: float) -> Iterator[str]:
    """Compare inflow minus outflow of each node to the rate times its demand.

    An error is small relative to the demand of the node, or where the node has none, to the
    smallest demand of the group: a large flow must not hide a small demand.
    """
    if flow.destination is None:
        offenders = _offending_sources(flow, tolerance)
    else:
        offenders = _offending_pairs(flow, flow.destination, tolerance)
    excess, *ends, net, wanted = max(offenders, default=(0.0, 0, 0, 0.0, 0.0))
    if excess > 1:
        node, start = map(flow.problem.topology.node_name, ends)
        yield (
            "flow is not conserved or demand not met: "
            f"node {node} nets {net:.12g} of the flow from node {start}, "
            f"expected {wanted:.12g}"
        )


def _offending_sources(flow: Flow, tolerance: float) -> Iterator[_Offender]:
    """Yield the worst of each block of sources, over all nodes."""
    topology = flow.problem.topology
    for groups in _blocks(np.arange(flow.groups), topology.nodes, BLOCK):
        net, gross = _balance(flow, groups)
        wanted = flow.rate * flow.problem.node_demand(flow.source[groups])
        smallest = np.where(wanted > 0, wanted, np.inf).min(axis=1, keepdims=True)
        allowed = tolerance * np.where(wanted > 0, wanted, smallest) + ROUNDING * gross
        starts = topology.terminals[flow.source[groups]]
        wanted[np.arange(len(groups)), starts] = -wanted.sum(axis=1)
        excess = _excess(net, wanted, allowed)
        row, node = np.unravel_index(int(np.argmax(excess)), excess.shape)
        found = float(net[row, node]), float(wanted[row, node])
        yield (float(excess[row, node]), int(node), int(starts[row]), *found)


def _offending_pairs(flow: Flow, destination: Ints, tolerance: float) -> Iterator[_Offender]:
    """Yield the worst of each block of commodities, over the nodes that they touch."""
    demand = flow.rate * pair_demand(flow, destination)
    # Two ends of every entry, and of every group.
    for block in runs(2 * (flow.start + np.arange(flow.groups + 1)), BLOCK):
        begin, end = block.start, block.stop
        at, amount = pair_balances(flow, destination, begin, end), demand[begin:end]
        wanted = np.zeros(len(at.net))
        wanted[at.ends[1]] = amount
        wanted[at.ends[0]] = -amount
        smallest = np.where(amount > 0, amount, np.inf)
        excess = _excess(at.net, wanted, tolerance * smallest[at.group] + ROUNDING * at.gross)
        place = int(np.argmax(excess))
        start = flow.problem.topology.terminals[flow.source[begin + at.group[place]]]
        found = float(at.net[place]), float(wanted[place])
        yield (float(excess[place]), int(at.node[place]), int(start), *found)


def _excess(net: Floats, wanted: Floats, allowed: Floats) -> Floats:
    """Return errors as multiples of the tolerance."""
    error = np.abs(net - wanted)
    return np.divide(error, allowed, out=np.zeros_like(error), where=error > 0)


def _group_totals(flow: Flow) -> Floats:
    if flow.destination is not None:
        return flow.rate * pair_demand(flow, flow.destination)
    total = np.zeros(flow.groups)
    for groups in _blocks(np.arange(flow.groups), flow.problem.topology.nodes, BLOCK):
        total[groups] = flow.rate * flow.problem.node_demand(flow.source[groups]).sum(axis=1)
    return total


def _balance(flow: Flow, groups: Ints) -> tuple[Floats, Floats]:
    """Return inflow minus outflow, and inflow plus outflow, for each group and node."""
    topology = flow.problem.topology
    begin, end = int(flow.start[groups[0]]), int(flow.start[groups[-1] + 1])
    link, amount = flow.link[begin:end], flow.amount[begin:end]
    row = np.repeat(np.arange(len(groups)), np.diff(flow.start)[groups]) * topology.nodes
    shape = (len(groups), topology.nodes)

    def summed(ends: Ints) -> Floats:
        flat = np.bincount(row + ends[link], amount, shape[0] * shape[1])
        return flat.reshape(shape).astype(np.float64, copy=False)

    entering, leaving = summed(topology.head), summed(topology.tail)
    return entering - leaving, entering + leaving


def _check_claims(flow: Flow, bound: float, tolerance: float) -> Iterator[str]:
    if not flow.bound <= bound * (1 + tolerance):
        yield f"certificate: claims the bound {flow.bound:.12g}, but its lengths prove {bound:.12g}"
    if not flow.time >= bound * (1 - tolerance):
        yield f"the time {flow.time:.12g} is below the proven bound {bound:.12g}"


def _blocks(items: Ints, width: int, block: int) -> Iterator[Ints]:
    """Cut `items` so that a block of them times `width` numbers stays small."""
    size = max(1, block // max(1, width))
    for begin in range(0, len(items), size):
        yield items[begin : begin + size]
