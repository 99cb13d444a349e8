"""`alltoall design`: which network to build."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from alltoall.cli.options import AsJson, command_of, time_option
from alltoall.cli.progress import progress
from alltoall.cli.show import STANDARD_OUTPUT, Lines, deliver
from alltoall.cli.signals import searching
from alltoall.cli.telling import check_outputs
from alltoall.designs.candidate import Candidate
from alltoall.designs.design import Design
from alltoall.designs.public import design
from alltoall.errors import UsageError
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.noun import Provenance
from alltoall.settings import DESIGN_GAP, OBJECTIVES
from alltoall.topologies.formats import topology_text

UNKNOWN = "-"
"""In a column that was not asked for."""


def design_verb(
    context: typer.Context,
    nodes: Annotated[int | None, typer.Option(metavar="N", help="Number of nodes.")] = None,
    degree: Annotated[
        int | None,
        typer.Option(metavar="D", help="Links per node, in and out."),
    ] = None,
    bidirectional: Annotated[
        bool,
        typer.Option(
            "--bidirectional/--directed",
            help="Use cables, or one-way links.",
        ),
    ] = False,
    constraints: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Fixed cables, panels, prices or a network to expand.",
        ),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Demand between nodes (default: uniform)."),
    ] = None,
    objective: Annotated[
        str,
        typer.Option(help=f"Rank networks by {', '.join(OBJECTIVES[:-1])} or {OBJECTIVES[-1]}."),
    ] = OBJECTIVES[0],
    layers: Annotated[
        int | None,
        typer.Option(metavar="L", help="Most virtual channels."),
    ] = None,
    failures: Annotated[
        int,
        typer.Option(metavar="K", help="Solve K single failures of the best candidates."),
    ] = 0,
    seed: Annotated[int, typer.Option(metavar="S", help="Seed of the search.")] = 0,
    gap: Annotated[float, typer.Option(help="Certified gap of every time.")] = DESIGN_GAP,
    time_limit: Annotated[
        float | None,
        time_option("Stop then, with the best network so far."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Save the best network."),
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the best network.")
    ] = None,
    patch: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Save its cabling: a line per cable, with ports."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Find the network to build: every family of that size beside the best of a search.

    Each has its certified all-to-all time. No network of so many nodes and ports beats the bound.
    Ctrl-C and --time-limit end with the best so far. Equal seeds find equal networks.
    """
    check_outputs(context)
    if draw not in (None, STANDARD_OUTPUT) and draw.suffix.lower() != ".svg":
        raise UsageError(f"{draw}: drawings are SVG; expected a file name that ends in .svg")
    with progress() as report, searching() as stopped:
        found = design(
            nodes,
            degree=degree,
            bidirectional=bidirectional,
            constraints=constraints,
            workload=workload,
            objective=objective,
            layers=layers,
            failures=failures,
            seed=seed,
            gap=gap,
            time_limit=time_limit,
            progress=report,
            stop=stopped,
        )
    made = Provenance.of_now(command=command_of(context), seed=seed)
    saved = replace(found.topology, provenance=made)
    files = {
        output: lambda: topology_text(saved, output or STANDARD_OUTPUT),
        draw: lambda: draw_svg(found.topology),
        patch: found.patch_list,
    }
    deliver(found.summary(), as_json, lines_of(found), files)


def lines_of(found: Design) -> Lines:
    """Return the table for people."""
    kind = "one-way links" if found.directed else "cables"
    ports = "" if found.degree is None else f", {found.degree} ports each"
    lines: dict[str, str | Sequence[str]] = {
        "network": f"{found.nodes} nodes{ports}, {kind}",
        "bound": f"{found.bound:.6g} for any such network",
        "best": f"{found.best.name}: {found.best.time:.6g}, {found.best.ratio:.4f} times the bound",
        "": ["", *_table(found.candidates), ""],
    }
    if found.absent:
        lines["not here"] = [f"{name}: {_sizes(sizes)}" for name, sizes in found.absent.items()]
    if not found.complete:
        lines["stopped"] = "the time was up: these are the best so far"
    return lines


def _sizes(sizes: tuple[int, ...]) -> str:
    if not sizes:
        return "no size of this degree nearby"
    return f"nearest with {' and '.join(map(str, sizes))} nodes"


HEADER = ("time", "over bound", "diameter", "mean", "links", "layers", "automorphisms", "name")
FAILING = ("worst failure", "mean failure")
PRICED = ("price",)


def _table(candidates: Sequence[Candidate]) -> list[str]:
    """Return the lines of the table; columns that nobody asked for are left out."""
    failing = any(each.failures is not None for each in candidates)
    priced = any(each.price is not None for each in candidates)
    header = HEADER[:-1] + FAILING * failing + PRICED * priced + HEADER[-1:]
    rows = [header, *(_cells(each, failing, priced) for each in candidates)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            [*(f"{cell:>{width}}" for cell, width in zip(row[:-1], widths, strict=False)), row[-1]]
        )
        for row in rows
    ]


def _cells(each: Candidate, failing: bool, priced: bool) -> tuple[str, ...]:
    cells = [
        f"{each.time:.6g}",
        f"{each.ratio:.4f}",
        str(each.diameter),
        f"{each.mean_distance:.4f}",
        str(each.topology.links),
        UNKNOWN if each.layers is None else str(each.layers),
        f"{each.automorphisms:,}"
        if isinstance(each.automorphisms, int)
        else f"{each.automorphisms:.2g}",
    ]
    if failing:
        known = each.failures
        cells += [UNKNOWN] * 2 if known is None else [f"{known.worst:.6g}", f"{known.mean:.6g}"]
    if priced:
        cells.append(UNKNOWN if each.price is None else f"{each.price:g}")
    return (*cells, each.name)
