"""`--survive`: routes ready for every failure, found before it happens.

For each link or node that may fail, the healthy routes are renewed (`routes.renew`) on what is left
of the topology, given layers and checked. What is kept of each is a file of routes to switch over
to, and how much longer than the healthy ones they take. Failures are independent, so they can run
on a Dask cluster.
"""

from pathlib import Path

import numpy as np

from a2aflow.check.routes import check_routes
from a2aflow.errors import InputError
from a2aflow.flows.survive import Survival, Survivor, kept
from a2aflow.flows.workers import Local, run_all
from a2aflow.ir.files.artefacts import file_bytes
from a2aflow.ir.routes import Routes
from a2aflow.routes.layers.assign import layers_in_time
from a2aflow.routes.renew import renew_routes
from a2aflow.settings import RouteSettings, SolveSettings
from a2aflow.topologies.failures import Failure, failures_of


def survive(routes: Routes, what: str, settings: RouteSettings) -> Survival:
    """Renew routes for every failure; leave a file of each in a folder, if one is given."""
    solving = SolveSettings(settings.solve.gap, workers=settings.solve.workers)
    failures = failures_of(routes.problem.topology, what)
    items = ((routes, each, settings.layers, settings.max_layers, solving) for each in failures)
    found = run_all(_renewed, items, len(failures), settings.solve, Local.ONE_BY_ONE, "failures")
    return Survival(routes.time, tuple(kept(found, settings.switch_over)))


def _renewed(item: tuple[Routes, Failure, str | None, int | None, SolveSettings]) -> Survivor:
    """Renew routes after one failure; those of a pair that is cut off do not exist."""
    routes, failure, layers, max_layers, settings = item
    try:
        found = renew_routes(failure.left_of(routes.problem), routes, settings)
    except InputError:
        return Survivor(failure, np.inf)
    renewed = found.routes
    if layers is not None:
        renewed, _ = layers_in_time(renewed, layers, max_layers, settings)
    check_routes(renewed)
    file = file_bytes(Path("routes.npz"), renewed, False)
    return Survivor(failure, renewed.time, renewed.bound, found.unserved, found.moved, file)
