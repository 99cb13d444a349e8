"""`alltoall.route`: routes for fabrics whose NICs forward."""

from collections.abc import Callable, Iterable
from os import PathLike
from typing import Any

from alltoall.errors import UsageError
from alltoall.grammar import ROUTE, ROUTE_KEYS, read_words
from alltoall.ir.answer import made_now
from alltoall.ir.fabric import Rate
from alltoall.ir.routes import Routes
from alltoall.ir.summaries import shard_size
from alltoall.lp.settings import never, silent
from alltoall.routes import ROUTERS, USED_BY
from alltoall.routes.baselines.tables import shortest_path_reach
from alltoall.routes.search import find_routes
from alltoall.settings import RouteSettings, search_settings
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import Given, GivenDemand, problem_of
from alltoall.topologies.groups import GivenGroups

NEEDS = {"slack": "bounded", "k": "k-shortest"}
"""Settings of single path sets."""

LIMITS = {"max_routes": "--max-routes", "chunks": "--chunks", "layers": "layering="}
"""Limits on the routes of any method, as users write them."""

USUAL = "extp"
"""The method that `auto` stands for."""


def route(
    given: Given,
    method: str = "auto",
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    background: GivenBackground = None,
    link_bandwidth: Rate | None = None,
    bytes: str | int | None = None,
    max_routes: int | None = None,
    max_layers: int | None = None,
    chunks: int | None = None,
    from_: Routes | str | PathLike[str] | None = None,
    gap: float = 1e-6,
    time_limit: str | float | None = None,
    threads: int | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Routes:
    """Compute routes for fabrics whose NICs forward, with layers that rule out deadlock.

    Their `time` is the largest link load over its capacity, in shards; `bound` and `gap` are as for
    a flow. The routes are checked, layers included. After a failure, start from the last routes to
    move few of them.

    >>> import alltoall
    >>> routes = alltoall.route("genkautz:n=8,d=2", "single")
    >>> routes.time, routes.count, routes.layers
    (9.0, 56, 2)

    """
    name, words = read_words("method", method, ROUTE, ROUTE_KEYS)
    if from_ is not None and name != "auto":
        raise UsageError(
            f"method {name} with routes to begin with, which have a method of their own; leave one "
            "of them out"
        )
    name = USUAL if name == "auto" else name
    for key, paths in NEEDS.items():
        if key in words and words.get("paths") != paths:
            raise UsageError(f"method {method}: {key} without paths={paths}; add that, or leave it")
    limits: dict[str, Any] = {"max_routes": max_routes, "chunks": chunks}
    _refuse_unused(name, [key for key, value in limits.items() if value is not None])
    _refuse_unused(name, [key for key in words if key == "layers"])
    if max_layers is not None and words.setdefault("max_layers", max_layers) != max_layers:
        raise UsageError(f"at most {max_layers} layers with method {method}; leave one of them out")
    solving = search_settings(words, gap, time_limit, threads, progress, stop)
    settings = RouteSettings(solve=solving, **limits, **words)
    problem = problem_of(given, demand, groups, background, link_bandwidth)
    size = shard_size(problem, bytes)
    found = find_routes(problem, name, settings, from_)
    known = settings.solve.known()
    learnt = size | found.learnt() | shortest_path_reach(found.routes, settings.solve)
    return made_now(found.routes, learnt, command="alltoall.route", **known)


def _refuse_unused(method: str, limits: Iterable[str]) -> None:
    """Refuse limits on routes or chunks that a method does not use."""
    for name in limits:
        users = USED_BY.get(name, (method,))
        if method in ROUTERS.known and method not in users:
            raise UsageError(
                f"{LIMITS.get(name, name)} with method {method}, which does not use it; leave "
                f"it out, or use it with {', '.join(users)}"
            )
