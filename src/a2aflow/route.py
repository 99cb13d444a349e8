"""Every routing method, ours and the baselines, behind one signature in one dict."""

from collections.abc import Callable
from dataclasses import replace

from a2aflow.baselines import BASELINES
from a2aflow.errors import UsageError
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.ir.units import normal_units
from a2aflow.solve.extract import route_extp
from a2aflow.solve.master import solve_master
from a2aflow.solve.path_mcf import route_pmcf
from a2aflow.solve.route_settings import RouteSettings
from a2aflow.solve.single import route_few, route_single

Router = Callable[[Problem, RouteSettings], Routes]

ROUTERS: dict[str, Router] = {
    "extp": route_extp,
    "pmcf": route_pmcf,
    "single": route_single,
    "few": route_few,
    **BASELINES,
}

CERTIFIED = ("extp", "single", "few")
"""Methods that solve the master program themselves; their certificate is the best there is."""


def route(problem: Problem, method: str = "extp", settings: RouteSettings | None = None) -> Routes:
    """Return routes by a method, with the best certificate that can be had.

    A method that proves little or nothing itself gets the certificate of the master program, so
    that every gap is measured against the same bound.
    """
    if method not in ROUTERS:
        raise UsageError(f"unknown method {method!r}; expected one of {', '.join(ROUTERS)}")
    units = normal_units(problem)
    return units.restored(_certified(units.problem, method, settings or RouteSettings()))


def _certified(problem: Problem, method: str, settings: RouteSettings) -> Routes:
    """Return routes of a problem in normal units, with the best certificate."""
    routes = ROUTERS[method](problem, settings)
    proven = method in CERTIFIED or routes.gap <= settings.solve.gap
    if proven or settings.solve.out_of_time():
        return routes
    certificate = solve_master(problem, settings.solve).certificate
    if certificate.bound > routes.bound:
        routes = replace(routes, certificate=certificate)
    return routes
