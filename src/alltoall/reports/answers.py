"""What a page says of one file: its numbers, checked anew, with their proof and bottleneck."""

from typing import Any

import numpy as np

from alltoall.check.flow import check_flow
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import physical
from alltoall.ir.topology import Topology
from alltoall.ir.words import PROVEN, counted, span, status_in_words
from alltoall.reports.drawn import Drawn
from alltoall.reports.frames import MOST_CELLS, player_content
from alltoall.reports.packed import packed_floats
from alltoall.reports.ways import MOST_HOPS, flow_content, route_content, send_content

BINS = 20
"""Bars of the histogram of link loads: five per cent each."""

FEW = 10
"""The fullest links that are listed by name."""

Answer = Flow | Routes | Schedule


def shares_of(answer: Answer) -> Floats:
    """Return the share of the time in which each link is busy: 1 for one that all wait for."""
    capacity = answer.problem.topology.capacity
    if isinstance(answer, Flow):
        return answer.mean_load() / capacity
    if isinstance(answer, Routes):
        return answer.load() / capacity / answer.time
    load = np.bincount(answer.link, answer.sizes(), answer.problem.topology.links)
    return load / capacity / answer.time


def load_content(answer: Answer, drawn: Drawn) -> dict[str, Any]:
    """Return the histogram of link loads, and the links that are listed by name."""
    share = shares_of(answer)
    # Sums that should be 1 may be a last digit above; they belong to the last bar.
    counts, _ = np.histogram(np.minimum(share, 1.0), bins=BINS, range=(0.0, 1.0))
    order = np.argsort(-np.round(share, 9), kind="stable")[:FEW]
    name = drawn.topology.link_name
    return {
        "histogram": counts.tolist(),
        "mean": float(share.mean()),
        "fullest": [[name(int(link)), float(share[link])] for link in order],
        "idle": int(np.count_nonzero(share == 0)),
    }


CHECKED = {
    Flow: "this flow conserves, fits every capacity and meets the demand",
    Routes: "these routes are paths, and carry the demand",
    Schedule: "this schedule delivers every chunk, and sends none before it is there",
}
"""What the checkers found of each kind, when the page was made."""


def check(answer: Answer) -> None:
    """Raise unless an answer is what it says."""
    if isinstance(answer, Flow):
        check_flow(answer)
    elif isinstance(answer, Routes):
        check_routes(answer)
    else:
        check_schedule(answer)


def answer_content(
    answer: Answer, drawn: Drawn, asked: Ints, rate: Rate | None, sharing: int
) -> dict[str, Any]:
    """Return all that a page has of an answer, if so many share the room in the page."""
    found = {
        "kind": type(answer).__name__.lower(),
        "method": answer.method,
        "time": answer.time,
        "bound": answer.bound if answer.bound > 0 else None,
        "gap": answer.gap if answer.bound > 0 else None,
        "facts": _facts(answer, rate),
        "share": packed_floats(drawn.fullest(shares_of(answer))),
        **load_content(answer, drawn),
    }
    if isinstance(answer, Schedule):
        found["player"] = player_content(answer, drawn, MOST_CELLS // sharing)
    if drawn.whole:
        each = found["player"]["stepsEach"] if isinstance(answer, Schedule) else 1
        found["ways"] = _ways(answer, asked, MOST_HOPS // sharing, each)
    return found


def _ways(answer: Answer, asked: Ints, room: int, steps_each: int) -> dict[str, Any] | None:
    """Return what a page has of the ways of pairs."""
    if isinstance(answer, Flow):
        return flow_content(answer, asked, room)
    if isinstance(answer, Routes):
        return route_content(answer, asked, room)
    return send_content(answer, asked, room, steps_each)


def topology_content(topology: Topology) -> dict[str, Any]:
    """Return what a page has of a topology without an answer."""
    return {
        "kind": "topology",
        "facts": [
            *_sizes(topology),
            ["degree", f"{_range(topology.out_degree)} out, {_range(topology.in_degree)} in"],
            ["capacity", span(topology.capacity.tolist())],
            *_made(topology.provenance),
        ],
    }


def _facts(answer: Answer, rate: Rate | None) -> list[list[str]]:
    """Return labels and texts, the most important first."""
    topology, bottleneck = answer.problem.topology, answer.bottleneck()._facts()
    return [
        *_sizes(topology),
        ["time", f"{answer.time:.9g}, in units of one shard over a link of capacity 1"],
        ["bound", _bound(answer)],
        ["gap", _gap(answer)],
        ["bottleneck", bottleneck["saturated"]],
        ["proof", f"the bound is proven by {bottleneck['proof']}"],
        *_own(answer),
        *_physical(answer, rate),
        ["method", answer.method],
        ["checked", _checked(answer)],
        *_made(answer.provenance),
    ]


def _sizes(topology: Topology) -> list[list[str]]:
    sizes = (
        f"{len(topology.terminals):,} terminals, {topology.nodes:,} nodes, {topology.links:,} links"
    )
    notes = [["notes", "; ".join(topology.notes)]] if topology.notes else []
    return [["topology", topology.name], ["size", sizes], *notes]


def _bound(answer: Answer) -> str:
    if answer.bound <= 0:
        return "none is claimed"
    return f"{answer.bound:.9g}, certified: no all-to-all on this network takes less"


def _gap(answer: Answer) -> str:
    if answer.bound <= 0:
        return "unknown without a bound"
    if answer.gap <= PROVEN:
        return "none: this is optimal, and proven to be"
    return f"{answer.gap:.3%} at most from the best there can be"


def _checked(answer: Answer) -> str:
    layered = isinstance(answer, Routes) and answer.layers is not None
    return CHECKED[type(answer)] + (", and cannot deadlock in their layers" if layered else "")


def _own(answer: Answer) -> list[list[str]]:
    """Return what only one kind of answer has."""
    if isinstance(answer, Flow):
        return [["status", status_in_words(answer.status)]]
    if isinstance(answer, Routes):
        most = int(answer.routes_per_pair().max())
        layers = "not assigned" if answer.layers is None else counted(answer.layers, "layer")
        return [["routes", f"{answer.count:,}, at most {most} per pair"], ["layers", layers]]
    chunks = f"{answer.chunks_per_shard} per shard, {answer.loss:.3%} above the fractional time"
    return [["steps", f"{answer.steps:,}, {answer.sends:,} sends"], ["chunks", chunks]]


def _physical(answer: Answer, rate: Rate | None) -> list[list[str]]:
    """Return what it means in bytes, if it is known what a link of capacity 1 carries."""
    topology = answer.problem.topology
    known = link_rate(topology, rate)
    if known is None:
        return []
    fabric = Fabric(topology, known)
    found = physical(answer, fabric)
    most = found.get("throughput_bound_GBps")
    limit = "" if most is None else f", at most {most:.4g}"
    return [
        ["links", fabric.links_in_words()],
        ["throughput", f"{found['throughput_GBps']:.4g} GB/s per node{limit}"],
    ]


def _made(provenance: object) -> list[list[str]]:
    return [] if provenance is None else [["made by", str(provenance)]]


def _range(degrees: Ints) -> str:
    return span([float(np.min(degrees)), float(np.max(degrees))])
