"""The search for the orders of a given number of layers: the program judges, annealing proposes.

It is a game between orders, which want a small bound under all lengths, and lengths, which want a
large bound under all orders. The program answers orders with the worst lengths for them, its duals;
the annealing answers lengths with better orders. Answering the last duals alone would go in
circles, so it answers, in turn, their averages over all rounds and over the last few, and the
last few one by one.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from alltoall.flows.exact import exact_flows
from alltoall.flows.matrices import linear_program
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.lp.program import LPResult
from alltoall.lp.solve import solve_program
from alltoall.routes.deadlock_free.graph import LayeredGraph, layered_graph
from alltoall.routes.deadlock_free.orders import improve_orders, order_bounds
from alltoall.settings import RouteSettings, SolveSettings

ORDER_ROUNDS = 40
"""How often orders are improved and judged by the program, on small problems."""

ORDER_ROUNDS_WORK = 500_000
"""Links of the layers times sources, times rounds, above which there are fewer, but at least 3."""

ANNEALED_DISTANCES = 200_000_000
"""Distances updated by the annealing of one round: a fraction of a second."""

MOVES_PER_LINK = 500
"""More moves of each link than this are a waste on the smallest topologies."""

SAME_TIME = 1e-6
"""The share by which a vertex may be slower than the inside of the optimal face, by rounding."""

RECENT_DUALS = 8
"""So many of the last duals count by themselves and in an average; old ones may be outdated."""


@dataclass
class _Trail:
    """What the search has seen: all duals, the last orders, and the best ones with what they do."""

    last: Ints
    best: Ints | None = None
    result: LPResult | None = None
    time: float = np.inf
    duals: list[Floats] = field(default_factory=list)


def search_orders(
    problem: Problem,
    starts: Sequence[Ints],
    target: float,
    settings: RouteSettings,
) -> tuple[Ints, LPResult | None] | None:
    """Return the best orders found and what the program made of them, None if none connects all.

    The search stops at the target time.
    """
    trail = _Trail(starts[0])
    goal = target * (1 + settings.solve.gap)
    for orders in starts:
        if trail.best is None or not settings.solve.out_of_time():
            _judge(problem, orders, trail, settings)
    round_work = starts[0].size * len(problem.sources)
    for number in range(max(3, min(ORDER_ROUNDS, ORDER_ROUNDS_WORK // round_work))):
        if trail.time <= goal or settings.solve.out_of_time():
            break
        orders = _improved(problem, trail, settings.seed + number)
        _judge(problem, orders, trail, settings)
        settings.solve.report(
            f"{len(orders)} layers, round {number + 1}: {trail.time / target - 1:.2%} above the "
            "optimum without layers"
        )
    return None if trail.best is None else (trail.best, trail.result)


def _judge(problem: Problem, orders: Ints, trail: _Trail, settings: RouteSettings) -> None:
    """Solve the program for the orders, if they connect all pairs, and remember what it says."""
    trail.last = orders
    if not np.isfinite(order_bounds(problem, [1.0 / problem.topology.capacity]).of(orders)).all():
        return
    layered = layered_graph(problem, orders)
    result = from_the_inside(layered, settings.solve)
    time, dual = _time(result), _duals(layered, result)
    if dual.any():
        trail.duals.append(dual / float(problem.topology.capacity @ dual))
    if trail.best is None or time < trail.time:
        trail.best, trail.time, trail.result = orders, time, result


def _improved(problem: Problem, trail: _Trail, seed: int) -> Ints:
    """Anneal the best or the last orders, in turn, under what the duals so far ask for."""
    odd = len(trail.duals) % 2 == 1
    begin = trail.best if odd and trail.best is not None else trail.last
    lengths = [1.0 / problem.topology.capacity]
    if trail.duals:
        recent = trail.duals[-RECENT_DUALS:]
        lengths += [np.mean(recent, axis=0)]
        lengths += recent if odd else [np.mean(trail.duals, axis=0)]
    terminals = len(problem.topology.terminals)
    cost = len(lengths) * terminals * (problem.topology.links + terminals)
    moves = min(MOVES_PER_LINK * begin.size, 1 + ANNEALED_DISTANCES // cost)
    return improve_orders(order_bounds(problem, lengths), begin, moves, seed)


def from_the_inside(layered: LayeredGraph, settings: SolveSettings) -> LPResult:
    """Solve for the least time in the layers.

    Duals from the inside of the optimal face say more about the orders than a vertex of it does,
    so the interior-point solver is used, without crossover, unless another is asked for.
    """
    return _solve(layered, layered.variables(), settings, vertex=False)


def least_time(layered: LayeredGraph, settings: SolveSettings) -> tuple[float, Floats]:
    """Return the least time in the layers, as the solver sees it, and the dual of each link."""
    result = from_the_inside(layered, settings)
    return _time(result), _duals(layered, result)


def _time(result: LPResult) -> float:
    return np.inf if result.x is None else float(result.x[-1])


def least_volumes(
    layered: LayeredGraph, settings: SolveSettings, known: LPResult | None
) -> tuple[Floats, Floats]:
    """Return exact volumes [sources, links of the graph] of least time, and each link's dual.

    They are a vertex, which splits few pairs, or what is `known` if there is no time for one: what
    a solver leaves of a vertex at its limit may be twice as slow.
    """
    variables = layered.variables()
    vertex = _solve(layered, variables, settings, vertex=True)
    found = [each for each in (vertex, known) if each is not None and each.x is not None]
    volumes = [_exact_volumes(layered, variables, each.x) for each in found]
    times = [layered.program.time(each) for each in volumes]
    for result, each, time in zip(found, volumes, times, strict=True):
        if time <= min(times) * (1 + SAME_TIME):
            return each, _duals(layered, result)
    return _exact_volumes(layered, variables, None), _duals(layered, vertex)


def _exact_volumes(
    layered: LayeredGraph, variables: tuple[Ints, Ints], found: Floats | None
) -> Floats:
    """Return what a solver found as exact volumes; without anything, shortest paths."""
    groups = layered.program.groups
    approximate = np.zeros((len(groups.start), layered.graph.links))
    if found is not None:
        approximate[variables] = found[:-1]
    return exact_flows(layered.graph, groups, approximate)


def _solve(
    layered: LayeredGraph, variables: tuple[Ints, Ints], settings: SolveSettings, vertex: bool
) -> LPResult:
    solver = "ipm" if settings.solver == "auto" else settings.solver
    wanted = replace(settings.lp_settings(), vertex=vertex)
    return solve_program(linear_program(layered.program, *variables), solver, wanted)


def _duals(layered: LayeredGraph, result: LPResult) -> Floats:
    """Return the dual of each link's capacity, all 0 if the solver has none."""
    links = layered.problem.topology.links
    if result.row_dual is None:
        return np.zeros(links)
    return np.asarray(np.maximum(-result.row_dual[-links:], 0.0))
