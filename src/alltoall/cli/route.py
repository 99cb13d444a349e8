"""`alltoall route`: weighted or single routes, with deadlock-free layers."""

from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import (
    Asked,
    Background,
    DemandFile,
    GroupFile,
    Groups,
    JobsFile,
    Robust,
    given_options,
    load_problem,
    sides_of,
)
from alltoall.cli.shared_options import takes_options
from alltoall.cli.telling import Telling
from alltoall.ir.topology import Topology
from alltoall.routes import ROUTERS
from alltoall.routes.deadlock_free.best import DEFAULT_LAYERS, METHOD
from alltoall.routes.layers.assign import LAYERINGS
from alltoall.routes.public import deadlock_free_means, refuse_unused
from alltoall.routes.robust import METHOD as ROBUST
from alltoall.routes.search import find_routes
from alltoall.settings import PATH_SETS, RouteSettings

DEFAULTS = RouteSettings()


@takes_options()
def route_verb(
    topology: Topology,
    context: typer.Context,
    asked: Asked,
    telling: Telling,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(ROUTERS.known)}.")] = "extp",
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
    ] = DEFAULTS.layers,
    chunks: Annotated[
        int | None, typer.Option(metavar="C", help="Make weights multiples of 1/C of a shard.")
    ] = None,
    phases: Annotated[
        int | None,
        typer.Option(metavar="K", help="Report the split into K phases (0: as many as possible)."),
    ] = None,
    phase_loss: Annotated[
        float, typer.Option(help="What the phases may cost.")
    ] = DEFAULTS.phase_loss,
    max_layers: Annotated[
        int | None,
        typer.Option(metavar="L", help=f"Most virtual layers; {DEFAULT_LAYERS} for {METHOD}."),
    ] = None,
    deadlock_free: Annotated[
        int | None,
        typer.Option(metavar="L", help=f"Short for --method {METHOD} --max-layers L."),
    ] = None,
    layer_change: Annotated[
        bool,
        typer.Option("--layer-change", help=f"Let routes of {METHOD} change layer on the way."),
    ] = False,
    destination_based: Annotated[
        bool,
        typer.Option("--destination-based", help="One next link per node and destination."),
    ] = False,
    robust: Robust = None,
    last: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Begin with saved routes, of this problem before links or nodes failed: all of "
            "them may move, and most do not.",
        ),
    ] = None,
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    jobs: JobsFile = None,
    background: Background = None,
) -> None:
    """Compute routes for fabrics whose NICs forward, and layers that keep them from deadlock.

    The time is the largest link load of the routes over its capacity, in shards; routes are
    checked before they are shown, layers included. An option that means nothing to the method is
    refused. After a failure, `route SPEC --remove-link 3-4 --from FILE` says what the last routes
    lose and finds new ones from there, by the method of the last; `alltoall failures` does so
    before anything fails.

    Example: alltoall route genkautz:n=64,d=4 --method single --output routes.json
    """
    given = given_options(context)
    if deadlock_free is not None:
        method, max_layers = deadlock_free_means(deadlock_free, given)
    if robust:
        method = given.get("method", ROBUST)
    refuse_unused(method, given)
    problem = load_problem(topology, demand, groups, group_file, jobs, background)
    with asked.search() as solving:
        settings = RouteSettings(
            paths=paths,
            slack=slack,
            k=k,
            max_routes=max_routes,
            loss=loss,
            epsilon=epsilon,
            max_layers=max_layers,
            layer_change=layer_change,
            destination_based=destination_based,
            shape=sides_of(shape) if shape is not None else None,
            chunks=chunks,
            layers=layers,
            phases=phases,
            phase_loss=phase_loss,
            robust=tuple(robust) if robust else None,
            solve=solving,
        )
        found = find_routes(problem, method, settings, last)
    telling.tell(found.routes, found.summary(), solving)
