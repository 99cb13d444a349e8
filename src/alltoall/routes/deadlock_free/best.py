"""The best throughput under deadlock freedom, with a given number of virtual layers.

A channel is a link in a layer. Routes that go forward in one order of all channels cannot deadlock,
and all routes that cannot deadlock go forward in some order. A route stays in its layer unless
`layer_change` is set, a pair may split over several, and the layers share the capacities.

1. On a grid, routes in dimension order are taken if they are at the bound.
2. The routes of the unrestricted optimum are packed into layers, each filled in turn with the
   longest routes first. If they fit, this is the answer.
3. Orders are searched for with whole chunks that go forward in them (`lanes`).
4. The linear program finds the best split of pairs in the best few of these orders (`by_program`).

2 and 4 are for small networks, on which the search also begins from several orders; see
`PROGRAM_WORK`. The search is a heuristic: its answer has a certificate of how far from the
unrestricted optimum it can be at most, but better orders may exist unless the gap is closed.
`benchmarks/deadlock_free.py` measures it.

For switches without layers there are forwarding tables without deadlocks in one layer. An order of
the links in which all pairs have a forward path has tables: from the last link to the first, a node
takes a link to a node with a known path. If every link has a reverse link, up*/down* is such an
order: towards a root first, then away from it. So there is always an answer, but its traffic
concentrates at the root.

`OrderSearch` finds better orders for any routes in one layer. Nodes then change their links in the
tables one by one (`routes.by_destination`), as long as the turns of all tables together close no
cycle: the order may change meanwhile. Several orders are tried, each several times, and the best
tables are returned.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace

import numpy as np

from alltoall.errors import InputError, TimeLimitError, UsageError
from alltoall.flows.methods import solve_master, solve_sources
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints
from alltoall.ir.grid import grid_of
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.units import normal_units
from alltoall.placing.negotiate import NEGOTIATION
from alltoall.routes.baselines.tables import routes_from_tables
from alltoall.routes.by_destination import Spreading
from alltoall.routes.deadlock_free.by_program import best_paths
from alltoall.routes.deadlock_free.lanes import (
    ALL_CHUNKS,
    Lanes,
    OrderSearch,
    by_dimension,
    hop_layers,
    routes_of_channels,
    up_down_orders,
)
from alltoall.routes.dimension_order import pack_by_dimension, route_by_dimension
from alltoall.routes.layers.dependencies import dependencies_of, link_orders
from alltoall.routes.layers.lash import first_fit, longest_first
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.routes.weights import round_up_time, routes_of_flow
from alltoall.settings import RouteSettings

MOST_TABLE_TRIES = 4
"""Orders searched for at most, and tries in each; `benchmarks/deadlock_free.py` measures it."""

Start = tuple[Ints, Ints]
"""Initial tables, and an order of the links in which their paths go forward."""


def route_by_tables(
    problem: Problem,
    certificate: Certificate,
    method: str,
    settings: RouteSettings,
    first: Routes | None = None,
) -> Routes | None:
    """Return the fastest tables found in one layer as routes, or None.

    The `first` routes in one layer, if there are any, are a start.
    """
    rng, goal = np.random.default_rng(settings.seed), round_up_time(problem, certificate.bound, 1)
    best: Spreading | None = None
    for table, order in _starts(problem, certificate, settings, first):
        for _ in range(_tries(problem)):
            tried = Spreading(problem, table, order)
            tried.spread(goal, settings, rng)
            best = min((each for each in (best, tried) if each), key=lambda each: each.least)
        if best is not None and (best.least <= goal or settings.solve.out_of_time()):
            break
    if best is None:
        return None
    routes = routes_from_tables(problem, best.best, method)
    layer = np.zeros(routes.count, dtype=np.int64)
    return replace(routes, certificate=certificate, layer=layer)


def _starts(
    problem: Problem, certificate: Certificate, settings: RouteSettings, first: Routes | None
) -> Iterator[Start]:
    """Yield starts, the quick ones first."""
    yield from () if first is None else _of_routes(first)
    roots = min(NEGOTIATION.tries, problem.topology.nodes)
    rooted = [
        each for order in up_down_orders(problem, roots) for each in _in_order(problem, order)
    ]
    if rooted:
        yield min(rooted, key=lambda start: Spreading(problem, *start).time)
    for attempt in range(_tries(problem)):
        solving = settings.solve.sharing()
        searching = replace(settings, seed=settings.seed + attempt, solve=solving)
        search = OrderSearch(Lanes(problem, 1, change=False), certificate, searching)
        routes = search.routes(search.best_orders()[0], "")
        yield from () if routes is None else _of_routes(routes)


def _of_routes(routes: Routes) -> Iterator[Start]:
    """Yield the tables of routes in one layer, or tables in their order."""
    topology = routes.problem.topology
    order = link_orders(dependencies_of(routes), np.zeros(routes.count, dtype=np.int64))[0]
    table = np.full((len(topology.terminals), topology.nodes), NOTHING, dtype=np.int64)
    entry = (routes.destination[routes.path_of_link], topology.tail[routes.link])
    table[entry] = routes.link
    if (table[entry] == routes.link).all():
        yield table, order
    else:
        yield from _in_order(routes.problem, order)


def _in_order(problem: Problem, order: Ints) -> Iterator[Start]:
    """Yield tables in an order, if all pairs with a demand have a path."""
    table = tables_in_order(problem.topology, order)
    source, destination = problem.demand.pairs()
    if (table[destination, problem.topology.terminals[source]] != NOTHING).all():
        yield table, order


def tables_in_order(topology: Topology, order: Ints) -> Ints:
    """Return tables [terminals, nodes] whose paths go forward in an order of the links.

    A node takes the last usable link of the order, and then a shorter one while no other node
    depends on it. Nodes without a path have -1.
    """
    terminals, head = topology.terminals, topology.head
    shape = topology.nodes, len(terminals)
    table, used = np.full(shape, NOTHING, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    hops = np.full(shape, topology.nodes)
    hops[terminals, np.arange(len(terminals))] = 0
    for link in order[::-1]:
        node, over = topology.tail[link], head[link]
        to = np.flatnonzero((used[node] == 0) & (hops[over] + 1 < hops[node]))
        left = to[table[node, to] != NOTHING]
        used[head[table[node, left]], left] -= 1
        table[node, to], hops[node, to] = link, hops[over, to] + 1
        used[over, to] += 1
    return np.ascontiguousarray(table.T)


def _tries(problem: Problem) -> int:
    """Return the numbers of orders and of tries in each."""
    pairs = len(problem.demand.pairs()[0])
    return min(MOST_TABLE_TRIES, max(1, ALL_CHUNKS // pairs))


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
