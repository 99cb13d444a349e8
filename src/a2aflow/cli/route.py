"""`a2aflow route`: weighted or single routes, with deadlock-free layers."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from a2aflow.check.routes import check_routes
from a2aflow.cli.compiling import clock
from a2aflow.cli.options import (
    AsJson,
    Cluster,
    DemandFile,
    Gap,
    GroupFile,
    Groups,
    Output,
    SolverName,
    TimeLimit,
    UseSymmetry,
    Workers,
    given_options,
    how_ended,
    in_words,
    load_problem,
    sides_of,
    takes_topology,
)
from a2aflow.cli.show import deliver, line_of, progress, require_room
from a2aflow.cli.signals import searching
from a2aflow.errors import UsageError
from a2aflow.ir.files.artefacts import file_bytes
from a2aflow.ir.flow import Status
from a2aflow.ir.routes import Routes
from a2aflow.ir.topology import Topology
from a2aflow.routes import ROUTERS, USED_BY, route, route_status
from a2aflow.routes.deadlock_free.best import LAYERS, METHOD
from a2aflow.routes.exact import MOST_CHUNKS, common_factor_chunks
from a2aflow.routes.layers.assign import LAYERINGS, layers_in_time
from a2aflow.routes.phases import split_phases
from a2aflow.routes.whole_chunks import bounded_chunks, limit_routes
from a2aflow.settings import PATH_SETS, RouteSettings, SolveSettings

DEFAULTS = RouteSettings()

ROUTING = 0.6
"""The share of a time limit for routes that layers follow."""

NEEDS: dict[str, tuple[str, str | None]] = {
    "slack": ("paths", "bounded"),
    "k": ("paths", "k-shortest"),
    "phase_loss": ("phases", None),
}
"""Options that mean something only with another one: its name, and its value if one only."""


@takes_topology
def route_verb(
    topology: Topology,
    context: typer.Context,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(ROUTERS)}.")] = "extp",
    paths: Annotated[
        str, typer.Option(help=f"Paths that pmcf chooses from: {', '.join(PATH_SETS)}.")
    ] = DEFAULTS.paths,
    slack: Annotated[
        int, typer.Option(help="Extra hops of bounded paths over the shortest.")
    ] = DEFAULTS.slack,
    k: Annotated[int, typer.Option(help="How many k-shortest paths.")] = DEFAULTS.k,
    max_routes: Annotated[
        int | None, typer.Option(metavar="K", help="Most routes per pair; re-optimised.")
    ] = None,
    loss: Annotated[
        float, typer.Option(help="What few may lose against the certified bound.")
    ] = DEFAULTS.loss,
    epsilon: Annotated[float, typer.Option(help="Accuracy of fptas.")] = DEFAULTS.epsilon,
    shape: Annotated[
        str | None,
        typer.Option(
            metavar="AxBxC", help="Sides of the grid of dor, numbered row by row; else it is found."
        ),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(metavar="ALGORITHM", help=f"Assign layers: {', '.join(LAYERINGS)}."),
    ] = "lash-sequential",
    chunks: Annotated[
        int | None, typer.Option(metavar="C", help="Make weights multiples of 1/C of a shard.")
    ] = None,
    phases: Annotated[
        int | None,
        typer.Option(metavar="K", help="Report the split into K phases (0: as many as possible)."),
    ] = None,
    phase_loss: Annotated[float, typer.Option(help="What the phases may cost.")] = 0.05,
    max_layers: Annotated[
        int | None,
        typer.Option(metavar="L", help=f"Most virtual layers; {LAYERS} for {METHOD}."),
    ] = None,
    deadlock_free: Annotated[
        int | None,
        typer.Option(metavar="L", help=f"Short for --method {METHOD} --max-layers L."),
    ] = None,
    solver: SolverName = "auto",
    gap: Gap = DEFAULTS.solve.gap,
    time_limit: TimeLimit = None,
    workers: Workers = DEFAULTS.solve.workers,
    symmetry: UseSymmetry = True,
    cluster: Cluster = None,
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Compute routes for fabrics whose NICs forward, and layers that keep them from deadlock.

    The time is the largest link load of the routes over its capacity, in shards; routes are
    checked before they are shown, layers included. An option that means nothing to the method is
    refused.

    Example: a2aflow route genkautz:n=64,d=4 --method single --output routes.json
    """
    started = clock()
    require_room(as_json, output)
    given = given_options(context)
    if deadlock_free is not None:
        method, max_layers = _deadlock_free(deadlock_free, given)
    _refuse_unused(method, given)
    problem = load_problem(topology, demand, groups, group_file)
    with progress() as report, searching() as stopped:
        solving = SolveSettings(
            gap,
            solver,
            time_limit,
            workers,
            report,
            cluster=cluster,
            symmetry=symmetry,
            stopped=stopped,
        ).begin()
        notes: tuple[str, ...] = ()
        settings = RouteSettings(
            paths, slack, k, max_routes, loss, epsilon, max_layers=max_layers, solve=solving
        )
        if shape is not None:
            settings = replace(settings, shape=sides_of(shape))
        share = 1.0 if layers is None or method == METHOD else ROUTING
        routes = route(problem, method, replace(settings, solve=solving.sharing(share)))
        if max_routes is not None:
            routes = limit_routes(routes, max_routes, settings)
        if chunks is not None:
            routes = bounded_chunks(routes, chunks, settings)
        if routes.layer is None and layers is not None:
            routes, notes = layers_in_time(routes, layers, max_layers, solving)
        check_routes(routes)
        split = None
        if phases is not None:
            split = split_phases(routes, phases or None, phase_loss, solving.out_of_time)
    summary = _summary(routes, how_ended(route_status(routes, settings)), clock() - started)
    summary["notes"] += notes
    if split is not None:
        summary["phases"] = split.summary()
    files = {output: partial(file_bytes, output, routes)}
    deliver(summary, as_json, _lines(summary, routes), files)


