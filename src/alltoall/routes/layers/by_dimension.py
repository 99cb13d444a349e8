"""Layers for routes on a grid, by the orders of the links that suit dimension order."""

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.grid import Grid
from alltoall.ir.topology import Topology
from alltoall.routes.dimension_order import dimension_orders, enough_layers
from alltoall.routes.layers.dependencies import Dependencies, forward_routes


def pack_by_dimension(
    topology: Topology, grid: Grid, dependencies: Dependencies, most_layers: int
) -> tuple[Ints, Ints] | None:
    """Return a layer per route and the order of the links in each, in as few layers as will do.

    Return None if not all routes go forward in any of these orders, as all in dimension order do,
    or if that takes too many layers.
    """
    for layers in range(1, min(most_layers, enough_layers(grid)) + 1):
        orders = dimension_orders(topology, grid, layers)
        forward = np.stack([forward_routes(dependencies, np.argsort(each)) for each in orders])
        if forward.any(axis=0).all():
            return np.argmax(forward, axis=0).astype(np.int64), orders
    return None
