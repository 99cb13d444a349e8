"""Registration of methods and targets, as `topologies.families` does for topologies.

An installed package can register them by entry points in the groups `alltoall.methods` and
`alltoall.targets`.
"""

import reprlib
from collections.abc import Callable
from typing import Any

from alltoall.errors import UsageError
from alltoall.flows import METHODS
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.lowering import TARGETS, Target
from alltoall.registry import Registry, returned
from alltoall.routes import ROUTERS
from alltoall.settings import RouteSettings, SolveSettings


def register_method(
    name: str,
    method: Callable[[Problem, SolveSettings], Flow] | Callable[[Problem, RouteSettings], Routes],
) -> None:
    """Add a method of `solve` or `route`, according to its return annotation.

    The method receives the problem in normal units, with capacities and demands of about 1, and all
    settings. Its answer is checked before it is returned.

    >>> import alltoall
    >>> from alltoall.routes.baselines.tables import route_ecmp
    >>> from alltoall.settings import RouteSettings
    >>> def plain(problem: alltoall.Problem, settings: RouteSettings) -> alltoall.Routes:
    ...     return route_ecmp(problem, settings)
    >>> alltoall.register_method("plain", plain)
    >>> alltoall.route("ring:4", method="plain").count
    12
    """
    tables: dict[str | None, Registry[Any]] = {"Flow": METHODS, "Routes": ROUTERS}
    kind = returned(method)
    if kind not in tables:
        raise UsageError(
            f"method {name!r} is {reprlib.repr(method)}; expected a function of a Problem and "
            "SolveSettings annotated to return a Flow, or of a Problem and RouteSettings annotated "
            "to return Routes"
        )
    if any(name in table for table in tables.values()):
        raise UsageError(f"method {name!r} exists already; register it by another name")
    tables[kind].register(name, method)


def register_target(name: str, target: Target) -> None:
    """Add a target of `lower`: a `Target` says whether it takes a `Schedule` or `Routes`.

    Its reader parses each emitted file back, and the result is checked, so the reader must be as
    strict as the real consumer. Without a reader (`read=None`) only the schedule or routes are
    checked.

    >>> import alltoall
    >>> alltoall.register_target("msccl", alltoall.lowering.TARGETS["msccl"])
    Traceback (most recent call last):
    alltoall.errors.UsageError: target 'msccl' exists already; register it by another name
    """
    TARGETS.register(name, target)
