"""`a2aflow solve`: the flow value, with its certificate."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

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
    how_ended,
    in_words,
    load_problem,
    takes_topology,
)
from a2aflow.cli.show import deliver, progress, require_room
from a2aflow.cli.signals import searching
from a2aflow.errors import UsageError
from a2aflow.flows import METHODS, SolveSettings, solve
from a2aflow.flows.warm import repair, solve_from
from a2aflow.ir.bandwidth import bytes_per_second
from a2aflow.ir.files.artefacts import file_bytes, read_as
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology

DEFAULTS = SolveSettings()


@takes_topology
def solve_verb(
    topology: Topology,
    method: Annotated[str, typer.Option(help=f"One of auto, {', '.join(METHODS)}.")] = "auto",
    solver: SolverName = "auto",
    gap: Gap = DEFAULTS.gap,
    time_limit: TimeLimit = None,
    workers: Workers = DEFAULTS.workers,
    symmetry: UseSymmetry = True,
    cluster: Cluster = None,
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    link_bandwidth: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Of a link of capacity 1, such as 25Gbps."),
    ] = None,
    last: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Start from a saved flow, of this problem before links or nodes failed, or "
            "capacities or demands changed.",
        ),
    ] = None,
    repair_only: Annotated[
        bool,
        typer.Option(
            "--repair", help="With --from: only reroute what cannot stay, and stop there."
        ),
    ] = False,
    output: Output = None,
    as_json: AsJson = False,
) -> None:
    """Find the best all-to-all rate and prove it.

    Prints the all-to-all time, the certified lower bound on the time of any schedule, and the gap
    between the two. Time is in units of one shard over one link of capacity 1. After a failure,
    `solve SPEC --remove-link 3-4 --from FILE` starts from what is left of the last answer.

    Example: a2aflow solve torus:3x3x3 --host-bandwidth 4 --link-bandwidth 25Gbps
    """
    started = clock()
    require_room(as_json, output)
    rate = bytes_per_second(link_bandwidth) if link_bandwidth else None
    problem = load_problem(topology, demand, groups, group_file)
    with progress() as report, searching() as stopped:
        settings = SolveSettings(
            gap,
            solver,
            time_limit,
            workers,
            report,
            cluster=cluster,
            symmetry=symmetry,
            stopped=stopped,
        ).begin()
        flow = _solve(problem, method, settings, last, repair_only)
    flow = replace(flow, status=how_ended(flow.status))
    summary = _summary(flow, clock() - started, rate)
    deliver(summary, as_json, _lines(summary, flow), {output: partial(file_bytes, output, flow)})


def _solve(
    problem: Problem, method: str, settings: SolveSettings, last: Path | None, repair_only: bool
) -> Flow:
    """Solve from scratch, or from a saved flow."""
    if last is None:
        if repair_only:
            raise UsageError("--repair without a flow to repair; add --from FILE")
        return solve(problem, method, settings)
    if method not in ("auto", "first-order"):
        raise UsageError(
            f"--from with --method {method}; only first-order starts from a flow, leave it out"
        )
    flow = read_as(last, Flow)
    return repair(problem, flow, settings) if repair_only else solve_from(problem, flow, settings)


def _summary(flow: Flow, seconds: float, link_bytes_per_second: float | None) -> dict[str, Any]:
    topology = flow.problem.topology
    summary: dict[str, Any] = {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "time": flow.time,
        "bound": flow.bound,
        "gap": flow.gap,
        "flow": flow.rate,
        "method": flow.method,
        "status": flow.status.value,
        "seconds": round(seconds, 3),
        "notes": list(topology.notes),
    }
    if link_bytes_per_second is not None:
        # What a terminal sends on average: N - 1 shards in the uniform all-to-all.
        shards = flow.problem.demand.total / len(topology.terminals)
        summary["throughput_GBps"] = shards / flow.time * link_bytes_per_second / 1e9
        summary["throughput_bound_GBps"] = shards / flow.bound * link_bytes_per_second / 1e9
    return summary


def _lines(summary: dict[str, Any], flow: Flow) -> dict[str, str]:
    topology = flow.problem.topology
    lines = {
        "topology": f"{topology.name}: {summary['terminals']} terminals, {topology.nodes} nodes, "
        f"{topology.links} links",
        "time": f"{flow.time:.9g} (flow {flow.rate:.9g})",
        "bound": f"{flow.bound:.9g}, certified",
        "gap": f"{max(flow.gap, 0.0):.2e} ({in_words(flow.status)})",
    }
    if topology.notes:
        lines["notes"] = "\n".join(topology.notes)
    if "throughput_GBps" in summary:
        lines["throughput"] = (
            f"{summary['throughput_GBps']:.3f} GB/s per node, "
            f"at most {summary['throughput_bound_GBps']:.3f}"
        )
    lines["method"] = f"{flow.method}, {summary['seconds']:.2f} s"
    return lines
