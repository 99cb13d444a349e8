"""Forwarding tables without deadlocks in one layer, for switches without layers.

An order of the links in which all pairs have a forward path has tables: from the last link to the
first, a node takes a link to a node with a known path. If every link has a reverse link, up*/down*
is such an order: towards a root first, then away from it. So there is always an answer, but its
traffic concentrates at the root.

`OrderSearch` finds better orders for any routes in one layer. Nodes then change their links in the
tables one by one (`routes.by_destination`), as long as the turns of all tables together close no
cycle: the order may change meanwhile. Several orders are tried, each several times, and the best
tables are returned.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.placing.negotiate import NEGOTIATION
from alltoall.routes.baselines.tables import routes_from_tables
from alltoall.routes.by_destination import Spreading
from alltoall.routes.deadlock_free.lanes import ALL_CHUNKS, Lanes, OrderSearch, up_down_orders
from alltoall.routes.layers.dependencies import dependencies_of, link_orders
from alltoall.routes.weights import round_up_time
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
