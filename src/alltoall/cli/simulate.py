"""`alltoall simulate`: what a schedule or routes take, predicted."""

from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, Background, LinkBandwidth, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import columns, show
from alltoall.ir.quantities import rate_in_words
from alltoall.settings import RouteSettings
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
            help="A saved schedule, saved routes, or the messages of a schedule; with --job, a "
            "joint one, or none.",
            show_default=False,
        ),
    ] = None,
    link_bandwidth: LinkBandwidth = None,
    sizes: Annotated[
        str,
        typer.Option(
            "--bytes",
            metavar="SIZE[:SIZE]",
            help="Size of a shard, which is what one terminal sends to one other: such as 1M, or a "
            "range that doubles, such as 1K:16M.",
        ),
    ] = "1M",
    latency: Annotated[float, time_option("That a byte takes over a link, such as 2us.")] = 0.0,
    overhead: Annotated[float, time_option("That a message costs its sender.")] = 0.0,
    injection: Annotated[
        str | None,
        typer.Option(
            metavar="RATE", help="What a terminal can send, and receive, over all its links."
        ),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Lines of a node and the seconds at which it begins; else 0."
        ),
    ] = None,
    sync: Annotated[
        str,
        typer.Option(
            help=f"Of schedules, one of {', '.join(SYNCS)}: forward what has arrived, or a barrier "
            "after every step."
        ),
    ] = SYNCS[0],
    sharing: Annotated[
        str,
        typer.Option(
            help=f"Of schedules, one of {', '.join(SHARINGS)}: links work on what is due first, or "
            "all messages under way have a fair share, as with TCP."
        ),
    ] = SHARINGS[0],
    weights: Annotated[
        str,
        typer.Option(
            help=f"Of routes, one of {', '.join(WEIGHTS)}: every flow has the same share of a "
            "link, or each route is paced at its weight."
        ),
    ] = WEIGHTS[0],
    flows: Annotated[int, typer.Option(metavar="K", help="Flows of each route at once.")] = 1,
    chunk_bytes: Annotated[
        str | None,
        typer.Option(metavar="SIZE", help="Of a message of a route; a flow sends one by one."),
    ] = None,
    phases: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            help="Phases of the routes, one after the other; 0 for as many as the loss allows.",
        ),
    ] = None,
    phase_loss: Annotated[
        float, typer.Option(metavar="LOSS", help="What phases may cost.")
    ] = RouteSettings.phase_loss,
    resolution: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Of the time of the fullest link: routes take up no more often what flows leave. "
            "0 is exact; 0.001 above 5,000 routes if left out.",
        ),
    ] = None,
    topology: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="On which the ranks of lowered messages are."),
    ] = None,
    jobs: Annotated[
        list[str] | None,
        typer.Option(
            "--job",
            metavar="FILE[@TIME]",
            help="Saved routes of one of several jobs that share the links uncoordinated, and when "
            "it begins; may be repeated.",
        ),
    ] = None,
    background: Background = None,
    as_json: AsJson = False,
) -> None:
    """Predict what a schedule or routes take on links of a given rate and latency.

    A schedule is simulated message by message (alpha-beta model), routes as a fluid in which each
    flow has its max-min fair rate. What is simulated is verified first, and no time is below the
    certified bound.

    Example: alltoall simulate torus.schedule.json --link-bandwidth 25Gbps --latency 2us --bytes 1M
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
    show({**named, **found.to_json()}, as_json, {"": "\n".join(table(found))})


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
