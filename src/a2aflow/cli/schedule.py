"""`a2aflow schedule`: a time-stepped chunk schedule."""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any

import typer

from a2aflow.cli.compiling import clock
from a2aflow.cli.options import (
    AsJson,
    DemandFile,
    Gap,
    GroupFile,
    Groups,
    Output,
    SolverName,
    TimeLimit,
    UseSymmetry,
    Workers,
    how_ended,
    in_words,
    load_problem,
    takes_topology,
)
from a2aflow.cli.show import deliver, progress, require_room, show
from a2aflow.cli.signals import searching
from a2aflow.errors import UsageError
from a2aflow.flows import SolveSettings, solve
from a2aflow.flows.symmetry.translations import find_translations
from a2aflow.ir.files.artefacts import file_bytes
from a2aflow.ir.flow import Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.ir.units import normal_units
from a2aflow.schedules.sccl import synthesise
from a2aflow.schedules.search import (
    Found,
    chunk_curve,
    find_schedule,
    proven_status,
)
from a2aflow.schedules.steps import best_flow, timed_flows
from a2aflow.settings import ScheduleSettings
from a2aflow.topologies.parts import counted

DEFAULTS = ScheduleSettings()


@takes_topology
def schedule_verb(
    topology: Topology,
    method: Annotated[
        str, typer.Option(help="tsmcf, or the baseline sccl: least steps by SMT, small cases only.")
    ] = "tsmcf",
    steps: Annotated[
        int | None, typer.Option(help="Number of steps; the best one if left out.")
    ] = None,
    latency: Annotated[
        float, typer.Option(metavar="ALPHA", help="Cost of a step, in shard times.")
    ] = DEFAULTS.latency,
    step_tolerance: Annotated[
        float, typer.Option(help="Share by which a further step must lower the time.")
    ] = DEFAULTS.step_tolerance,
    chunks: Annotated[
        int | None, typer.Option(help="Chunks per shard; the fewest that do if left out.")
    ] = None,
    max_chunks: Annotated[
        int, typer.Option(help="Most chunks to try per shard of mean size.")
    ] = DEFAULTS.max_chunks,
    loss: Annotated[
        float, typer.Option(help="How much longer than the fractional optimum it may take.")
    ] = DEFAULTS.loss,
    sweep: Annotated[
        bool,
        typer.Option("--sweep", help="Print time against steps, and loss against chunks, only."),
    ] = False,
    solver: SolverName = "auto",
    gap: Gap = DEFAULTS.solve.gap,
    time_limit: TimeLimit = None,
    workers: Workers = DEFAULTS.solve.workers,
    symmetry: UseSymmetry = True,
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Compute which chunk crosses which link in which step, for fabrics where hosts forward.

    The time is the sum over the steps of the largest link load, in shards; the schedule is checked
    before it is shown. The fractional time is that of the linear program with as many steps.

    Example: a2aflow schedule torus:3x3x3 --host-bandwidth 4 --output torus.schedule.json
    """
    started = clock()
    require_room(as_json, output)
    problem = load_problem(topology, demand, groups, group_file)
    with progress() as report, searching() as stopped:
        solving = SolveSettings(
            gap, solver, time_limit, workers, report, symmetry=symmetry, stopped=stopped
        ).begin()
        settings = ScheduleSettings(
            steps, chunks, latency, step_tolerance, loss, max_chunks, solving
        )
        if method not in METHODS:
            raise UsageError(f"unknown method {method!r}; expected one of {', '.join(METHODS)}")
        if sweep:
            curves = _sweep(problem, settings)
        else:
            found = METHODS[method](problem, settings)
    if sweep:
        show(curves, as_json, _sweep_lines(curves))
        return
    found = replace(found, status=how_ended(found.status))
    summary = _summary(found, clock() - started)
    files = {output: partial(file_bytes, output, found.schedule)}
    deliver(summary, as_json, _lines(summary, found), files)


def _synthesise(problem: Problem, settings: ScheduleSettings) -> Found:
    """Return the schedule of the SCCL baseline, checked, with the certificate of the flow."""
    schedule = synthesise(problem, settings.chunks or 1, settings.steps, settings=settings.solve)
    certificate = solve(problem, "grouped", settings.solve).certificate
    schedule = replace(schedule, certificate=certificate)
    status = proven_status(schedule, Status.GAP_NOT_REACHED, settings.solve)
    curve = {schedule.chunks_per_shard: schedule.loss}
    return Found(schedule, curve, {}, status, certificate.bound)


METHODS = {"tsmcf": find_schedule, "sccl": _synthesise}


def _sweep(problem: Problem, settings: ScheduleSettings) -> dict[str, Any]:
    """Return time against steps, and for the best number of steps, loss against chunks."""
    units = normal_units(problem, demand=False)
    master = solve(units.problem, "grouped", settings.solve)
    translations = find_translations(units.problem, settings.solve.symmetry)
    flows = list(timed_flows(master, settings.solve, settings.step_tolerance, translations))
    best = best_flow(flows, master.bound, settings.latency / units.time)
    losses = chunk_curve(best, range(1, settings.max_chunks + 1), settings.solve)
    return {
        "topology": problem.topology.name,
        "bound": master.bound * units.time,
        "by_steps": [
            {"steps": flow.expansion.steps, "time": flow.time * units.time} for flow in flows
        ],
        "steps": best.expansion.steps,
        "by_chunks": [{"chunks_per_shard": c, "loss": max(0.0, x)} for c, x in losses.items()],
    }


def _sweep_lines(curves: dict[str, Any]) -> dict[str, str]:
    bound = curves["bound"]
    times = [
        f"{each['steps']:3}  {each['time']:.6g}  (+{max(0.0, each['time'] / bound - 1):.2%})"
        for each in curves["by_steps"]
    ]
    losses = [f"{each['chunks_per_shard']:3}  {each['loss']:.3%}" for each in curves["by_chunks"]]
    return {
        "topology": curves["topology"],
        "bound": f"{bound:.9g}, certified",
        "steps": "\n".join(["  T  time (above the bound)", *times]),
        "chunks": "\n".join([f"  C  loss with {curves['steps']} steps", *losses]),
    }


def _summary(found: Found, seconds: float) -> dict[str, Any]:
    schedule = found.schedule
    topology = schedule.problem.topology
    return {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "time": schedule.time,
        "fractional_time": schedule.fractional_time,
        "fractional_bound": found.fractional_bound,
        "bound": schedule.bound,
        "gap": schedule.gap,
        "loss": schedule.loss,
        "steps": schedule.steps,
        "chunks_per_shard": schedule.chunks_per_shard,
        "loss_by_chunks": {str(chunks): max(0.0, loss) for chunks, loss in found.curve.items()},
        "least_loss_by_chunks": {str(chunks): loss for chunks, loss in found.floor.items()},
        "sends": schedule.sends,
        "method": schedule.method,
        "status": found.status.value,
        "seconds": round(seconds, 3),
        "notes": list(topology.notes),
    }


def _lines(summary: dict[str, Any], found: Found) -> dict[str, str]:
    topology = found.schedule.problem.topology
    lines = {
        "topology": f"{topology.name}: {summary['terminals']} terminals, {topology.nodes} nodes, "
        f"{topology.links} links",
        "time": f"{summary['time']:.9g} in {counted(summary['steps'], 'step')}, verified",
        "bound": f"{summary['bound']:.9g}, certified",
        "gap": f"{max(0.0, summary['gap']):.2e} ({in_words(found.status)})",
        "fractional": f"{summary['fractional_time']:.9g} if shards could be cut at will",
        "chunks": _chunks(found),
    }
    if topology.notes:
        lines["notes"] = "\n".join(topology.notes)
    lines["method"] = f"{summary['method']}, {summary['seconds']:.2f} s"
    return lines


def _chunks(found: Found) -> str:
    """Say what this number of chunks costs, and what fewer would at least (--sweep finds all)."""
    chunks, loss = found.schedule.chunks_per_shard, max(0.0, found.schedule.loss)
    text = f"{chunks} per shard, {loss:.3%} above the fractional time"
    fewer = {each: least for each, least in found.floor.items() if each < chunks and least > 0}
    if not fewer:
        return text
    best = min(fewer, key=lambda each: (fewer[each], each))
    return f"{text}; {best} would be at least {fewer[best]:.3%} above"
