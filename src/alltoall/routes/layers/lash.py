"""Layers for routes: filled route by route, or emptied of routes that close cycles.

- `lash` (Skeie, Lysne and Theiss, "Layered shortest path (LASH) routing in irregular system area
  networks", IPDPS 2002): every route, in the order in which the routes come, goes into the first
  layer in which it closes no cycle of channel dependencies.
- `lash-sequential` (the paper's variant): one layer is filled as far as possible, then the next. In
  the same order of routes this equals `lash`; the variant gains by reordering the remaining routes
  before each layer: see `ORDERS`. A packing with one order throughout is made for each of them; one
  that takes, layer by layer, the order that places most dependencies; packings in which the sources
  come in random order; and one by orders of the links instead of the routes (`layer_orders`). On a
  grid, the orders of the links that suit dimension-ordered routes come first
  (`routes.dimension_order`). The fewest layers win, the earlier packing if equal. For very many
  routes only the packings by orders of the links, which cost a tenth, are made.
- `df-sssp` (Domke, Hoefler and Nagel, "Deadlock-free oblivious routing for arbitrary topologies",
  IPDPS 2011): all routes begin in one layer. A depth-first search looks for a cycle of channel
  dependencies; the routes that have the rarest dependency of the cycle move to the next layer. The
  search continues where its path was broken, until the layer is acyclic.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np

from alltoall import core
from alltoall.flows import sizes
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.grid import grid_of
from alltoall.ir.routes import Routes
from alltoall.routes.dimension_order import pack_by_dimension
from alltoall.routes.layers.dependencies import (
    Dependencies,
    circular_route,
    dependencies_of,
    fill_layer,
    pack_by_orders,
    turn_weights,
)
from alltoall.settings import Late, SolveSettings

Order = Callable[[Routes, Dependencies, Ints], Floats]

SHUFFLES = 30
"""Random orders of the sources, tried for few routes; measured by `benchmarks/layers.py`."""

SHUFFLE_WORK = 1_000_000
"""Dependencies of all routes times shuffles, at most; `benchmarks/layers.py` measures it."""


def _by(key: Ints) -> Order:
    return lambda _, __, left: key[left].astype(np.float64)


def _as_given(_: Routes, __: Dependencies, left: Ints) -> Floats:
    return np.zeros(len(left))


def lash(routes: Routes, _: int, settings: SolveSettings) -> Ints:
    """Put each route, in the order given, into the first layer that it cannot deadlock."""
    return first_fit(routes, dependencies_of(routes), _as_given, settings.out_of_time)


def lash_sequential(routes: Routes, seed: int, settings: SolveSettings) -> Ints:
    """Fill layer after layer, in several orders, and return the packing of fewest layers."""
    dependencies = dependencies_of(routes)
    if len(dependencies.turn) > sizes.OFFERED_DEPENDENCIES:
        best = pack_by_orders(dependencies, seed, settings)
        return _fewer_by_dimension(routes, dependencies, best)
    best = first_fit(routes, dependencies, _as_given, settings.out_of_time)
    best = _fewer_by_dimension(routes, dependencies, best)
    return _improved(best, routes, dependencies, seed, settings)


def _fewer_by_dimension(routes: Routes, dependencies: Dependencies, best: Ints) -> Ints:
    """Return a packing of fewer layers than `best` if dimension orders of a grid allow one."""
    topology = routes.problem.topology
    grid = grid_of(topology) if best.max() > 0 else None
    if grid is None:
        return best
    packing = pack_by_dimension(topology, grid, dependencies, int(best.max()))
    return best if packing is None else packing[0]


def _improved(
    best: Ints, routes: Routes, dependencies: Dependencies, seed: int, settings: SolveSettings
) -> Ints:
    """Return the packing with fewest layers among other orders, within the time."""
    late = settings.sharing().out_of_time
    with suppress(TimeoutError):
        for orders in _attempts(routes, dependencies, seed):
            # Two layers cannot be improved on: that one would do is seen at the first attempt.
            if best.max() < 2 or late():
                break
            packing = pack(routes, dependencies, orders, int(best.max()), settings.out_of_time)
            best = best if packing is None else packing
        by_orders = pack_by_orders(dependencies, seed, settings) if best.max() > 1 else best
        return min(best, by_orders, key=lambda layer: int(layer.max()))
    return best


def _attempts(routes: Routes, dependencies: Dependencies, seed: int) -> Iterator[Sequence[Order]]:
    yield from ([order] for order in ORDERS)
    yield ORDERS
    rng = np.random.default_rng(seed)
    terminals = len(routes.problem.topology.terminals)
    for _ in range(min(SHUFFLES, SHUFFLE_WORK // max(1, len(dependencies.turn)))):
        yield [_by(rng.permutation(terminals)[routes.source])]


def first_fit(routes: Routes, dependencies: Dependencies, order: Order, late: Late) -> Ints:
    """Put each route into the first layer that takes it: the same as filling layer by layer."""
    layer = pack(routes, dependencies, [order], routes.count, late)
    if layer is None:
        raise circular_route()
    return layer


def pack(
    routes: Routes, dependencies: Dependencies, orders: Sequence[Order], limit: int, late: Late
) -> Ints | None:
    """Fill layers until all routes have one; of several orders, each layer takes the fullest.

    Return None if `limit` layers do not hold them all.
    """
    layer = np.zeros(routes.count, dtype=np.int64)
    left = np.flatnonzero(dependencies.length)
    for level in range(limit):
        fillings = []
        for order in orders:
            offered = left[np.argsort(order(routes, dependencies, left), kind="stable")]
            fillings.append(np.flatnonzero(fill_layer(dependencies, offered, late)[0]))
        taken = max(fillings, key=lambda mine: int(dependencies.length[mine].sum()))
        layer[taken] = level
        left = np.setdiff1d(left, taken, assume_unique=True)
        if not len(left):
            return layer
    return None


def longest_first(_: Routes, dependencies: Dependencies, left: Ints) -> Floats:
    """Offer the routes of most dependencies first: they are the hardest to place."""
    return -dependencies.length[left].astype(np.float64)


def _most_shared_first(_: Routes, dependencies: Dependencies, left: Ints) -> Floats:
    """Order routes by their shared dependencies, most shared first."""
    alive = np.zeros(dependencies.routes)
    alive[left] = 1.0
    popular = turn_weights(dependencies, alive)
    total = np.concatenate(([0.0], np.cumsum(popular[dependencies.turn])))
    shared = total[dependencies.start[1:]] - total[dependencies.start[:-1]]
    return -shared[left] / dependencies.length[left]


ORDERS: Sequence[Order] = (
    longest_first,
    lambda routes, _, left: routes.source[left].astype(np.float64),
    lambda routes, _, left: routes.destination[left].astype(np.float64),
    _most_shared_first,
)
"""The orders in which `lash-sequential` offers the remaining routes to a new layer."""

MOST_CYCLES = 1_000
"""Cycles broken in one call of the core, so that a time limit is heard in between."""


def df_sssp(routes: Routes, _: int, settings: SolveSettings) -> Ints:
    """Move routes that close cycles from layer to layer.

    Raise TimeoutError if the time limit comes first.
    """
    search, level = core.CycleBreaking(dependencies_of(routes).turns), 0
    while (search.layer == level).any():
        search.begin_layer(level)
        while not search.run(MOST_CYCLES):
            settings.check_time()
        if not (search.layer == level).any():
            raise circular_route()
        level += 1
    return search.layer
