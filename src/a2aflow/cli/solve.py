"""`a2aflow solve`: the flow value, with its certificate."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from a2aflow.cli.compiling import clock
from a2aflow.cli.options import (
    AsJson,
    Asked,
    DemandFile,
    GroupFile,
    Groups,
    Output,
    load_problem,
    takes_settings,
    takes_topology,
)
from a2aflow.cli.show import deliver, require_room
from a2aflow.cli.wording import lines_of_answer
from a2aflow.flows import METHODS
from a2aflow.flows.public import find_flow
from a2aflow.ir.bandwidth import bytes_per_second
from a2aflow.ir.files.artefacts import file_bytes
from a2aflow.ir.flow import Flow
from a2aflow.ir.summaries import in_order, summary_of
from a2aflow.ir.topology import Topology


@takes_topology
@takes_settings()
def solve_verb(
    topology: Topology,
    asked: Asked,
    method: Annotated[str, typer.Option(help=f"One of auto, {', '.join(METHODS.known)}.")] = "auto",
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
    with asked.search() as settings:
        flow = find_flow(problem, method, settings, last, repair_only)
    summary = in_order({**summary_of(flow), "seconds": round(clock() - started, 3)})
    if rate is not None:
        summary |= _throughput(flow, rate)
    files = {output: partial(file_bytes, output, flow)}
    deliver(summary, as_json, lines_of_answer(summary), files)


def _throughput(flow: Flow, link_bytes_per_second: float) -> dict[str, float]:
    """Return what a terminal sends on average: N - 1 shards in the uniform all-to-all."""
    problem = flow.problem
    shards = problem.demand.total / len(problem.topology.terminals)
    scale = shards * link_bytes_per_second / 1e9
    return {"throughput_GBps": scale / flow.time, "throughput_bound_GBps": scale / flow.bound}
