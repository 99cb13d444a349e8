r"""The best throughput under deadlock freedom, with a given number of virtual layers.

Each layer k has an order of the links, and a route in layer k may only go from a link to a later
one: its channel dependencies are then acyclic whatever else is routed. A route stays in its layer,
a pair may split over several, and the layers share the capacities. For given orders the best time
is a linear program, the concurrent flow program on the layered graph (`graph`) with
one group per source:

    minimise    z
    subject to  sum over g, k of x[g, k, l]  <=  cap[l] z       for every link l
                B x[g]  =  wanted[g]                            for every group g
                x >= 0

where B is the incidence matrix of the layered graph. Conversely every set of routes with acyclic
layers goes forward in some orders, so the best orders give the optimum under deadlock freedom.
They are searched for:

1. The routes of the unrestricted optimum are packed into layers, each filled in turn with
   the longest routes first. If they fit, this is the answer.
   On a grid, so are routes in dimension order, if they are as fast and need fewer layers.
2. The orders of these layers are a start; so are the best orders for one layer less together with
   the next of these, where links come in pairs of opposite direction up*/down* orders, and on a
   grid those of its dimensions (`routes.dimension_order`).
3. In turn, the program is solved for the orders, and its duals tell `orders` which
   ways should become short; the best orders seen are kept (`search`).

Before that, whole chunks go forward in an order of all channels (`at_scale`), which takes seconds;
beyond `PROGRAM_WORK`, and for routes that may change layer on the way, that is all there is.

Routes for fewer layers are routes for more, so more layers are never worse. The search is a
heuristic: its answer is a deadlock-free routing with a certificate of how far from the unrestricted
optimum it can be at most, and is optimal for the orders that it found (`order_bound`), but
better orders may exist unless the gap is closed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from alltoall.errors import InputError, TimeLimitError, UsageError
from alltoall.flows.methods import solve_master, solve_sources
from alltoall.ir.arrays import Ints
from alltoall.ir.certificate import Certificate
from alltoall.ir.find_grid import grid_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.routes.deadlock_free.at_scale import route_in_lanes
from alltoall.routes.deadlock_free.graph import layered_graph
from alltoall.routes.deadlock_free.lanes import Lanes, hop_layers
from alltoall.routes.deadlock_free.orders import order_bounds, up_down_orders
from alltoall.routes.deadlock_free.paths import peel_routes
from alltoall.routes.deadlock_free.search import least_volumes, search_orders
from alltoall.routes.deadlock_free.seeds import by_dimension
from alltoall.routes.deadlock_free.tables import route_by_tables
from alltoall.routes.dimension_order import dimension_orders, route_by_dimension
from alltoall.routes.extp import routes_of_flow
from alltoall.routes.layers.by_dimension import pack_by_dimension
from alltoall.routes.layers.dependencies import dependencies_of, link_orders
from alltoall.routes.layers.lash import first_fit, longest_first
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.settings import Late, RouteSettings

METHOD = "deadlock-free"
"""Its name among the methods, which its routes carry."""

QUICK_PAIRS = 20_000
"""Pairs up to which the first routes are made whatever the time: there is no answer without."""

UNRESTRICTED_SHARE = 0.3
"""The share of the time for the unrestricted optimum; the rest is for orders and their routes."""

PROGRAM_WORK = 50_000
"""Sources times links times layers up to which the program is solved; `at_scale` above."""

USEFUL_LAYERS = 16
"""Layers beyond which none are added at scale: no fabric has more, and each costs as much again."""

DATELINE_LAYERS = 2
"""Layers that are enough for dimension order with datelines on any grid."""

BOUND_SHARE = 0.4
"""The share of the time for what proves the bound, where the rest is for a search at scale."""

DEFAULT_LAYERS = 4
"""Virtual layers unless told otherwise: what all but the smallest cards have."""


@dataclass(frozen=True, eq=False)
class DeadlockFree:
    """Routes with layers, the order of the links in each layer, and what these orders allow.

    `orders[k]` lists the links of layer k first to last. No routes that go forward in one of these
    orders are faster than `order_bound`; `routes.bound` holds for all routes whatsoever.
    """

    routes: Routes
    orders: Ints
    order_bound: float


def route_deadlock_free(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the fastest routes found within `max_layers` virtual layers."""
    return solve_deadlock_free(problem, settings.max_layers or DEFAULT_LAYERS, settings)


