"""`alltoall compare`: what better routing, or another network, is worth."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, LinkBandwidth, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import columns, show
from alltoall.cli.signals import searching
from alltoall.cli.telling import check_outputs
from alltoall.comparing.compare import COMPARE_GAP, compare
from alltoall.comparing.comparison import Comparison
from alltoall.errors import UsageError
from alltoall.ir.quantities import parse_sizes
from alltoall.ir.words import counted
from alltoall.settings import now


def compare_verb(
    context: typer.Context,
    given: Annotated[
        list[str],
        typer.Argument(
            metavar="SPEC|FILE...",
            help="Networks, saved flows, routes or schedules, or what `alltoall run --json` "
            "printed. {key} in a SPEC takes each value of --over.",
            show_default=False,
        ),
    ],
    methods: Annotated[
        list[str] | None,
        typer.Option("--method", metavar="NAME", help="A method to compare; may be repeated."),
    ] = None,
    over: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUES",
            help="Values of {KEY}: 16,32,64 or 1..5; may be repeated. Seeds share a line.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Save as .csv, .json, .svg or .html. A JSON file that is there is gone on from.",
        ),
    ] = None,
    demand: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Demand between terminals; uniform if left out."),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--group", metavar="A,B,C", help="All-to-all among these only; may be repeated."
        ),
    ] = None,
    link_bandwidth: LinkBandwidth = None,
    shard: Annotated[
        str | None,
        typer.Option(
            "--bytes", metavar="SIZE", help="Size of a shard: adds seconds, and picks that of runs."
        ),
    ] = None,
    gap: Annotated[float, typer.Option(help="The certified gap to aim for.")] = COMPARE_GAP,
    time_limit: Annotated[float | None, time_option("End each point then.")] = None,
    threads: Annotated[
        int | None, typer.Option(metavar="N", help="Processes at most (default: the cores).")
    ] = None,
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS", help="Run the points on the Dask cluster at tcp://host:port."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare networks, methods, saved answers and measured runs, best first.

    One network is compared by shortest paths, ECMP, one route per pair and ours; several are
    compared by ours and shortest paths. Each has its share of the proven maximum. A point that
    fails is a row with its reason; Ctrl-C ends with the rows that are done, and a second call with
    the same -o FILE.json goes on from them.

    Example: alltoall compare torus:4x4 genkautz:n=16,d=4 --link-bandwidth 100G
    """
    check_outputs(context)
    started = now()
    with progress() as report, searching() as stopped:
        found = compare(
            given,
            methods or None,
            over=dict(map(_key_and_values, over or ())),
            demand=demand,
            groups=[group.split(",") for group in groups] if groups else None,
            link_bandwidth=link_bandwidth,
            bytes=None if shard is None else parse_sizes(shard)[0],
            gap=gap,
            time_limit=time_limit,
            threads=threads,
            cluster=cluster,
            output=output,
            progress=report,
            stop=stopped,
        )
    if as_json:
        summary = found.to_json() | {"seconds": round(now() - started, 3)}
        del summary["points"]
        show(summary, True, {})
    else:
        show({}, False, {"": [*_lines(found, output)]})


def _key_and_values(text: str) -> tuple[str, str]:
    key, equals, values = text.partition("=")
    if not equals:
        raise UsageError(f"--over {text}; expected KEY=VALUES, such as n=16,32 or seed=1..5")
    return key.strip(), values


def _lines(found: Comparison, output: Path | None) -> Iterator[str]:
    """Yield the answer, the table, and what is left to say."""
    yield from found.answer().split("; ")
    yield ""
    header, *rows = found.table()
    words = [at for at, name in enumerate(header) if name in ("network", "method", "")]
    yield from columns([header, *rows], words=words)
    if found.missing:
        late = counted(found.missing, "point")
        yield ""
        yield f"{late} not run; the same call with -o FILE.json goes on from the others"
    if output is not None:
        yield ""
        yield f"saved  {output}"
