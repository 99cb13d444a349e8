"""Every routing method, ours and the baselines, behind one signature in one dict."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.flows.methods import solve_master
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.units import normal_units
from alltoall.paths.candidates import candidate_paths
from alltoall.paths.shortest import shortest_distances
from alltoall.registry import Registry, returned
from alltoall.routes.baselines import BASELINES
from alltoall.routes.baselines.tables import route_sssp
from alltoall.routes.whole_chunks import exact_weights, fewest_chunks
from alltoall.settings import RouteSettings

Router = Callable[[Problem, RouteSettings], Routes]


ROUTERS: Registry[Router] = Registry(
    "method",
    "alltoall.methods",
    {
        "extp": "alltoall.routes.weights:route_extp",
        "pmcf": "alltoall.routes.pmcf:route_pmcf",
        "single": "alltoall.routes.single:route_single",
        "few": "alltoall.routes.single:route_few",
        "deadlock-free": "alltoall.routes.deadlock_free.best:route_deadlock_free",
        "robust": "alltoall.routes.robust:route_robust",
        **BASELINES,
    },
    lambda _, function: function if returned(function) == Routes.__name__ else None,
)
"""All methods by name; others are added by `alltoall.register_method`."""

CERTIFYING_METHODS = ("extp", "single", "few", "deadlock-free")
"""Methods that solve the master program themselves and have the sharpest certificate."""

SEARCHING_METHODS = ("extp", "pmcf", "single", "few", "fptas", "ilp-disjoint", "ilp-shortest")
"""Methods that search: cut short, they may be worse than shortest routes."""

HOP_BYTES = 100
"""Memory of a link of a route until routes are made, layered, checked and saved."""

MOST_ROUTE_BYTES = 8 << 30
"""Memory beyond which routes are refused rather than made."""

SPLITTING_METHODS = ("extp", "pmcf", "deadlock-free", "robust", "few", "dor", "ewsp", "fptas")
"""Methods that may give a pair several routes; the others give it one."""

USED_BY: dict[str, tuple[str, ...]] = {
    "paths": ("pmcf",),
    "slack": ("pmcf",),
    "k": ("pmcf",),
    "max_routes": tuple(
        each for each in SPLITTING_METHODS if each not in ("deadlock-free", "robust")
    ),
    "loss": ("few",),
    "epsilon": ("fptas",),
    "published": ("fptas",),
    "raw": ("extp",),
    "shape": ("dor",),
    "chunks": SPLITTING_METHODS,
    "robust": ("robust",),
    "layer_change": ("deadlock-free",),
    "destination_based": ("single", "deadlock-free", "sssp", "ecmp", "updown"),
    "layers": tuple(each for each in ROUTERS.known if each != "deadlock-free"),
    "cluster": ("extp", "deadlock-free"),
}
"""The methods that use each setting; settings not listed are used by all.

Registered methods receive all settings."""


def route(
    problem: Problem,
    method: str = "extp",
    settings: RouteSettings | None = None,
    prove: bool = True,
) -> Routes:
    """Return routes by a method, with exact weights and the best available certificate.

    A method without a sharp certificate gets that of the master program, so that every gap is
    measured against the same bound; without `prove` it keeps its own. If a method has no routes
    within the time limit, or worse ones, the result is that of `sssp`, with a note: it takes a
    fraction of a second.
    """
    if method not in ROUTERS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(ROUTERS)}")
    settings = settings or RouteSettings()
    _require_memory(problem)
    units = normal_units(problem)
    routes = _best_in_time(units.problem, method, settings)
    proven = method in CERTIFYING_METHODS or routes.gap <= settings.solve.gap
    if prove and not proven and not settings.solve.out_of_time():
        certificate = solve_master(units.problem, settings.solve).certificate
        best = max(routes.certificate, certificate, key=lambda each: each.bound)
        routes = replace(routes, certificate=best)
    return units.restored(_exact(routes, settings))


def route_status(routes: Routes, settings: RouteSettings) -> Status:
    """Return the status of routes against their certified bound."""
    late = Status.TIME_LIMIT if settings.solve.out_of_time() else Status.GAP_NOT_REACHED
    otherwise = Status.INTERRUPTED if settings.solve.stopped() else late
    return Status.of_gap(routes.gap, settings.solve.gap, otherwise)


def _exact(routes: Routes, settings: RouteSettings) -> Routes:
    """Return the routes with rational weights, with small denominators where possible.

    Equally good routes may replace others: any for extp and pmcf's columns, those of the path set
    for other pmcf, and the layered ones found for deadlock-free.
    """
    if routes.method == "extp" or (routes.method == "pmcf" and settings.paths == "columns"):
        return fewest_chunks(routes, settings, anywhere=True)
    if routes.method == "pmcf":
        return fewest_chunks(routes, settings, lambda: candidate_paths(routes.problem, settings))
    if routes.method == "deadlock-free":
        return fewest_chunks(routes, settings)
    return exact_weights(routes)


def _best_in_time(problem: Problem, method: str, settings: RouteSettings) -> Routes:
    """Return the routes of a method; if its search is cut short, those of `sssp` if better."""
    try:
        routes = ROUTERS[method](problem, settings)
        if method not in SEARCHING_METHODS or not settings.solve.out_of_time():
            return routes
    except TimeoutError:
        return route_sssp(problem, settings)
    return min(routes, route_sssp(problem, settings), key=lambda each: each.time)


def _require_memory(problem: Problem) -> None:
    """Raise, before any route is made, if one shortest route per pair would not fit in memory."""
    topology, terminals = problem.topology, problem.topology.terminals
    first = terminals[problem.sources[:1]]
    hops = shortest_distances(topology, np.ones(topology.links), first)[0][terminals]
    count = len(problem.sources) * len(terminals)
    needed = HOP_BYTES * count * float(hops[np.isfinite(hops)].mean())
    if needed > MOST_ROUTE_BYTES:
        raise InputError(
            f"{topology.name}: routes of {count:,} pairs need about {needed / 2**30:.1f} GiB; "
            f"expected at most {MOST_ROUTE_BYTES / 2**30:g} GiB. Use a smaller topology, or "
            "`solve`, which lists no routes"
        )
