"""The best throughput under deadlock freedom, with a given number of virtual layers.

A channel is a link in a layer. Routes that go forward in one order of all channels cannot deadlock,
and all routes that cannot deadlock go forward in some order. A route stays in its layer unless
`layer_change` is set, a pair may split over several, and the layers share the capacities.

1. On a grid, routes in dimension order are taken if they are at the bound.
2. The routes of the unrestricted optimum are packed into layers, each filled in turn with the
   longest routes first. If they fit, this is the answer.
3. Orders are searched for with whole chunks that go forward in them (`lanes`).
4. The linear program finds the best split of pairs in the best few of these orders (`program`).

2 and 4 are for small networks, on which the search also begins from several orders; see
`PROGRAM_WORK`. The search is a heuristic: its answer has a certificate of how far from the
unrestricted optimum it can be at most, but better orders may exist unless the gap is closed.
`benchmarks/deadlock_free.py` measures it.
"""

from contextlib import suppress
from dataclasses import replace

from alltoall.errors import InputError, TimeLimitError, UsageError
from alltoall.flows.methods import solve_master, solve_sources
from alltoall.ir.answer import Certificate
from alltoall.ir.grid import grid_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.placing.negotiate import NEGOTIATION
from alltoall.routes.deadlock_free.by_program import best_paths
from alltoall.routes.deadlock_free.lanes import (
    Lanes,
    OrderSearch,
    by_dimension,
    hop_layers,
    routes_of_channels,
)
from alltoall.routes.deadlock_free.tables import route_by_tables
from alltoall.routes.dimension_order import pack_by_dimension, route_by_dimension
from alltoall.routes.extp import routes_of_flow
from alltoall.routes.layers.dependencies import dependencies_of
from alltoall.routes.layers.lash import first_fit, longest_first
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.settings import RouteSettings

METHOD = "deadlock-free"
"""The name of the method."""

PROGRAM_WORK = 50_000
"""Sources times channels up to which the program is solved."""

STARTS_WORK = 200_000
"""Sources times channels times starts of the search on small networks, above one start."""

USEFUL_LAYERS = 16
"""Most layers tried; no fabric has more."""

DATELINE_LAYERS = 2
"""Layers that are enough for dimension order with datelines on any grid."""

DEFAULT_LAYERS = 4
"""Default number of virtual layers, which all but the smallest NICs have."""


def route_deadlock_free(problem: Problem, settings: RouteSettings) -> Routes:
    """Return the fastest routes found within `max_layers` virtual layers."""
    return solve_deadlock_free(problem, settings.max_layers or DEFAULT_LAYERS, settings)


def solve_deadlock_free(problem: Problem, layers: int, settings: RouteSettings) -> Routes:
    """Return the fastest routes found within the virtual layers."""
    if layers < 1:
        raise UsageError(f"{layers} virtual layers; expected at least 1")
    units = normal_units(problem)
    if settings.destination_based:
        layers, advice = 1, "leave out destination-based"
        certificate = _proof(units.problem, settings)
        first = _by_dimension(units.problem, 1, certificate, change=False)
        found = route_by_tables(units.problem, certificate, METHOD, settings, first)
    else:
        small, advice = _work(problem, layers) <= PROGRAM_WORK, "allow more layers"
        found = (_on_small if small else _at_scale)(units.problem, layers, settings)
    if found is not None:
        return units.restored(found)
    if settings.solve.out_of_time():
        raise TimeLimitError(
            f"{problem.topology.name}: {settings.solve.why_late()} came before any "
            f"deadlock-free routes within {layers} virtual layer(s); allow more time"
        )
    raise InputError(
        f"found no order of the links of {problem.topology.name} in {layers} virtual layer(s) "
        f"in which every pair has a route; {advice}"
    )


def _work(problem: Problem, layers: int) -> int:
    """Return sources times channels."""
    return len(problem.sources) * problem.topology.links * min(layers, USEFUL_LAYERS)


def _at_scale(problem: Problem, layers: int, settings: RouteSettings) -> Routes | None:
    """Return routes in an order of all channels, or in dimension order if equally good."""
    certificate = _proof(problem, settings)
    routes = _by_dimension(problem, layers, certificate, settings.layer_change)
    if routes is not None and routes.gap <= max(settings.solve.gap, COARSE_BOUND_GAP):
        return routes
    lanes = Lanes(problem, min(layers, USEFUL_LAYERS), settings.layer_change)
    search = OrderSearch(lanes, certificate, settings)
    return _fastest(routes, search.routes(search.best_orders()[0], METHOD))


def _on_small(problem: Problem, layers: int, settings: RouteSettings) -> Routes | None:
    """Return the best routes found with this many layers or fewer."""
    flow = solve_sources(problem, settings.solve.sharing())
    best = _by_dimension(problem, layers, flow.certificate, settings.layer_change)
    if best is None or best.gap > settings.solve.gap:
        with suppress(TimeoutError):  # The routes of the unrestricted optimum, if layers hold them.
            routes = routes_of_flow(flow, settings.solve, METHOD)
            late = settings.solve.out_of_time
            layer = first_fit(routes, dependencies_of(routes), longest_first, late)
            if layer.max() < layers:
                best = _fastest(best, replace(routes, layer=layer))
    for count in range(min(layers, USEFUL_LAYERS), 0, -1):
        if best is not None and (best.gap <= settings.solve.gap or settings.solve.out_of_time()):
            break
        lanes = Lanes(problem, count, settings.layer_change)
        best = _fastest(best, _search_small(lanes, flow.certificate, settings))
    return best


def _fastest(*found: Routes | None) -> Routes | None:
    """Return the fastest routes, the first of equally fast ones."""
    routes = (each for each in found if each is not None)
    return min(routes, key=lambda each: each.time, default=None)


def _search_small(lanes: Lanes, certificate: Certificate, settings: RouteSettings) -> Routes | None:
    """Return the best routes of the program in the best orders found, or of whole chunks."""
    searching = replace(settings, solve=settings.solve.sharing())
    search = OrderSearch(lanes, certificate, searching)
    starts = max(1, min(NEGOTIATION.tries, STARTS_WORK // _work(lanes.problem, lanes.layers)))
    orders = search.best_orders(starts)
    best = search.routes(orders[0], METHOD)
    for tried in orders[: NEGOTIATION.tries]:
        done = best is None or best.gap <= settings.solve.gap or settings.solve.out_of_time()
        if done or tried.placed is None:
            break
        found = best_paths(lanes, tried.order, settings.solve)
        if found is not None:  # Else time is too short.
            best = _fastest(best, routes_of_channels(lanes, *found, certificate, METHOD))
    return best


def _proof(problem: Problem, settings: RouteSettings) -> Certificate:
    """Prove a bound, as fine as whole chunks need, in a share of the time."""
    solving = settings.solve.sharing()
    gap = max(solving.gap, COARSE_BOUND_GAP)
    return solve_master(problem, replace(solving, gap=gap)).certificate


def _by_dimension(
    problem: Problem, layers: int, certificate: Certificate, change: bool
) -> Routes | None:
    """Return routes in dimension order, on a grid if the layers suffice.

    They change layers if allowed, and need more layers otherwise.
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
