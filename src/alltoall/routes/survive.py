"""`--survive`: routes ready for every failure, found before it happens.

For each link or node that may fail, the healthy routes are renewed (`routes.renew`) on what is left
of the topology, given layers and checked. Routes that stay keep their layer, unless that takes more
layers than the healthy ones have. What is kept of each failure is a file to switch over to, of what
differs from the healthy routes or of all, and how much longer than the healthy ones they take.
Failures are independent, so they can run on a Dask cluster.
"""

from pathlib import Path

import numpy as np

from alltoall.check.routes import check_routes
from alltoall.errors import InputError
from alltoall.flows.survive import Survival, Survivor, for_one_failure, kept
from alltoall.flows.workers import Local, run_all, until_late
from alltoall.ir.arrays import Ints
from alltoall.ir.files.artefacts import file_bytes, write_artefact
from alltoall.ir.files.json import HEALTHY_FILE, json_text, switch_over_to_json
from alltoall.ir.paths import NOTHING, Paths
from alltoall.ir.routes import Routes
from alltoall.ir.without import numbers_left
from alltoall.routes.layers.assign import layers_in_time
from alltoall.routes.layers.keep import keep_layers
from alltoall.routes.renew import renew_routes
from alltoall.settings import RouteSettings
from alltoall.topologies.failures import Failure, failures_of

Item = tuple[Routes, Failure, RouteSettings, bool]
"""Healthy routes, what fails, what is asked for, and whether a file of all routes is."""


def survive(routes: Routes, what: str, settings: RouteSettings) -> Survival:
    """Renew routes for every failure; leave a file of each in a folder, if one is given.

    Those renewed when the time limit comes are kept.
    """
    folder = settings.switch_over
    failures = failures_of(routes.problem.topology, what)
    if folder is not None and not settings.whole:
        write_artefact(folder / HEALTHY_FILE, routes)
    items = ((routes, each, _for_one_failure(settings), settings.whole) for each in failures)
    found = run_all(_renewed, items, len(failures), settings.solve, Local.ONE_BY_ONE, "failures")
    suffix = ".npz" if settings.whole else ".json"
    survivors = tuple(kept(until_late(found), folder, suffix))
    return Survival(routes.time, survivors, len(failures) - len(survivors))


def _for_one_failure(settings: RouteSettings) -> RouteSettings:
    return RouteSettings(
        layers=settings.layers,
        max_layers=settings.max_layers,
        solve=for_one_failure(settings.solve),
    )


def _renewed(item: Item) -> Survivor:
    """Renew routes after one failure; those of a pair that is cut off do not exist."""
    routes, failure, settings, whole = item
    try:
        found = renew_routes(failure.left_of(routes.problem), routes, settings.solve)
    except InputError:
        return Survivor(failure, np.inf)
    links = failure.numbers_of_links(routes.problem.topology)
    nodes = np.array(failure.nodes, dtype=np.int64)
    renewed = _layered(found.routes, routes, links, nodes, settings)
    check_routes(renewed)
    if whole:
        file = file_bytes(Path("routes.npz"), renewed, False)
    else:
        file = json_text(switch_over_to_json(routes, renewed, links, nodes)).encode()
    return Survivor(failure, renewed.time, renewed.bound, found.unserved, found.moved, file)


def _layered(
    renewed: Routes, healthy: Routes, links: Ints, nodes: Ints, settings: RouteSettings
) -> Routes:
    """Return routes with layers, those of the healthy ones wherever that takes no more of them."""
    if settings.layers is None:
        return renewed
    most = min(healthy.layers or 0, settings.max_layers or np.inf)
    if healthy.layer is not None:
        last = _last_layers(renewed, healthy, links, nodes)
        stayed = keep_layers(renewed, last, settings.solve)
        if (stayed.layers or 0) <= most:
            return stayed
    return layers_in_time(renewed, settings.layers, settings.max_layers, settings.solve)[0]


def _last_layers(renewed: Routes, healthy: Routes, links: Ints, nodes: Ints) -> Ints:
    """Return the healthy layer of each route that has not moved, and NOTHING for one that has."""
    before, now = healthy.problem.topology, renewed.problem.topology
    node, link = numbers_left(before, links, nodes)
    source, destination = (
        before.position[node[now.terminals[each]]] for each in (renewed.source, renewed.destination)
    )
    left = Paths(source, destination, renewed.start, link[renewed.link])
    _, same = Paths.join([healthy, left]).equal()
    layer = np.full(int(same.max()) + 1, NOTHING, dtype=np.int64)
    layer[same[: healthy.count]] = NOTHING if healthy.layer is None else healthy.layer
    return layer[same[healthy.count :]]
