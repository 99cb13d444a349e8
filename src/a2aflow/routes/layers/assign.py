"""Virtual layers: which routes may share one without ever waiting for each other in a circle.

All algorithms share one signature and sit in `LAYERINGS`:

- `lash` and `lash-sequential`: see `routes.layers.lash`.
- `df-sssp` (Domke, Hoefler and Nagel, "Deadlock-free oblivious routing for arbitrary topologies",
  IPDPS 2011): see `routes.layers.cycles`.

Which routes one starts from matters as much as how they are packed. On a grid, routes in dimension
order are often as fast as any and need the fewest layers that are known, so `fewest_layers` tries
those too (`routes.dimension_order`).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

from a2aflow.errors import InputError, UsageError
from a2aflow.ir.arrays import Ints
from a2aflow.ir.find_grid import grid_of
from a2aflow.ir.routes import Routes
from a2aflow.routes.dimension_order import route_by_dimension
from a2aflow.routes.layers.cycles import break_cycles
from a2aflow.routes.layers.lash import lash, lash_sequential
from a2aflow.routes.weights import NO_LOSS
from a2aflow.settings import SolveSettings

Layering = Callable[[Routes, int, SolveSettings], Ints]

FREE_TO_CHOOSE = ("extp", "single", "few")
"""Methods that promise a time and a number of routes per pair, and no particular routes."""


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
    settings = (settings or SolveSettings()).begin()
    settings.check_time()
    layered = replace(routes, layer=LAYERINGS[algorithm](routes, seed, settings))
    return _within(layered, algorithm, max_layers)


def _within(layered: Routes, algorithm: str, max_layers: int | None) -> Routes:
    """Return the routes if they need no more layers than are allowed, else raise."""
    needed = layered.layers or 0
    if max_layers is not None and needed > max_layers:
        raise InputError(
            f"{algorithm} needs {needed} virtual layers for these {layered.count} routes and "
            f"{max_layers} are allowed; allow {needed}, try another of {', '.join(LAYERINGS)}, or "
            "compute routes for so many layers (--method deadlock-free)"
        )
    return layered


def layers_in_time(
    routes: Routes, algorithm: str, max_layers: int | None, settings: SolveSettings
) -> tuple[Routes, tuple[str, ...]]:
    """Return the routes with layers, or without and a note that says so if time runs out."""
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
    """Return layered routes, the given ones or in dimension order, and what there is to choose.

    Dimension order is taken where it is as fast and needs fewer layers, or where the given routes
    need more layers than are allowed. A note says so, or that the two differ in time.
    """
    mine = assign_layers(routes, algorithm, settings=settings)
    other = _by_dimension(mine, algorithm, settings)
    if other is None:
        return _within(mine, algorithm, max_layers), ()
    needed, least = mine.layers or 0, other.layers or 0
    if other.time <= mine.time * (1 + NO_LOSS):
        note = f"routes in dimension order: as fast, {least} instead of {needed} layers"
        return _within(other, algorithm, max_layers), (note,)
    slower, faster = (f"time {each.time:.9g}, layers {each.layers}" for each in (other, mine))
    if max_layers is not None and needed > max_layers >= least:
        return other, (f"routes in dimension order: {slower}; instead of {faster}",)
    hint = f"routes in dimension order (--max-layers {needed - 1}): {slower}; instead of {faster}"
    return _within(mine, algorithm, max_layers), (f"another choice: {hint}",)


def _by_dimension(mine: Routes, algorithm: str, settings: SolveSettings) -> Routes | None:
    """Return layered routes in dimension order if they need fewer layers, and there are any.

    `lash` and `df-sssp` are there to be compared with, so they get the routes that they are given.
    """
    if algorithm != "lash-sequential" or mine.method not in FREE_TO_CHOOSE or mine.layers == 1:
        return None
    grid = grid_of(mine.problem.topology)
    if grid is None:
        return None
    routes = route_by_dimension(mine.problem, grid, mine.certificate, mine.method)
    with suppress(TimeoutError):
        other = assign_layers(routes, algorithm, settings=settings)
        return other if (other.layers or 0) < (mine.layers or 0) else None
    return None


def df_sssp(routes: Routes, seed: int, settings: SolveSettings) -> Ints:
    """Move routes that close cycles to the next layer: see `routes.layers.cycles`."""
    return break_cycles(routes, seed, settings.out_of_time)


LAYERINGS: dict[str, Layering] = {
    "lash": lash,
    "lash-sequential": lash_sequential,
    "df-sssp": df_sssp,
}
"""Every layer assignment, by its name on the command line."""
