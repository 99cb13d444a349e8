"""One route per pair by tables of destinations: a node sends all that is for a terminal one way on.

That is what InfiniBand switches and most cards have room for: routes to a terminal form a tree that
leads to it. The trees of `sssp` are a beginning. Then one node after the other changes the link by
which it sends on to one terminal, with all that it passes on, if that lowers the potential of
`best_response`, which grows steeper from pass to pass. A link that leads back to the node is none
of the choices, so trees stay trees.

A pass costs, for every node and terminal, a walk to the terminal over each of the node's links.
"""

from dataclasses import replace

import numpy as np
from numba import njit

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.news import News
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.paths.shortest import Adjacency
from a2aflow.routes.baselines.sssp import sssp_tables
from a2aflow.routes.baselines.tables import routes_from_tables
from a2aflow.routes.best_response import FIRST_STEEPNESS, LAST_STEEPNESS
from a2aflow.routes.best_response_loops import LARGEST_PRICE_EXPONENT
from a2aflow.settings import RouteSettings

METHOD = "single by destination"
"""What its routes say made them."""

TREE_PASSES = 60
"""Passes over all nodes and terminals while the steepness rises."""


def route_by_destination(
    problem: Problem, certificate: Certificate, settings: RouteSettings
) -> Routes:
    """Return one route per pair; all routes to a terminal that meet go on together."""
    table = _spread(problem, sssp_tables(problem), certificate.bound, settings)
    return replace(routes_from_tables(problem, table, METHOD), certificate=certificate)


def _spread(problem: Problem, table: Ints, goal: float, settings: RouteSettings) -> Ints:
    """Return the best tables seen while nodes change the links by which they send on."""
    topology, solve = problem.topology, settings.solve
    wanted = problem.demand.table()
    passing = np.zeros((len(topology.terminals), topology.nodes))
    passing[:, topology.terminals] = wanted.T
    load = np.zeros(topology.links)
    fabric = (topology.head, topology.terminals, *Adjacency(topology).outgoing)
    _fill(table, fabric, passing, load)
    fit = goal * float(topology.capacity.mean()) / float(wanted[wanted > 0].mean())
    last = min(LAST_STEEPNESS, max(10 * FIRST_STEEPNESS, fit))
    best, least = table.copy(), float((load / topology.capacity).max())
    for steepness in np.geomspace(FIRST_STEEPNESS, last, TREE_PASSES):
        time = float((load / topology.capacity).max())
        if time <= goal * (1 + 1e-9) or solve.out_of_time():
            break
        scale = steepness / (time * topology.capacity)
        _respond(table, fabric, passing, load, (scale, float(steepness)))
        time = float((load / topology.capacity).max())
        if time < least:
            best, least = table.copy(), time
        gap = least / goal - 1
        solve.report(
            News.of_gap(f"tables by destination: {gap:.2%} above the bound", gap, solve.gap)
        )
    return best


@njit(cache=True)
def _fill(
    table: Ints, fabric: tuple[Ints, Ints, Ints, Ints], passing: Floats, load: Floats
) -> None:
    """Add to what each node has for a terminal what others send over it, and load the links."""
    head, terminals = fabric[:2]
    for row in range(len(terminals)):
        own = passing[row].copy()
        for node in range(len(own)):
            at = node
            while own[node] > 0 and at != terminals[row]:
                load[table[row, at]] += own[node]
                at = head[table[row, at]]
                passing[row, at] += own[node]


@njit(cache=True)
def _respond(
    table: Ints,
    fabric: tuple[Ints, Ints, Ints, Ints],
    passing: Floats,
    load: Floats,
    prices: tuple[Floats, float],
) -> None:
    """Let every node change its link towards every terminal, if that lowers the potential."""
    head, terminals, first, leaving = fabric
    for row in range(len(terminals)):
        next_link, end = table[row], terminals[row]
        for node in range(table.shape[1]):
            amount = passing[row, node]
            if node == end or amount <= 0:
                continue
            _shift(next_link, head, node, end, -amount, load, passing[row])
            cheapest = _cost(next_link[node], next_link, head, node, end, amount, load, prices)
            for index in range(first[node], first[node + 1]):
                link = leaving[index]
                cost = _cost(link, next_link, head, node, end, amount, load, prices)
                if cost < cheapest * (1 - 1e-9):
                    cheapest = cost
                    next_link[node] = link
            _shift(next_link, head, node, end, amount, load, passing[row])


@njit(cache=True)
def _shift(
    next_link: Ints, head: Ints, node: int, end: int, amount: float, load: Floats, passing: Floats
) -> None:
    """Add an amount to all links from a node to the end, and to what the nodes behind it pass."""
    while node != end:
        load[next_link[node]] += amount
        node = head[next_link[node]]
        passing[node] += amount


@njit(cache=True)
def _cost(
    link: int,
    next_link: Ints,
    head: Ints,
    node: int,
    end: int,
    amount: float,
    load: Floats,
    prices: tuple[Floats, float],
) -> float:
    """Return what an amount adds to the potential by a link; infinite if that leads back."""
    scale, steepness = prices
    total, at = 0.0, node
    while True:
        height = min(scale[link] * load[link] - steepness, LARGEST_PRICE_EXPONENT)
        total += np.exp(height) * np.expm1(min(scale[link] * amount, LARGEST_PRICE_EXPONENT))
        at = head[link]
        if at == end:
            return float(total)
        if at == node or next_link[at] < 0:
            return np.inf
        link = next_link[at]
