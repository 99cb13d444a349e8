"""The part of a page about one answer or topology: its verified numbers and its loads."""

from typing import Any

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.fabric import Rate
from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import Summary, link_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import PROVEN, percent, span, status_in_words
from alltoall.reports.diagram import Diagram
from alltoall.reports.frames import MOST_CELLS, player_content
from alltoall.reports.headline import facts_of_answer, headline_content, proof_content
from alltoall.reports.packed import packed_floats
from alltoall.reports.pair_paths import MOST_HOPS, path_content

BINS = 20
"""Bars of the histogram of link loads: 5 % each."""

FEW = 10
"""Fullest links listed by name."""

Answer = Flow | Routes | Schedule
Facts = list[list[str]]
"""Labels and texts, the most important first."""

CHECKED = {
    Flow: "conserves flow, fits every capacity and meets the demand",
    Routes: "routes are paths and carry the demand",
    Schedule: "delivers every chunk, and sends none before it has arrived",
}
"""What the checker of each kind proves."""


def busy_shares(answer: Answer) -> Floats:
    """Return the share of the time in which each link is busy: 1 for a saturated link."""
    capacity = answer.problem.topology.capacity
    if isinstance(answer, Flow):
        return answer.mean_load() / capacity
    if isinstance(answer, Routes):
        return answer.load() / capacity / answer.time
    load = np.bincount(answer.link, answer.sizes(), answer.problem.topology.links)
    return load / capacity / answer.time


def answer_content(
    answer: Answer,
    diagram: Diagram,
    asked: Ints,
    rate: Rate | None,
    shortest: float | None,
    sharing: int,
) -> dict[str, Any]:
    """Return the page content of an answer that shares the page with `sharing` others."""
    bounded, share = answer.bound > 0, busy_shares(answer)
    summary = facts_of_answer(answer, rate, shortest)
    content = {
        "kind": type(answer).__name__.lower(),
        "method": answer.method,
        "time": answer.time,
        "bound": answer.bound if bounded else None,
        "gap": answer.gap if bounded else None,
        "headline": headline_content(summary),
        "proof": proof_content(answer.bottleneck(), diagram),
        "facts": _facts(answer, summary, share),
        "share": packed_floats(diagram.fullest(share)),
        **_loads(diagram.topology, share),
    }
    steps_each = 1
    if isinstance(answer, Schedule):
        content["player"] = player_content(answer, diagram, MOST_CELLS // sharing)
        steps_each = content["player"]["stepsEach"]
    if diagram.whole:
        content["paths"] = path_content(answer, asked, MOST_HOPS // sharing, steps_each)
    return content


def _loads(topology: Topology, share: Floats) -> dict[str, Any]:
    """Return the histogram of link loads and the fullest links by name."""
    # Rounding can lift a full link above 1; it belongs to the last bar.
    counts, _ = np.histogram(np.minimum(share, 1.0), bins=BINS, range=(0.0, 1.0))
    order = np.argsort(-np.round(share, 9), kind="stable")[:FEW]
    fullest = [[topology.link_name(int(link)), float(share[link])] for link in order]
    return {"histogram": counts.tolist(), "fullest": fullest}


def topology_content(topology: Topology) -> dict[str, Any]:
    """Return the page content of a topology without an answer."""
    degrees = (span(map(float, each)) for each in (topology.out_degree, topology.in_degree))
    return {
        "kind": "topology",
        "facts": [
            _network(topology),
            ["degree", "{} out, {} in".format(*degrees)],
            ["capacity", span(topology.capacity.tolist())],
            *_made_by(topology.provenance),
            *_notes(topology),
        ],
    }


def _facts(answer: Answer, summary: Summary, share: Floats) -> Facts:
    topology, links = answer.problem.topology, link_in_words(summary)
    idle = int(np.count_nonzero(share == 0))
    gap = f"{percent(answer.gap)} above the bound"
    if answer.gap <= PROVEN:
        gap = "none: optimal, and proven"
    busy = f"{percent(float(share.mean()))} of the time, the average of all links"
    layered = isinstance(answer, Routes) and answer.layers is not None
    return [
        ["time", f"{answer.time:.9g} shard times (one shard over a link of capacity 1)"],
        ["gap", gap if answer.bound > 0 else "no bound claimed"],
        ["saturated", summary["saturated"]],
        ["busy", busy + (f"; {idle:,} idle" if idle else "")],
        *_own(answer),
        ["method", answer.method],
        _network(topology),
        *([] if links is None else [["links", links]]),
        ["checked", CHECKED[type(answer)] + (", cannot deadlock in its layers" * layered)],
        *_made_by(answer.provenance),
        *_notes(topology),
    ]


def _own(answer: Answer) -> Facts:
    """Return the facts that only one kind of answer has."""
    if isinstance(answer, Flow):
        return [["status", status_in_words(answer.status)]]
    if isinstance(answer, Routes):
        most = int(answer.routes_per_pair().max())
        layers = "not assigned" if answer.layers is None else str(answer.layers)
        return [["routes", f"{answer.count:,}, at most {most} per pair"], ["layers", layers]]
    loss = "" if answer.loss <= PROVEN else f", {percent(answer.loss)} above the fractional time"
    chunks = f"{answer.chunks_per_shard} per shard{loss}"
    return [["steps", f"{answer.steps:,}, {answer.sends:,} sends"], ["chunks", chunks]]


def _network(topology: Topology) -> list[str]:
    """Return the name and the size of a topology."""
    terminals = len(topology.terminals)
    some = "" if terminals == topology.nodes else f" ({terminals:,} terminals)"
    size = f"{topology.nodes:,} nodes{some}, {topology.links:,} links"
    return ["network", f"{topology.name}: {size}"]


def _made_by(provenance: object) -> Facts:
    return [] if provenance is None else [["made by", str(provenance)]]


def _notes(topology: Topology) -> Facts:
    return [["notes", "; ".join(topology.notes)]] if topology.notes else []
