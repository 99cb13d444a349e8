"""`alltoall topology`: describe, convert, draw."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.app import show_choices
from alltoall.cli.options import AsJson, KeepProvenance, command_of
from alltoall.cli.shared_options import takes_options
from alltoall.cli.show import STANDARD_OUTPUT, deliver
from alltoall.cli.telling import check_outputs
from alltoall.cli.wording import link_in_words
from alltoall.errors import UsageError
from alltoall.flows.public import describe
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.noun import Provenance
from alltoall.ir.topology import Topology
from alltoall.topologies.formats import topology_text

MAX_NAMES = 10
"""Most names of nodes in the lines for people; the JSON has all of them."""


@takes_options()
def topology_verb(
    context: typer.Context,
    topology: Topology | None = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="Write the topology to a file; - is standard output.",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Format of that file, if not by its name.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the topology.")
    ] = None,
    provenance: KeepProvenance = True,
    families: Annotated[
        bool, typer.Option("--list", help="List the families, as without a SPEC.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Describe a topology, and convert or draw it; list all families if there is no SPEC.

    A family's own help says what it takes: alltoall topology genkautz --help

    Example: alltoall topology genkautz:n=12,d=3 --output genkautz.graphml --draw genkautz.svg
    """
    if topology is None or families:
        if output is not None or draw is not None or to is not None:
            raise UsageError("a list of families has no file of its own; name one SPEC to save it")
        show_choices(as_json)
        return
    check_outputs(context)
    if draw not in (None, STANDARD_OUTPUT) and draw.suffix.lower() != ".svg":
        raise UsageError(f"{draw}: drawings are SVG; expected a file name that ends in .svg")
    summary = describe(topology).summary()
    made = None
    if provenance:
        made = Provenance.of_now(command=command_of(context), seed=context.params["seed"])
    saved = replace(topology, provenance=made)
    files = {
        output: lambda: topology_text(saved, output or STANDARD_OUTPUT, to),
        draw: lambda: draw_svg(topology),
    }
    deliver(summary, as_json, _lines(summary, topology), files)


def _lines(summary: dict[str, Any], topology: Topology) -> dict[str, str]:
    bounds = ", ".join(f"{name} {value:.6g}" for name, value in summary["bounds"].items())
    lines = {
        "topology": topology.name,
        "nodes": f"{topology.nodes}, {summary['terminals']} of them terminals",
        "names": _names(topology),
        "links": f"{topology.links}, {'both ways' if topology.bidirectional else 'one way'}",
        "degree": f"{_range(summary['out_degree'])} out, {_range(summary['in_degree'])} in",
        "capacity": _range(summary["capacity"]),
        "link": link_in_words(summary) or "",
        "diameter": f"{summary['diameter']}, mean distance {summary['mean_distance']:.6g}",
        "girth": str(summary["girth"] or "none"),
        "symmetry": f"{_symmetries(summary)} automorphisms",
        "time above": bounds,
    }
    lines = {label: text for label, text in lines.items() if text}
    if topology.notes:
        lines["notes"] = "\n".join(topology.notes)
    return lines


def _names(topology: Topology) -> str:
    """Return the first names that people read."""
    names = topology.names or ()
    return ", ".join(names[:MAX_NAMES]) + (", ..." if len(names) > MAX_NAMES else "")


def _symmetries(summary: dict[str, Any]) -> str:
    count = summary["automorphisms"]
    return f"about 10^{summary['automorphisms_log10']:.0f}" if count is None else f"{count:,}"


def _range(ends: list[float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"
