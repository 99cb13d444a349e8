"""Fewer layers: reroute the last layers' routes within earlier layers.

Most layers of a large network are for a few routes: at a thousand nodes the last three of eleven
hold 0.6 %. Each remaining layer has an order of the links in which its routes go forward, and every
pair of a removed layer takes the cheapest forward path in any of these orders, usually a shortest
path. Then all routes respond to the loads, within the orders (`placing.place`), until the original
time is reached.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.routes import Routes
from alltoall.placing.chunks import Chunks, Table, path_room
from alltoall.placing.place import SETTLED, place
from alltoall.routes.deadlock_free.lanes import Lanes, forward_network
from alltoall.routes.layers.dependencies import dependencies_of, link_orders
from alltoall.routes.weights import NO_LOSS
from alltoall.settings import SolveSettings


@dataclass(frozen=True, eq=False)
class Rerouting:
    """Routes in layers, of which the last may be removed."""

    routes: Routes
    settings: SolveSettings

    def as_fast(self) -> tuple[Routes | None, Routes | None]:
        """Return equally fast routes with the fewest layers, and routes with one layer less.

        Return None if there are none in time. The number of layers is found by bisection.
        """
        too_few, enough = 0, self.routes.layers or 0
        found: dict[int, Routes | None] = {}
        while enough - too_few > 1 and not self.settings.out_of_time():
            layers = (too_few + enough) // 2
            tried = self.within(layers)
            found[layers] = tried
            if tried is not None and tried.time <= self.routes.time * (1 + NO_LOSS):
                enough = layers
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
        """The layer of each of these; layers of most hops come first."""
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
        """Return a row of channels per route, empty for those whose layer is given up."""
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
