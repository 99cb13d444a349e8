"""The headline of an answer: its throughput beside shortest paths and the proven maximum.

With a link rate, numbers are GB/s per node and more is better; without, shard times and less is
better.
"""

from dataclasses import replace
from typing import Any, cast

from alltoall.ir.answer import Answer, Bottleneck
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.summaries import Summary, headline, physical, proof_in_words, summary_of
from alltoall.ir.words import PROVEN, counted
from alltoall.reports.diagram import Diagram
from alltoall.reports.packed import packed_ints
from alltoall.routes.baselines.tables import METHOD

UNITS = {True: "GB/s per node, more is better", False: "shard times, less is better"}
"""What bars show, with and without a link rate."""


def facts_of_answer(answer: Answer, rate: Rate | None, shortest: float | None) -> Summary:
    """Return the summary of an answer; `shortest` is the baseline's time."""
    learnt = {} if shortest is None or answer.method == METHOD else {"shortest_path_time": shortest}
    answer, topology = replace(cast(Any, answer), learnt=learnt), answer.problem.topology
    known = link_rate(topology, rate)
    fabric = {} if known is None else physical(answer, Fabric(topology, known))
    return summary_of(answer) | fabric


def headline_content(summary: Summary) -> dict[str, Any]:
    """Return the sentences and the bars of a headline."""
    rated = "throughput_GBps" in summary
    reached, *versus = headline(summary)
    bars = {
        "baseline": ("shortest-path routing", "shortest_path_time"),
        "own": (summary["method"], "time"),
        "bound": ("proven minimum", "bound"),
    }
    if rated:
        bars = {
            "baseline": ("shortest-path routing", "shortest_path_throughput_GBps"),
            "own": (summary["method"], "throughput_GBps"),
            "bound": ("proven maximum", "throughput_bound_GBps"),
        }
    return {
        "answer": reached,
        "versus": "".join(versus),
        "proof": proof_in_words(summary) if summary["bound"] > 0 else "no bound is claimed",
        "unit": UNITS[rated],
        "bars": [
            [role, name, summary[key]] for role, (name, key) in bars.items() if summary.get(key)
        ],
        "optimal": bool(summary["bound"] > 0 and summary["gap"] <= PROVEN),
    }


def proof_content(bottleneck: Bottleneck, diagram: Diagram) -> dict[str, Any] | None:
    """Return the marked part of the drawing: a cut or the links that prove the bound.

    A cut marks its links and the nodes on its smaller side. If all links count alike, nothing is
    marked, and the legend says so.
    """
    proof, inside = bottleneck.proof, bottleneck.inside
    links = counted(len(proof), "link")
    if not len(proof):
        return None
    if inside is not None:
        text = f"proving cut: {links} around {counted(len(inside), 'node')}"
    elif len(proof) < bottleneck.topology.links:
        text = f"bound proven by {links} of {bottleneck.topology.links:,}"
    elif bottleneck.even:
        return {"text": "bound: total hops / total capacity, every link counts alike"}
    else:
        return {"text": "bound: distances over all links"}
    return {
        "text": text,
        "lines": packed_ints(diagram.lines_of(proof)),
        "nodes": None if inside is None else packed_ints(diagram.groups_within(inside)),
    }
