"""`a2aflow topology`: describe, convert, draw."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from a2aflow.cli.options import AsJson, takes_topology
from a2aflow.cli.show import show
from a2aflow.ir.files import write_text
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.solve.bounds import cut_bound, distance_bound, regular_bound
from a2aflow.topologies.draw import draw_svg
from a2aflow.topologies.formats import FORMATS, write_topology
from a2aflow.topologies.properties import automorphisms, diameter, girth, hop_distances
from a2aflow.topologies.spec import FAMILIES


def _list_choices(asked: bool) -> None:
    """Print every family and every file format, then stop."""
    if not asked:
        return
    lines = {
        family.example: (family.build.__doc__ or "").partition("\n")[0]
        for family in FAMILIES.values()
    }
    show({}, False, {"SPEC": "what it is", **lines})
    show({}, False, {"": "", "file": "", **{name: each.summary for name, each in FORMATS.items()}})
    raise typer.Exit


@takes_topology
def topology_verb(
    topology: Topology,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the topology to a file."),
    ] = None,
    to: Annotated[
        str | None, typer.Option(metavar="FORMAT", help="Format of that file, if not by its name.")
    ] = None,
    draw: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the topology.")
    ] = None,
    families: Annotated[
        bool,
        typer.Option("--list", is_eager=True, callback=_list_choices, help="List the families."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Describe a topology, and convert or draw it.

    Example: a2aflow topology genkautz:n=12,d=3 --output genkautz.graphml --draw genkautz.svg
    """
    problem = Problem.all_to_all(topology)
    if output:
        write_topology(topology, output, to)
    if draw:
        write_text(draw, draw_svg(topology))
    summary = describe(problem)
    written = [str(path) for path in (output, draw) if path]
    show(summary, as_json, _lines(summary, topology, written))


def describe(problem: Problem) -> dict[str, Any]:
    """Return the numbers that tell topologies apart, and the bounds that they prove."""
    topology = problem.topology
    degree = [int(topology.out_degree.min()), int(topology.out_degree.max())]
    bounds = {"distance": distance_bound(problem), "cut": cut_bound(problem).bound}
    if degree[0] == degree[1] and len(topology.terminals) == topology.nodes > 1:
        bounds["regular"] = (
            float(regular_bound(topology.nodes, degree[0])) / topology.capacity.max()
        )
    return {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "bidirectional": topology.bidirectional,
        "out_degree": degree,
        "in_degree": [int(topology.in_degree.min()), int(topology.in_degree.max())],
        "capacity": [float(topology.capacity.min()), float(topology.capacity.max())],
        "diameter": diameter(topology),
        "mean_distance": _mean_distance(topology),
        "girth": girth(topology),
        "automorphisms": automorphisms(topology),
        "bounds": bounds,
        "notes": list(topology.notes),
    }


def _mean_distance(topology: Topology) -> float:
    """Return the mean number of hops between distinct terminals."""
    hops = hop_distances(topology, topology.terminals)[:, topology.terminals]
    pairs = len(topology.terminals) * (len(topology.terminals) - 1)
    return float(np.sum(hops)) / pairs


def _lines(summary: dict[str, Any], topology: Topology, written: list[str]) -> dict[str, str]:
    bounds = ", ".join(f"{name} {value:.6g}" for name, value in summary["bounds"].items())
    lines = {
        "topology": topology.name,
        "nodes": f"{topology.nodes}, {summary['terminals']} of them terminals",
        "links": f"{topology.links}, {'both ways' if topology.bidirectional else 'one way'}",
        "degree": f"{_range(summary['out_degree'])} out, {_range(summary['in_degree'])} in",
        "capacity": _range(summary["capacity"]),
        "diameter": f"{summary['diameter']}, mean distance {summary['mean_distance']:.6g}",
        "girth": str(summary["girth"] or "none"),
        "symmetry": f"{summary['automorphisms']:,} automorphisms",
        "time above": bounds,
    }
    if topology.notes:
        lines["notes"] = "\n".join(topology.notes)
    if written:
        lines["written"] = "\n".join(written)
    return lines


def _range(ends: list[float]) -> str:
    return f"{ends[0]:g}" if ends[0] == ends[1] else f"{ends[0]:g} to {ends[1]:g}"
