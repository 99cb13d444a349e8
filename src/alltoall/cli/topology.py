"""`alltoall topology`: describe, convert, draw."""

from dataclasses import replace
from typing import Any

import typer

from alltoall.cli.app import show_choices
from alltoall.cli.options import VerbCall, options_of, with_parameters
from alltoall.cli.outputs import check_outputs
from alltoall.cli.show import STANDARD_OUTPUT, Lines, deliver
from alltoall.errors import UsageError
from alltoall.flows.public import describe
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.noun import Provenance
from alltoall.ir.summaries import link_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import listed
from alltoall.topologies.formats import topology_text
from alltoall.topologies.public import topology

ABOUT = """Describe a topology, and convert or draw it; list all families if there is no SPEC.

A family has a help of its own: alltoall topology genkautz --help
"""

PRINTED = ("output", "to", "draw", "json")


def _verb(context: typer.Context, **given: Any) -> None:
    call = VerbCall(context, given)
    changes = {key: value for key, value in given.items() if key not in PRINTED}
    output, to, draw = call.path("output"), given["to"], call.path("draw")
    if given["given"] is None:
        if output is not None or draw is not None or to is not None:
            raise UsageError("a list of families has no file of its own; name one SPEC to save it")
        if any(changes.values()):
            raise UsageError("options that change a topology, but no SPEC; name one to change")
        show_choices(call.json)
        return
    if to is not None and output is None:
        raise UsageError(f"--to {to} without a file to write; name one (--output, - to print)")
    check_outputs(context)
    network = topology(**changes)
    summary = describe(network).summary()
    made = Provenance.of_now(command=call.command, seed=given["seed"])
    saved = replace(network, provenance=made)
    files = {
        output: lambda: topology_text(saved, output or STANDARD_OUTPUT, to),
        draw: lambda: draw_svg(network),
    }
    deliver(summary, call.json, _lines(summary, network), files)


topology_verb = with_parameters(_verb, [*options_of(topology, *PRINTED, given=None)], ABOUT)


def _lines(summary: dict[str, Any], network: Topology) -> Lines:
    bounds = ", ".join(f"{name} {value:.6g}" for name, value in summary["bounds"].items())
    count = summary["automorphisms"]
    symmetries = f"about 10^{summary['automorphisms_log10']:.0f}" if count is None else f"{count:,}"
    lines: Lines = {
        "topology": network.name,
        "nodes": f"{network.nodes}, {summary['terminals']} of them terminals",
        "names": listed(network.names or ()),
        "links": f"{network.links}, {'both ways' if network.bidirectional else 'one way'}",
        "degree": f"{_range(summary['out_degree'])} out, {_range(summary['in_degree'])} in",
        "capacity": _range(summary["capacity"]),
        "link": link_in_words(summary) or "",
        "diameter": f"{summary['diameter']}, mean distance {summary['mean_distance']:.6g}",
        "girth": str(summary["girth"] or "none"),
        "symmetry": f"{symmetries} automorphisms",
        "time above": bounds,
        "notes": network.notes,
    }
    return {label: text for label, text in lines.items() if text}


def _range(ends: list[float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"
