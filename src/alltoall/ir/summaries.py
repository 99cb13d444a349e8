"""The numbers that sum up an answer, by the names that the command line prints them under."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from alltoall.ir.answer import bottleneck_line
from alltoall.ir.direct import direct_notes
from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

Answer: TypeAlias = Flow | Routes | Schedule
Summary: TypeAlias = dict[str, Any]

ORDER = (
    *("topology", "nodes", "terminals", "links"),
    *("time", "fractional_time", "fractional_bound", "bound", "gap", "bottleneck", "flow", "loss"),
    *("routes", "max_routes_per_pair", "layers", "common_factor_chunks"),
    *("steps", "chunks_per_shard", "loss_by_chunks", "least_loss_by_chunks", "sends"),
    *("method", "status", "seconds", "notes", "phases", "robust"),
)
"""The order of the names in every summary; others come after these."""


def summary_of(answer: Answer) -> Summary:
    """Return what an answer says, as plain values."""
    topology = answer.problem.topology
    found = {**sizes_of(topology), "notes": [*topology.notes, *direct_notes(answer)]}
    found |= {"time": answer.time, "bound": answer.bound, "gap": answer.gap}
    found |= {"bottleneck": bottleneck_line(answer), "method": answer.method, **_own(answer)}
    return in_order(found)


def sizes_of(topology: Topology) -> Summary:
    """Return the name of a topology, and how large it is."""
    return {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
    }


def in_order(found: Mapping[str, Any]) -> Summary:
    """Return a summary with its names in their order."""
    known = {key: found[key] for key in ORDER if key in found}
    return known | {key: value for key, value in found.items() if key not in known}


def _own(answer: Answer) -> Summary:
    """Return what only one kind of answer has."""
    if isinstance(answer, Flow):
        return {"flow": answer.rate, "status": answer.status.value}
    if isinstance(answer, Routes):
        most = int(answer.routes_per_pair().max())
        return {"routes": answer.count, "max_routes_per_pair": most, "layers": answer.layers}
    return {
        "fractional_time": answer.fractional_time,
        "loss": answer.loss,
        "steps": answer.steps,
        "chunks_per_shard": answer.chunks_per_shard,
        "sends": answer.sends,
    }
