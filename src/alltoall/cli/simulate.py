"""`alltoall simulate`: what a schedule or routes take, predicted."""

from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, Background, LinkBandwidth, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import columns, show
from alltoall.ir.quantities import rate_in_words
from alltoall.lowering.public import PHASE_LOSS
from alltoall.simulation.alpha_beta import SHARINGS, SYNCS
from alltoall.simulation.fluid import WEIGHTS
from alltoall.simulation.public import simulate
from alltoall.simulation.report import JobRow, Row, Simulation

HEADER = ("shard B", "time us", "bound us", "fraction", "GB/s", "at most")
JOB_HEADER = ("shard B", "alone us", "together us", "bound us", "slowdown", "")


def simulate_verb(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            help="Saved schedule, routes or messages; optional with --job.",
            show_default=False,
        ),
    ] = None,
    link_bandwidth: LinkBandwidth = None,
    sizes: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE[:SIZE]",
            help="Bytes per pair of terminals; 1K:16M doubles.",
        ),
    ] = "1M",
    latency: Annotated[float, time_option("Latency of every link, such as 2us.")] = 0.0,
    overhead: Annotated[
        float, time_option("Time that sending a message takes, such as 1us.")
    ] = 0.0,
    injection: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Bandwidth of each terminal, in and out."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Start times: lines `node seconds` (default: 0)."),
    ] = None,
    sync: Annotated[
        str,
        typer.Option(help=f"Schedules: {' or '.join(SYNCS)}, a barrier after each step."),
    ] = SYNCS[0],
    sharing: Annotated[
        str,
        typer.Option(
            help=f"Schedules: {' or '.join(SHARINGS)}. Links send messages in the order of the "
            "steps, or share their bandwidth, as TCP does."
        ),
    ] = SHARINGS[0],
    weights: Annotated[
        str,
        typer.Option(
            help=f"Routes: {' or '.join(WEIGHTS)}. Flows share a link equally, or are paced by "
            "the weights of their routes."
        ),
    ] = WEIGHTS[0],
    flows: Annotated[
        int, typer.Option(metavar="K", help="Routes: parallel flows of each route.")
    ] = 1,
    chunk_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Routes: size of a message of a flow."),
    ] = None,
    phases: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Routes: send in K phases; 0 for as many as fit the loss.",
        ),
    ] = None,
    phase_loss: Annotated[
        float, typer.Option(metavar="LOSS", help="Throughput that phases may lose.")
    ] = PHASE_LOSS,
    resolution: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Routes: time resolution as a share of the total; 0 is exact (default: 0.001 "
            "above 5,000 routes, else 0).",
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Network of lowered messages."),
    ] = None,
    jobs: Annotated[
        list[str] | None,
        typer.Option(
            "--job",
            metavar="FILE[@TIME]",
            help="Routes of a job that shares the links, and its start time; repeatable.",
        ),
    ] = None,
    background: Background = None,
    as_json: AsJson = False,
) -> None:
    """Predict the time of a schedule or routes on links of a given rate and latency.

    A schedule is simulated message by message (alpha-beta model), routes as a fluid in which each
    flow has its max-min fair rate. The file is verified first, and no time is below the certified
    bound.
    """
    with progress() as report:
        found = simulate(
            file,
            link_bandwidth=link_bandwidth,
            sizes=sizes,
            latency=latency,
            overhead=overhead,
            injection=injection,
            start=start,
            sync=sync,
            sharing=sharing,
            weights=weights,
            flows=flows,
            chunk_bytes=chunk_bytes,
            phases=phases,
            phase_loss=phase_loss,
            resolution=resolution,
            topology=topology,
            jobs=jobs,
            background=background,
            progress=report,
        )
    named = {"file": None if file is None else str(file)}
    show({**named, **found.to_json()}, as_json, {"": table(found)})


def table(found: Simulation) -> list[str]:
    """Return the lines of the table for people."""
    rates = sorted({rate_in_words(rate) for rate in found.link_rates})
    fine = f", resolution {found.resolution:g}" if found.resolution else ""
    return [
        f"# {found.topology}: {found.terminals} terminals, links of {' to '.join(rates)}; "
        f"{found.model}{fine}",
        "# the bound is certified: no all-to-all takes less; GB/s is what a terminal sends",
        *columns([HEADER, *map(_cells, found.rows)]),
        *(_table_of_jobs(found) if found.jobs else ()),
    ]


def _table_of_jobs(found: Simulation) -> list[str]:
    """Return what several jobs take, and what coordinating them would save."""
    lines = ["# jobs that share the links, each by its own routes, nobody coordinates them"]
    if found.rows != found.together:
        pairs = zip(found.together, found.rows, strict=True)
        ratios = ", ".join(f"{each.seconds / joint.seconds:.4f}" for each, joint in pairs)
        lines.append(f"# above is the joint one; uncoordinated all take {ratios} times as long")
    return [*lines, *columns([JOB_HEADER, *map(_job_cells, found.jobs)], words=[-1])]


def _job_cells(row: JobRow) -> list[str]:
    times = [f"{each * 1e6:.2f}" for each in (row.alone, row.together, row.bound_seconds)]
    return [str(row.bytes), *times, f"{row.slowdown:.4f}", row.job]


def _cells(row: Row) -> list[str]:
    times = [f"{seconds * 1e6:.2f}" for seconds in (row.seconds, row.bound_seconds)]
    rates = [f"{rate / 1e9:.3f}" for rate in (row.throughput, row.bound_throughput)]
    return [str(row.bytes), *times, f"{row.fraction:.4f}", *rates]
