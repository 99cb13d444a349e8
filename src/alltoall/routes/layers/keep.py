"""Layers after a failure: routes that stay keep theirs, and others go where they close no cycle.

The rest of a layer cannot deadlock, as the whole could not. Each route that moved is offered to one
layer after the other, behind those that are in it, and to new layers in the end.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.routes import Routes
from alltoall.routes.layers.assign import layers_in_time
from alltoall.routes.layers.dependencies import circular_route, dependencies_of, fill_layer
from alltoall.routes.renew import last_places
from alltoall.settings import SolveSettings


def layers_after(
    routes: Routes,
    last: Routes,
    settings: SolveSettings,
    algorithm: str = "lash-sequential",
    most: int | None = None,
) -> tuple[Routes, tuple[str, ...]]:
    """Return renewed routes with layers, and notes on them.

    Those of the last routes are kept where that takes no more of them; else all are assigned anew.
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
    """Return routes with layers; `last` has that of each before, or NOTHING for one that moved.

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
