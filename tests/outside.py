"""Answers judged from outside: a program over all simple paths, and walks over what is returned.

Nothing here calls the package: the arrays of its nouns are all that is read.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
from scipy.optimize import linprog

from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule

SMALL = 1e-6
"""How far sums of floats may be off."""

Pair = tuple[int, int]


def demand_of(problem: Problem) -> dict[Pair, float]:
    """Return what nodes send to others, without zeros."""
    nodes, count = problem.topology.terminals.tolist(), len(problem.topology.terminals)
    matrix = problem.demand.matrix
    amounts = np.ones((count, count)) if matrix is None else matrix
    pairs = ((a, b) for a in range(count) for b in range(count) if a != b and amounts[a, b] > 0)
    return {(nodes[a], nodes[b]): float(amounts[a, b]) for a, b in pairs}


def links_of(problem: Problem) -> list[tuple[int, int, float]]:
    """Return tail, head and capacity of every link."""
    topology = problem.topology
    columns = (topology.tail.tolist(), topology.head.tolist(), topology.capacity.tolist())
    return list(zip(*columns, strict=True))


def simple_paths(links: list[tuple[int, int, float]], here: int, end: int) -> Iterator[list[int]]:
    """Yield all paths that visit no node twice, as lists of links."""
    stack: list[tuple[int, list[int], frozenset[int]]] = [(here, [], frozenset([here]))]
    while stack:
        node, path, seen = stack.pop()
        if node == end:
            yield path
            continue
        for link, (tail, head, _) in enumerate(links):
            if tail == node and head not in seen:
                stack.append((head, [*path, link], seen | {head}))


def outside_time(problem: Problem) -> float | None:
    """Return the least time: minimise z, with loads of at most z times the capacity of each link.

    None if some demand has no path.
    """
    links, demand = links_of(problem), demand_of(problem)
    paths = [
        (number, path) for number, pair in enumerate(demand) for path in simple_paths(links, *pair)
    ]
    if len({number for number, _ in paths}) < len(demand):
        return None
    load = np.zeros((len(links), len(paths) + 1))
    carried = np.zeros((len(demand), len(paths) + 1))
    load[:, -1] = [-capacity for _, _, capacity in links]
    for column, (number, path) in enumerate(paths):
        load[path, column] = 1.0
        carried[number, column] = 1.0
    cost = np.zeros(len(paths) + 1)
    cost[-1] = 1.0
    found = linprog(
        cost,
        A_ub=load,
        b_ub=np.zeros(len(links)),
        A_eq=carried,
        b_eq=list(demand.values()),
        method="highs",
    )
    assert found.status == 0, found.message
    return float(found.fun or 0.0)


def walked_flow(flow: Flow) -> float:
    """Return the time of a flow: what every source sends arrives, and no link is overfull."""
    assert flow.generators is None
    links, demand = links_of(flow.problem), demand_of(flow.problem)
    nodes = flow.problem.topology.terminals.tolist()
    load: dict[int, float] = defaultdict(float)
    arrived: dict[Pair, float] = defaultdict(float)
    for group, (begin, end) in enumerate(pairwise(flow.start.tolist())):
        source = nodes[int(flow.source[group])]
        for link, amount in zip(flow.link[begin:end].tolist(), flow.amount[begin:end], strict=True):
            assert amount >= 0
            load[link] += float(amount)
            arrived[source, links[link][1]] += float(amount)
            arrived[source, links[link][0]] -= float(amount)
    for pair in {*arrived, *demand}:
        if pair[0] != pair[1]:
            expected = demand.get(pair, 0.0) * flow.rate
            assert abs(arrived[pair] - expected) <= SMALL * max(1.0, flow.rate)
    fullest = max(amount / links[link][2] for link, amount in load.items())
    assert fullest <= 1 + SMALL
    return 1 / flow.rate


def walked_routes(routes: Routes) -> float:
    """Return the time of routes: each is a path, and those of a pair carry its demand."""
    links, demand = links_of(routes.problem), demand_of(routes.problem)
    nodes = routes.problem.topology.terminals.tolist()
    load = np.zeros(len(links))
    carried: dict[Pair, float] = defaultdict(float)
    for number, (begin, end) in enumerate(pairwise(routes.start.tolist())):
        here = source = nodes[int(routes.source[number])]
        for link in routes.link[begin:end].tolist():
            assert links[link][0] == here
            here = links[link][1]
            load[link] += routes.weight[number]
        carried[source, nodes[int(routes.destination[number])]] += float(routes.weight[number])
        assert here == nodes[int(routes.destination[number])]
    assert carried.keys() == demand.keys()
    assert all(abs(carried[pair] - demand[pair]) <= SMALL for pair in demand)
    return float((load / [capacity for _, _, capacity in links]).max())


def walked_schedule(schedule: Schedule) -> float:
    """Return the time of a schedule: no chunk is sent before it is there, and all arrive."""
    links, demand = links_of(schedule.problem), demand_of(schedule.problem)
    nodes = schedule.problem.topology.terminals.tolist()
    counts = {
        (a, b): int(schedule.chunks.of(np.array([nodes.index(a)]), np.array([nodes.index(b)]))[0])
        for a, b in demand
    }
    at = {(pair, chunk): {pair[0]} for pair, count in counts.items() for chunk in range(count)}
    columns = (schedule.step, schedule.source, schedule.destination, schedule.chunk, schedule.link)
    total = 0.0
    for step, sends in groupby(
        zip(*(each.tolist() for each in columns), strict=True), itemgetter(0)
    ):
        assert step < schedule.steps
        load: dict[int, float] = defaultdict(float)
        moved: dict[tuple[Pair, int], list[int]] = defaultdict(list)
        for _, a, b, chunk, link in sends:
            pair = nodes[a], nodes[b]
            moved[pair, chunk].append(link)
            load[link] += demand[pair] / counts[pair]
        for key, moves in moved.items():
            at[key] |= arrivals([links[link][:2] for link in moves], at[key], nodes)
        total += max(amount / links[link][2] for link, amount in load.items())
    assert all(pair[1] in where for (pair, _), where in at.items())
    return total


def arrivals(moves: list[Pair], held: set[int], terminals: list[int]) -> set[int]:
    """Return the terminals that one chunk reaches in a step: what enters a switch leaves it."""
    for switch in {node for move in moves for node in move}.difference(terminals):
        entered, left = (sum(move[end] == switch for move in moves) for end in (1, 0))
        assert entered == left
    ready, passed = set(held), set()
    while moving := [move for move in moves if move[0] in ready and move not in passed]:
        passed.update(moving)
        ready.update(head for _, head in moving if head not in terminals)
    assert passed == set(moves)
    return {head for _, head in moves if head in terminals}
