"""Virtual layers: sets of routes whose channel dependencies are acyclic.

All algorithms share one signature and sit in `LAYERINGS`; see `routes.layers.lash`.

The choice of routes matters as much as their packing. On a grid, routes in dimension order are
often as fast as any and need the fewest known layers, so `fewest_layers` tries those too
(`routes.dimension_order`); elsewhere it reroutes those in the last layers (`Rerouting`).

After a failure, unmoved routes keep their layers: part of a deadlock-free layer is deadlock-free.
Each moved route is offered to the layers in turn, then to new ones.

Most layers of a large network are for a few routes: at a thousand nodes the last three of eleven
hold 0.6 %. Each remaining layer has an order of the links in which its routes go forward, and every
pair of a removed layer takes the cheapest forward path in any of these orders, usually a shortest
path. Then all routes respond to the loads, within the orders (`placing.place`), until the original
time is reached.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.grid import grid_of
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.routes import Routes
from alltoall.placing.chunks import Chunks, Table, path_room
from alltoall.placing.place import SETTLED, place
from alltoall.routes.by_destination import METHOD as BY_DESTINATION
from alltoall.routes.deadlock_free.lanes import Lanes, forward_network
from alltoall.routes.dimension_order import route_by_dimension
from alltoall.routes.layers.dependencies import (
    circular_route,
    dependencies_of,
    fill_layer,
    link_orders,
)
from alltoall.routes.layers.lash import df_sssp, lash, lash_sequential
from alltoall.routes.renew import last_places
from alltoall.routes.weights import NO_LOSS
from alltoall.settings import SolveSettings


@dataclass(frozen=True, eq=False)
class Rerouting:
    """Routes in layers, of which the last may be removed."""

    routes: Routes
    settings: SolveSettings

    def as_fast(self) -> tuple[Routes | None, Routes | None]:
        """Return equally fast routes with the fewest layers, and routes with one layer less.

        Return None if there are none in time. One layer less is tried first, then two and more, and
        at last the number is bisected: a try that fails takes longest.
        """
        too_few, enough, fewer = 0, self.routes.layers or 0, 1
        found: dict[int, Routes | None] = {}
        while enough - too_few > 1 and not self.settings.out_of_time():
            layers = max((too_few + enough) // 2, enough - fewer)
            tried = self.within(layers)
            found[layers] = tried
            if tried is not None and tried.time <= self.routes.time * (1 + NO_LOSS):
                enough, fewer = layers, 2 * fewer
            else:
                too_few = layers
        return found.get(enough), found.get(enough - 1)

    def within(self, layers: int) -> Routes | None:
        """Return the fastest routes found in this many layers, None if a pair has none in time."""
        self.settings.report(f"other routes, for {layers} instead of {self.routes.layers} layers")
        lanes = Lanes(self.routes.problem, layers, change=False)
        links = self.routes.problem.topology.links
        order = (np.arange(layers)[:, None] * links + self._orders[:layers]).ravel()
        placed = place(
            forward_network(lanes, order),
            self._chunks,
            self.routes.time,
            SETTLED,
            self._table(layers),
            self.settings.out_of_time,
        )
        return None if placed is None else self._routes(lanes, placed.table)

    @cached_property
    def _sorted(self) -> Routes:
        """The routes by source."""
        return self.routes.select(np.lexsort((self.routes.destination, self.routes.source)))

    @cached_property
    def _layer(self) -> Ints:
        """The layer of each route; layers with most hops come first."""
        layer = self._sorted.layer
        if layer is None:
            raise ValueError("routes without a layer each; assign layers first")
        hops = np.bincount(layer, self._sorted.hops)
        return np.asarray(np.argsort(np.argsort(-hops, kind="stable"))[layer], dtype=np.int64)

    @cached_property
    def _orders(self) -> Ints:
        """An order of the links for each layer."""
        return link_orders(dependencies_of(self._sorted), self._layer)

    @property
    def _chunks(self) -> Chunks:
        """A chunk per route."""
        mine = self._sorted
        return Chunks(mine.source, mine.destination, mine.weight)

    def _table(self, layers: int) -> Table:
        """Return a row of channels per route, empty for routes of removed layers."""
        mine = self._sorted
        links, hops = mine.problem.topology.links, mine.hops
        channel = np.repeat(self._layer, hops) * links + mine.link
        channel[channel >= layers * links] = NOTHING
        room = path_room(int(hops.max()), layers * links)
        table = np.full((mine.count, room), NOTHING, dtype=np.int32)
        table[mine.path_of_link, inner_index(hops)] = channel
        return table

    def _routes(self, lanes: Lanes, table: Table) -> Routes:
        """Return the routes of a table; equal routes of a pair become one."""
        mine, layer = self._sorted, lanes.layer[table[:, 0]]
        ways = Paths.from_table(mine.source, mine.destination, table)
        first, same = np.arange(ways.count), np.arange(ways.count)
        if int(mine.routes_per_pair().max()) > 1:
            first, same = ways.equal()
        ways = ways.select(first)
        return replace(
            mine,
            source=ways.source,
            destination=ways.destination,
            start=ways.start,
            link=lanes.link[ways.link],
            weight=np.bincount(same, mine.weight).astype(np.float64),
            layer=np.unique(layer[first], return_inverse=True)[1],
        )


Layering = Callable[[Routes, int, SolveSettings], Ints]

LAYERINGS: dict[str, Layering] = {
    "lash": lash,
    "lash-sequential": lash_sequential,
    "df-sssp": df_sssp,
}
"""Every layer assignment, by its name on the command line."""

FREE_TO_CHOOSE = ("extp", "single", "few")
"""Methods that promise a time and a number of routes per pair, and no particular routes."""

TABLE_METHODS = ("sssp", "ecmp", "updown", BY_DESTINATION)
"""Methods with one next link per node and destination."""

DIMENSION, REROUTED = "routes in dimension order", "other routes"
"""Names of replaced routes in notes."""


def assign_layers(
    routes: Routes,
    algorithm: str = "lash-sequential",
    max_layers: int | None = None,
    seed: int = 0,
    settings: SolveSettings | None = None,
) -> Routes:
    """Return the routes with a virtual layer each, so that no layer can deadlock.

    A time limit in the settings shortens the search for few layers; raise TimeoutError if not even
    a first assignment ends in time.
    """
    if algorithm not in LAYERINGS:
        known = ", ".join(LAYERINGS)
        raise UsageError(f"unknown layering {algorithm!r}; expected one of {known}")
    settings = settings or SolveSettings()
    settings.check_time()
    layered = replace(routes, layer=LAYERINGS[algorithm](routes, seed, settings))
    return _within(layered, algorithm, max_layers)


def _within(layered: Routes, algorithm: str, max_layers: int | None) -> Routes:
    """Return the routes if they keep the limit on layers, else raise."""
    needed = layered.layers or 0
    if max_layers is not None and needed > max_layers:
        tables = ":destination-based" if layered.method in TABLE_METHODS else ""
        raise InputError(
            f"{algorithm} needs {needed} virtual layers for these {layered.count} routes and "
            f"{max_layers} are allowed; allow {needed}, try another of {', '.join(LAYERINGS)}, or "
            f"compute routes for so many layers (--method deadlock-free{tables})"
        )
    return layered


def layers_in_time(
    routes: Routes, algorithm: str, max_layers: int | None, settings: SolveSettings
) -> tuple[Routes, tuple[str, ...]]:
    """Return the routes with layers, or without and with a note if time runs out."""
    settings.report("assigning layers")
    try:
        return fewest_layers(routes, algorithm, max_layers, settings)
    except TimeoutError:
        return routes, (
            f"{settings.why_late()} came before all {routes.count:,} routes had a layer, so they "
            "have none and may deadlock; allow more time, or leave out layers on fabrics that need "
            "none",
        )


def fewest_layers(
    routes: Routes, algorithm: str, max_layers: int | None, settings: SolveSettings
) -> tuple[Routes, tuple[str, ...]]:
    """Return layered routes, the given ones or others, and the choices as notes.

    If the method may choose its routes, and `lash-sequential` their layers, equally fast routes
    with fewer layers are taken: in dimension order on a grid, else rerouted within earlier layers.
    If the layers are limited, the fastest routes within them are taken. A note states the choice or
    the difference in time.
    """
    mine = assign_layers(routes, algorithm, settings=settings)
    if algorithm != "lash-sequential" or mine.method not in FREE_TO_CHOOSE or mine.layers == 1:
        return _within(mine, algorithm, max_layers), ()
    others = _others(mine, max_layers, settings)
    fast = [each for each in others if each.routes.time <= mine.time * (1 + NO_LOSS)]
    best = min(fast, key=_layers, default=_Other("", mine))
    notes: tuple[str, ...] = ()
    if best.routes is not mine:
        notes = (f"{best.how}: as fast, {_layers(best)} instead of {mine.layers} layers",)
    slower = [each for each in others if _layers(each) < _layers(best) and each not in fast]
    if max_layers is not None and _layers(best) > max_layers:
        fitting = [each for each in slower if _layers(each) <= max_layers]
        if fitting:
            chosen = min(fitting, key=_time)
            return chosen.routes, (f"{chosen.how}: {_points(chosen, _Other('', mine))}",)
    elif slower:
        other, option = min(slower, key=_time), f"(--max-layers {_layers(best) - 1})"
        notes += (f"another choice: {other.how} {option}: {_points(other, best)}",)
    return _within(best.routes, algorithm, max_layers), notes


@dataclass(frozen=True, eq=False)
class _Other:
    """Layered routes, and the name of their construction."""

    how: str
    routes: Routes


def _layers(other: _Other) -> int:
    return other.routes.layers or 0


def _time(other: _Other) -> float:
    return other.routes.time


def _points(slower: _Other, faster: _Other) -> str:
    """Word two points between which the user may choose."""
    slow, fast = (
        f"time {each.routes.time:.9g}, layers {_layers(each)}" for each in (slower, faster)
    )
    return f"{slow}; instead of {fast}"


def _others(mine: Routes, max_layers: int | None, settings: SolveSettings) -> list[_Other]:
    """Return other routes in fewer layers: in dimension order, or rerouted."""
    found: list[_Other] = []
    layers, grid = mine.layers or 0, grid_of(mine.problem.topology)
    if grid is not None:
        routes = route_by_dimension(mine.problem, grid, mine.certificate, mine.method)
        with suppress(TimeoutError):
            other = _Other(DIMENSION, assign_layers(routes, settings=settings))
            found = [other] if _layers(other) < layers else []
    if found and _time(found[0]) <= mine.time * (1 + NO_LOSS):
        return found
    rerouting = Rerouting(mine, settings)
    tried = list(rerouting.as_fast())
    if max_layers is not None and all((each.layers or 0) > max_layers for each in tried if each):
        tried.append(rerouting.within(max_layers) if 0 < max_layers < layers else None)
    return found + [_Other(REROUTED, each) for each in tried if each is not None]


def layers_after(
    routes: Routes,
    last: Routes,
    settings: SolveSettings,
    algorithm: str = "lash-sequential",
    most: int | None = None,
) -> tuple[Routes, tuple[str, ...]]:
    """Return renewed routes with layers, and notes on them.

    Old layers are kept unless that needs more layers; else all are assigned anew.
    """
    if last.layer is not None:
        place = last_places(routes, last)
        with suppress(TimeoutError):
            kept = keep_layers(
                routes, np.where(place == NOTHING, NOTHING, last.layer[place]), settings
            )
            if (kept.layers or 0) <= min(last.layers or 0, most or np.inf):
                return kept, ()
    return layers_in_time(routes, algorithm, most, settings)


def keep_layers(routes: Routes, last: Ints, settings: SolveSettings) -> Routes:
    """Return routes with layers; `last` has the old layer of each, or NOTHING if it moved.

    Raise TimeoutError if time runs out.
    """
    dependencies = dependencies_of(routes)
    layer = np.full(routes.count, NOTHING, dtype=np.int64)
    waiting, level = np.flatnonzero(last == NOTHING), 0
    while len(waiting) or level <= last.max(initial=0):
        mine = np.flatnonzero(last == level)
        taken, _ = fill_layer(dependencies, np.concatenate((mine, waiting)), settings.out_of_time)
        if len(waiting) and not taken.any():
            raise circular_route()
        layer[taken] = level
        waiting, level = waiting[~taken[waiting]], level + 1
    return replace(routes, layer=layer)