def solve_deadlock_free(problem: Problem, layers: int, settings: RouteSettings) -> Routes:
    """Return the fastest routes found that need at most so many virtual layers."""
    if layers < 1:
        raise UsageError(f"{layers} virtual layers; expected at least 1")
    settings, units = settings.begin(), normal_units(problem)
    if settings.destination_based:
        return units.restored(_found(_by_tables(units.problem, settings), problem, 1, settings))
    # Quick, and sometimes better than what the program is at when time runs out.
    best = _at_scale(units.problem, layers, settings)
    channels = problem.topology.links * min(layers, USEFUL_LAYERS)
    small = len(problem.sources) * channels <= PROGRAM_WORK
    if small and (best is None or best.gap > settings.solve.gap):
        found = _by_program(units.problem, layers, settings, needed=best is None)
        answers = (each for each in (best, found) if each)
        best = min(answers, key=lambda each: each.time, default=None)
    return units.restored(_found(best, problem, layers, settings))


def _found(best: Routes | None, problem: Problem, layers: int, settings: RouteSettings) -> Routes:
    """Return the routes, or raise the reason why there are none."""
    if best is not None:
        return best
    _require_time(problem, layers, settings)
    advice = "leave out --destination-based" if settings.destination_based else "allow more layers"
    raise InputError(
        f"found no order of the links of {problem.topology.name} in {layers} virtual layer(s) "
        f"in which every pair has a route; {advice}"
    )


def _require_time(problem: Problem, layers: int, settings: RouteSettings) -> None:
    """Raise if it is the time that ended the search."""
    if settings.solve.out_of_time():
        raise TimeLimitError(
            f"{problem.topology.name}: {settings.solve.why_late()} came before any "
            f"deadlock-free routes within {layers} virtual layer(s); allow more time"
        )


def _by_tables(problem: Problem, settings: RouteSettings) -> Routes | None:
    """Return routes by tables of destinations, in one layer."""
    certificate = _proof(problem, settings)
    first = _by_dimension(problem, 1, certificate, change=False)
    return route_by_tables(problem, certificate, METHOD, settings, first)


def _proof(problem: Problem, settings: RouteSettings) -> Certificate:
    """Prove a bound no finer than whole chunks can follow it, in a share of the time."""
    solving = settings.solve.sharing(BOUND_SHARE)
    gap = max(solving.gap, COARSE_BOUND_GAP)
    return solve_master(problem, replace(solving, gap=gap)).certificate


def _at_scale(problem: Problem, layers: int, settings: RouteSettings) -> Routes | None:
    """Return routes in an order of all channels, or in dimension order if that is as good."""
    certificate = _proof(problem, settings)
    routes = _by_dimension(problem, layers, certificate, settings.layer_change)
    if routes is not None and routes.gap <= max(settings.solve.gap, COARSE_BOUND_GAP):
        return routes
    useful = min(layers, USEFUL_LAYERS)
    found = route_in_lanes(problem, useful, certificate, METHOD, settings)
    return min((each for each in (routes, found) if each), key=lambda each: each.time, default=None)


def _by_dimension(
    problem: Problem, layers: int, certificate: Certificate, change: bool
) -> Routes | None:
    """Return routes in dimension order, on a grid where so many layers are enough for them.

    They change layer only where they may, and else would need more of them.
    """
    grid = grid_of(problem.topology)
    if grid is None:
        return None
    routes = route_by_dimension(problem, grid, certificate, METHOD)
    packing = pack_by_dimension(problem.topology, grid, dependencies_of(routes), layers)
    if packing is not None:
        return replace(routes, layer=packing[0])
    lanes = Lanes(problem, min(layers, DATELINE_LAYERS), change)
    hops = hop_layers(lanes, by_dimension(lanes, grid), routes.start, routes.link)
    return replace(routes, hop_layer=hops) if change and hops is not None else None


def _by_program(
    problem: Problem, layers: int, settings: RouteSettings, needed: bool
) -> Routes | None:
    """Return the best routes of the program for searched orders, each in one layer."""
    best: DeadlockFree | None = None
    try:
        for each in deadlock_free_by_layers(problem, layers, settings):
            best = each
    except TimeoutError:
        if needed and best is None:
            _require_time(problem, layers, settings)
    if best is None:
        return None
    settings.solve.report(
        f"deadlock-free in {layers} layers: within {best.routes.time / best.order_bound - 1:.2%} "
        f"of the best in these orders, {best.routes.gap:.2%} of the best in any"
    )
    return best.routes


