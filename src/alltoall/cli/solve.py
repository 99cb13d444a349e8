"""`alltoall solve`: the flow value, with its certificate."""

from dataclasses import replace
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
    load_problem,
)
from alltoall.cli.ranks import in_a_team, start_ranks
from alltoall.cli.shared_options import takes_options
from alltoall.cli.telling import Telling
from alltoall.flows import METHODS
from alltoall.flows.public import find_flow, find_job_rates, refuse_with_jobs
from alltoall.ir.summaries import summary_of
from alltoall.ir.topology import Topology
from alltoall.topologies.given import jobs_of


@takes_options()
def solve_verb(
    topology: Topology,
    context: typer.Context,
    asked: Asked,
    telling: Telling,
    method: Annotated[str, typer.Option(help=f"One of auto, {', '.join(METHODS.known)}.")] = "auto",
    demand: DemandFile = None,
    groups: Groups = None,
    group_file: GroupFile = None,
    jobs: JobsFile = None,
    background: Background = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Leave a checkpoint of a long solve here every minute, and go on from one that is "
            "there.",
        ),
    ] = None,
    mpi: Annotated[
        int | None,
        typer.Option(
            metavar="R",
            help="Share out the sources over R MPI ranks on this machine; elsewhere, start the "
            "command with mpiexec.",
        ),
    ] = None,
) -> None:
    """Find the best all-to-all rate and prove it.

    Prints the all-to-all time, the certified lower bound on the time of any schedule, and the gap
    between the two. Time is in units of one shard over one link of capacity 1. With --jobs, the
    flow carries every job at its max-min fair rate, and each level of rates is proven.
    `mpiexec -n R alltoall solve SPEC` solves over R ranks, each with its share of the memory.

    Example: alltoall solve torus:3x3x3 --host-bandwidth 4 --link-bandwidth 25Gbps
    """
    if mpi is not None:
        raise typer.Exit(start_ranks(mpi, context.obj, checkpoint))
    problem = load_problem(topology, demand, groups, group_file, jobs, background)
    if jobs is not None:
        refuse_with_jobs(method)
        with asked.search() as settings:
            rates = find_job_rates(problem.topology, jobs_of(jobs, problem.topology), settings)
        telling.tell(rates.flow, summary_of(rates.flow) | rates.summary(), settings)
        return
    with asked.search() as alone, in_a_team(replace(alone, checkpoint=checkpoint)) as settings:
        flow = find_flow(problem, method, settings)
    telling.tell(flow, summary_of(flow), settings)