def _deadlock_free(layers: int, given: dict[str, Any]) -> tuple[str, int]:
    """Return the method and the layers that --deadlock-free stands for, if nothing contradicts."""
    for name, expected in (("method", METHOD), ("max_layers", layers)):
        if given.get(name, expected) != expected:
            raise UsageError(
                f"--deadlock-free {layers} with {_flag(name)} {given[name]}; it is short for "
                f"--method {METHOD} --max-layers {layers}, so leave one of them out"
            )
    return METHOD, layers


def _refuse_unused(method: str, given: dict[str, Any]) -> None:
    """Refuse what was asked for on the command line and means nothing to the method."""
    for name in given:
        users = USED_BY.get(name, (method,))
        if method in ROUTERS and method not in users:
            raise UsageError(
                f"{_flag(name)} with --method {method}, which does not use it; leave it out, or "
                f"use it with {', '.join(users)}"
            )
        other, value = NEEDS.get(name, (name, None))
        if other not in given or value not in (None, given[other]):
            raise UsageError(
                f"{_flag(name)} without {_flag(other)}{f' {value}' if value else ''}, "
                "which it belongs to; leave it out, or add that"
            )


def _flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def _summary(routes: Routes, status: Status, seconds: float) -> dict[str, Any]:
    topology = routes.problem.topology
    return {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "time": routes.time,
        "bound": routes.bound,
        "gap": routes.gap,
        "routes": routes.count,
        "max_routes_per_pair": int(routes.routes_per_pair().max()),
        "layers": routes.layers,
        "common_factor_chunks": common_factor_chunks(routes),
        "method": routes.method,
        "status": status.value,
        "seconds": round(seconds, 3),
        "notes": list(topology.notes),
    }


def _lines(summary: dict[str, Any], routes: Routes) -> dict[str, str]:
    topology = routes.problem.topology
    lines = {
        "topology": f"{topology.name}: {summary['terminals']} terminals, {topology.nodes} nodes, "
        f"{topology.links} links",
        "time": f"{routes.time:.9g}, verified",
        "bound": f"{routes.bound:.9g}, certified",
        "gap": f"{max(0.0, routes.gap):.2e} ({in_words(summary['status'])})",
        "routes": f"{routes.count}, at most {summary['max_routes_per_pair']} per pair",
        "layers": "not assigned" if routes.layers is None else str(routes.layers),
        "chunks": f"{summary['common_factor_chunks']} by common factor"
        if summary["common_factor_chunks"]
        else f"no common factor up to {MOST_CHUNKS}; --chunks C makes one",
    }
    if summary["notes"]:
        lines["notes"] = "\n".join(summary["notes"])
    if "phases" in summary:
        lines["phases"] = ", ".join(
            f"{key} {line_of(value)}" for key, value in summary["phases"].items()
        )
    lines["method"] = f"{routes.method}, {summary['seconds']:.2f} s"
    return lines
