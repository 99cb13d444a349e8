"""`alltoall.route`: routes for fabrics whose NICs forward."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any

from alltoall.errors import UsageError
from alltoall.ir.answer import made_now
from alltoall.ir.routes import Routes
from alltoall.lp.settings import never, silent
from alltoall.routes import ROUTERS, USED_BY
from alltoall.routes.deadlock_free.best import METHOD
from alltoall.routes.robust import METHOD as ROBUST
from alltoall.routes.search import find_routes
from alltoall.settings import RouteSettings, SolveSettings, cores
from alltoall.topologies.background import GivenBackground
from alltoall.topologies.given import Given, GivenDemand, GivenGroups, GivenJobs, problem_of

NEEDS: dict[str, tuple[str, str | None]] = {
    "slack": ("paths", "bounded"),
    "k": ("paths", "k-shortest"),
    "phase_loss": ("phases", None),
}
"""Options that mean something only with another one: its name, and its value if one only."""

Spelling = Callable[[str], str]
"""How the caller spells the name of an option."""


def as_flag(name: str) -> str:
    """Spell the name of an option as on the command line."""
    return "--" + name.replace("_", "-")


def refuse_unused(method: str, given: Mapping[str, Any], spelled: Spelling = as_flag) -> None:
    """Refuse what was asked for and means nothing to the method, or nothing without another."""
    if "last" in given and "method" in given:
        raise UsageError(
            f"{spelled('method')} {given['method']} with routes to begin with, which have a method "
            "of their own; leave one of them out"
        )
    for name in given:
        users = USED_BY.get(name, (method,))
        if method in ROUTERS.known and method not in users:
            raise UsageError(
                f"{spelled(name)} with {spelled('method')} {method}, which does not use it; leave "
                f"it out, or use it with {', '.join(users)}"
            )
        other, value = NEEDS.get(name, (name, None))
        if other not in given or value not in (None, given[other]):
            raise UsageError(
                f"{spelled(name)} without {spelled(other)}{f' {value}' if value else ''}, "
                "which it belongs to; leave it out, or add that"
            )


def deadlock_free_means(
    layers: int, given: Mapping[str, Any], spelled: Spelling = as_flag
) -> tuple[str, int]:
    """Return the method and the layers that `deadlock_free` stands for, if nothing contradicts."""
    for name, expected in (("method", METHOD), ("max_layers", layers)):
        if given.get(name, expected) != expected:
            raise UsageError(
                f"{spelled('deadlock_free')} {layers} with {spelled(name)} {given[name]}; it is "
                f"short for {spelled('method')} {METHOD} {spelled('max_layers')} {layers}, so "
                "leave one of them out"
            )
    return METHOD, layers


def route(
    given: Given,
    *,
    demand: GivenDemand = None,
    groups: GivenGroups = None,
    jobs: GivenJobs = None,
    background: GivenBackground = None,
    host_bandwidth: float | None = None,
    method: str = "extp",
    paths: str = "disjoint",
    slack: int = 1,
    k: int = 8,
    max_routes: int | None = None,
    loss: float = 0.01,
    epsilon: float = 0.05,
    shape: tuple[int, ...] | None = None,
    layers: str | None = "lash-sequential",
    max_layers: int | None = None,
    deadlock_free: int | None = None,
    layer_change: bool = False,
    destination_based: bool = False,
    robust: Sequence[str] | None = None,
    last: Routes | str | PathLike[str] | None = None,
    chunks: int | None = None,
    seed: int = 0,
    solver: str = "auto",
    gap: float = 1e-6,
    time_limit: float | None = None,
    workers: int | None = None,
    symmetry: bool = True,
    cluster: str | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Routes:
    """Return routes, checked, with layers that keep them from deadlock.

    Their `time` is the largest link load over its capacity, in shards; `bound` and `gap` are as for
    a flow. `alltoall.find_routes` does the same from settings, and also tells how it ended, and
    splits routes into phases.

    Args:
        given: a SPEC, the path of a file, a networkx graph, a `Topology`, a `Problem`, or an answer
            to one.
        demand: as for `solve`; uniform if left out.
        groups: all-to-all only within groups of terminals, each by name or number, or a file of
            them with one a line; in the place of a demand.
        jobs: jobs that share the fabric, or the path of a file of them; in the place of a demand.
            The sum of their demands, each by its weight, is routed.
        background: what others use of the links, taken away from them: a rate of each, a flow or
            routes at full speed, or the path of a file of `tail,head,rate`, a flow or routes;
            `"FILE@0.5"` is half of that.
        host_bandwidth: make all that passes a node pass its host, at so many units of one link.
        method: a name in `alltoall.routes.ROUTERS`, ours and the baselines.
        paths: the paths that `pmcf` chooses from, one of `alltoall.settings.PATH_SETS`.
        slack: how many hops `bounded` paths may be longer than a shortest one.
        k: how many `k-shortest` paths.
        max_routes: most routes of a pair; weights are optimised anew.
        loss: what `few` may lose against the certified bound.
        epsilon: the accuracy of `fptas`.
        shape: the sides of the grid of `dor`, numbered row by row; found if left out.
        layers: the algorithm that assigns virtual layers, or None for no layers.
        max_layers: most virtual layers.
        deadlock_free: short for `method="deadlock-free"` with so many `max_layers`.
        layer_change: let deadlock-free routes change layer on the way, for fabrics that can.
        destination_based: one next link per node and destination, as switches with tables by
            destination have; `sssp` and `native` have no other. With `"deadlock-free"`, one layer
            is enough.
        robust: short for `method="robust"`, against these demands: names of families, `"skew"`,
            `"pairs"`, `"destinations"` or `"hose"`, or files of demands.
        last: routes, or the path of some, to begin with: of this problem before links or nodes
            failed; the method is then theirs.
        chunks: make weights whole multiples of one over this of a shard.
        seed: of what a method chooses at random.
        solver: `"auto"`, or a solver of linear programs.
        gap: the certified gap to aim for.
        time_limit: seconds after which the best routes so far are returned.
        workers: threads and processes to use; as many as there are cores if left out.
        symmetry: let one source stand for all that are symmetric to it.
        cluster: the address of a Dask scheduler, which you trust, for the work per source.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    What would mean nothing to the method is refused.

    >>> import alltoall
    >>> routes = alltoall.route("torus:3x3", method="single")
    >>> round(routes.time, 6), routes.count, routes.layers
    (3.0, 72, 1)

    """
    asked = _given(locals())
    if deadlock_free is not None:
        method, max_layers = deadlock_free_means(deadlock_free, asked, _spelled)
    if robust is not None:
        method = asked.get("method", ROBUST)
    refuse_unused(method, asked, _spelled)
    solving = SolveSettings(
        gap=gap,
        solver=solver,
        time_limit=time_limit,
        workers=cores() if workers is None else workers,
        report=progress,
        cluster=cluster,
        symmetry=symmetry,
        stopped=stop,
    )
    settings = RouteSettings(
        paths=paths,
        slack=slack,
        k=k,
        max_routes=max_routes,
        loss=loss,
        epsilon=epsilon,
        seed=seed,
        max_layers=max_layers,
        layer_change=layer_change,
        destination_based=destination_based,
        shape=shape,
        chunks=chunks,
        layers=layers,
        robust=None if robust is None else tuple(robust),
        solve=solving,
    )
    problem = problem_of(given, demand, host_bandwidth, groups, jobs, background)
    settings = settings.begin()
    routes = find_routes(problem, method, settings, last).routes
    return made_now(routes, command="alltoall.route", seed=seed, **settings.solve.known())


def _given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `route` that are not what they are if left out."""
    parameters = inspect.signature(route).parameters
    return {
        key: value
        for key, value in arguments.items()
        if key not in ("given", "demand", "groups", "jobs", "background")
        and value != parameters[key].default
    }


def _spelled(name: str) -> str:
    return f"{name}="
