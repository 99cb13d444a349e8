"""`alltoall design`: which network to build."""

from collections.abc import Sequence
from dataclasses import replace

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import STANDARD_OUTPUT, Lines, columns, deliver
from alltoall.designs.candidate import Candidate
from alltoall.designs.design import Design
from alltoall.designs.public import design
from alltoall.ir.files.drawing import draw_svg
from alltoall.ir.noun import Provenance
from alltoall.topologies.formats import topology_text

UNKNOWN = "-"
"""Cell of a value that was not computed."""


def _tell(found: Design, call: VerbCall) -> None:
    made = Provenance.of_now(command=call.command, seed=call.given["seed"])
    saved = replace(found.topology, provenance=made)
    output = call.path("output")
    files = {
        output: lambda: topology_text(saved, output or STANDARD_OUTPUT),
        call.path("draw"): lambda: draw_svg(found.topology),
        call.path("patch"): found.patch_list,
    }
    deliver(found.to_json(), call.json, lines_of(found), files)


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
        lines["not here"] = [
            f"{name}: nearest with {' and '.join(map(str, sizes))} nodes"
            if sizes
            else f"{name}: no size of this degree nearby"
            for name, sizes in found.absent.items()
        ]
    if not found.complete:
        lines["stopped"] = "the time was up: these are the best so far"
    return lines


HEADER = ("time", "over bound", "diameter", "mean", "links", "layers", "automorphisms", "name")
FAILING = ("worst failure", "mean failure")
PRICED = ("price",)


def _table(candidates: Sequence[Candidate]) -> list[str]:
    """Return the lines of the table, with the columns asked for."""
    failing = any(each.failures is not None for each in candidates)
    priced = any(each.price is not None for each in candidates)
    header = HEADER[:-1] + FAILING * failing + PRICED * priced + HEADER[-1:]
    rows = [header, *(_cells(each, failing, priced) for each in candidates)]
    return columns(rows, words=[-1])


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


design_verb = verb_of(design, _tell, "output", "draw", "patch", "json")