def deadlock_free_by_layers(
    problem: Problem, layers: int, settings: RouteSettings
) -> Iterator[DeadlockFree | None]:
    """Yield the best answer with 1, 2, ... layers; None where no order connects all pairs.

    The last is that with as many layers as the optimum takes: more help no further.
    """
    settings = settings.begin()
    flow = solve_sources(problem, settings.solve.sharing(UNRESTRICTED_SHARE))
    small = len(problem.sources) * len(problem.topology.terminals) <= QUICK_PAIRS
    patient = replace(settings.solve, time_limit=None) if small else settings.solve
    optimum = _packed(routes_of_flow(flow, patient, METHOD), flow.bound, patient.out_of_time)
    optimum = _fewer_by_dimension(optimum, settings) or optimum
    best: DeadlockFree | None = None
    for count in range(1, min(layers, len(optimum.orders)) + 1):
        if best is None or not _reached(best, optimum, settings):
            found = (
                optimum if count >= len(optimum.orders) else _search(optimum, count, best, settings)
            )
            best = min((each for each in (best, found) if each), key=_time, default=None)
        yield best


def _time(answer: DeadlockFree) -> float:
    return answer.routes.time


def _reached(answer: DeadlockFree, optimum: DeadlockFree, settings: RouteSettings) -> bool:
    return _time(answer) <= _time(optimum) * (1 + settings.solve.gap)


def _packed(routes: Routes, bound: float, late: Late) -> DeadlockFree:
    """Fill layers with the longest routes first, and keep the orders of the links."""
    dependencies = dependencies_of(routes)
    layer = first_fit(routes, dependencies, longest_first, late)
    orders = link_orders(dependencies, layer, late)
    return DeadlockFree(replace(routes, layer=layer), orders, bound)


def _fewer_by_dimension(optimum: DeadlockFree, settings: RouteSettings) -> DeadlockFree | None:
    """Return routes in dimension order if they are as fast as the optimum in fewer layers."""
    problem = optimum.routes.problem
    grid = grid_of(problem.topology) if len(optimum.orders) > 1 else None
    if grid is None:
        return None
    routes = route_by_dimension(problem, grid, optimum.routes.certificate, METHOD)
    packing = pack_by_dimension(
        problem.topology, grid, dependencies_of(routes), len(optimum.orders) - 1
    )
    if packing is None:
        return None
    found = DeadlockFree(replace(routes, layer=packing[0]), packing[1], optimum.order_bound)
    return found if _reached(found, optimum, settings) else None


def _search(
    optimum: DeadlockFree, count: int, before: DeadlockFree | None, settings: RouteSettings
) -> DeadlockFree | None:
    """Search orders for so many layers and return the best routes in them, None without any."""
    problem = optimum.routes.problem
    starts = list(_starts(optimum, count, before))
    found = search_orders(problem, starts, _time(optimum), settings)
    if found is None:
        return None
    orders, known = found
    layered = layered_graph(problem, orders)
    volumes, dual = least_volumes(layered, settings.solve, known)
    layer = np.minimum(np.arange(layered.graph.links) // problem.topology.links, count - 1)
    routes = peel_routes(
        problem,
        layered.graph,
        layered.program.groups,
        volumes,
        (layered.origin, layer),
        layered.ends,
        optimum.routes.certificate,
        METHOD,
    )
    proven = order_bounds(problem, [dual, 1.0 / problem.topology.capacity]).of(orders)
    return DeadlockFree(routes, orders, float(proven.max()))


def _starts(optimum: DeadlockFree, count: int, before: DeadlockFree | None) -> Iterator[Ints]:
    """Yield orders to begin the search with."""
    yield optimum.orders[:count]
    if before is not None:
        yield np.concatenate((before.orders, optimum.orders[len(before.orders) : count]))
    topology = optimum.routes.problem.topology
    if topology.bidirectional:
        yield up_down_orders(optimum.routes.problem, count)
    grid = grid_of(topology)
    if grid is not None:
        yield dimension_orders(topology, grid, count)
