"""`alltoall schedule`: a time-stepped chunk schedule."""

from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.options import (
    Asked,
    Background,
    DemandFile,
    GroupFile,
    Groups,
    JobsFile,
    Robust,
    load_problem,
)
from alltoall.cli.shared_options import takes_options
from alltoall.cli.show import columns, show
from alltoall.cli.telling import Telling, parse_cost
from alltoall.errors import UsageError
from alltoall.ir.topology import Topology
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.methods import find_schedule, require_method, sweep_schedules
from alltoall.schedules.placed import ListParams
from alltoall.settings import USUAL_MOST_CHUNKS, ScheduleSettings

DEFAULTS = ScheduleSettings()


@takes_options("cluster")
def schedule_verb(
    topology: Topology,
    asked: Asked,
    telling: Telling,
    method: Annotated[
        str,
        typer.Option(
            help="tsmcf, the program in steps; list, routes and an order; the baseline sccl: least "
            "steps by SMT, small cases only; or auto, by size."
        ),
    ] = "auto",
    steps: Annotated[
        int | None, typer.Option(help="Most steps; the best number if left out.")
    ] = None,
    latency: Annotated[
        Any,
        typer.Option(
            metavar="ALPHA",
            help="Cost of a step: a time such as 2us, or a number of shard times.",
            parser=parse_cost,
        ),
    ] = DEFAULTS.latency,
    step_tolerance: Annotated[
        float, typer.Option(help="Share by which a further step must lower the time.")
    ] = DEFAULTS.step_tolerance,
    chunks: Annotated[
        int | None, typer.Option(help="Chunks per shard; the fewest that do if left out.")
    ] = None,
    max_chunks: Annotated[
        int | None,
        typer.Option(
            help=f"Most chunks to try per shard of mean size; {USUAL_MOST_CHUNKS} if left out, or "
            f"up to {ListParams.most_in_rounds} where few pairs send."
        ),
    ] = DEFAULTS.max_chunks,
    loss: Annotated[
        float, typer.Option(help="How much longer than the fractional optimum it may take.")
    ] = DEFAULTS.loss,
    operation_cost: Annotated[
        Any,
        typer.Option(
            metavar="BETA",
            help="Cost of a message to the rank that sends or receives it, as of a step; above 0 "
            "fewer relays, steps and chunks are weighed too, and the trade-off is printed.",
            parser=parse_cost,
        ),
    ] = DEFAULTS.operation_cost,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Print time against steps, and loss against chunks, only."),
    ] = False,
    robust: Robust = None,
    last: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Begin with a saved schedule, of this problem before links or nodes failed: all "
            "chunks may move, and most do not.",
        ),
    ] = None,
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    jobs: JobsFile = None,
    background: Background = None,
) -> None:
    """Compute which chunk crosses which link in which step, for fabrics where hosts forward.

    The time is the sum over the steps of the largest link load, in shards; the schedule is checked
    before it is shown. The fractional time is that of the linear program with as many steps. After
    a failure, `schedule SPEC --remove-link 3-4 --from FILE` says what the last schedule loses and
    finds a new one from its paths, with as many chunks per shard.

    Example: alltoall schedule torus:3x3x3 --host-bandwidth 4 --output torus.schedule.json
    """
    require_method(method)
    latency = telling.shard_times("--latency", latency)
    operation_cost = telling.shard_times("--operation-cost", operation_cost)
    if sweep and last is not None:
        raise UsageError("--sweep with --from, which has its chunks; leave one of them out")
    if sweep and telling.output is not None:
        raise UsageError(
            "--sweep with --output: a sweep leaves no schedule to save; leave one of them out, or "
            "print its curves with --json"
        )
    problem = load_problem(topology, demand, groups, group_file, jobs, background)
    with asked.search() as solving:
        settings = ScheduleSettings(
            steps,
            chunks,
            latency,
            step_tolerance,
            loss,
            max_chunks,
            robust=tuple(robust) if robust else None,
            solve=solving,
            operation_cost=operation_cost,
        )
        if sweep:
            curves = sweep_schedules(problem, settings, method).summary()
        else:
            found = find_schedule(problem, method, settings, last)
    if sweep:
        show(curves, telling.as_json, _sweep_lines(curves))
        return
    telling.tell(found.schedule, found.summary(), solving, _cost_of_a_step(found, latency))


def _cost_of_a_step(found: FoundSchedule, latency: float) -> float:
    """Return what a step costs besides its time, with a share of what all messages cost."""
    chosen = next((each for each in found.tradeoff if each.chosen), None)
    return latency if chosen is None else (chosen.total - chosen.time) / chosen.steps


def _sweep_lines(curves: dict[str, Any]) -> dict[str, str]:
    bound = curves["bound"]
    times = [
        (str(each["steps"]), f"{each['time']:.6g}", f"{max(0.0, each['time'] / bound - 1):.2%}")
        for each in curves["by_steps"]
    ]
    losses = [
        (str(each["chunks_per_shard"]), f"{each['loss']:.3%}") for each in curves["by_chunks"]
    ]
    return {
        "topology": curves["topology"],
        "bound": f"{bound:.9g}, certified",
        "steps": "\n".join(columns([("T", "time", "above the bound"), *times])),
        "chunks": "\n".join(columns([("C", f"loss with {curves['steps']} steps"), *losses])),
    }
