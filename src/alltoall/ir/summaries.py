"""Summaries of answers: plain values by the names that the command line prints them under."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.answer import GIGA, Answer
from alltoall.ir.fabric import Fabric
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import parse_size, rate_in_words
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import PROVEN, percent, rate_of

Summary: TypeAlias = dict[str, Any]

ORDER = (
    *("topology", "nodes", "terminals", "links", "bidirectional"),
    *("time", "shortest_path_time", "fractional_time", "fractional_bound", "bound", "gap"),
    *("saturated", "proof", "flow", "loss"),
    *("routes", "max_routes_per_pair", "layers", "common_factor_chunks"),
    *("steps", "chunks_per_shard", "loss_by_chunks", "least_loss_by_chunks", "sends"),
    *("method", "status", "seconds", "notes", "robust"),
)
"""The order of the names in every summary; others come after these."""


def summary_of(answer: Answer) -> Summary:
    """Return the facts of an answer as plain values."""
    topology = answer.problem.topology
    found = {**answer.learnt, **sizes_of(topology)}
    size, latency = found.pop("bytes", None), found.pop("step_latency", 0.0)
    found["notes"] = [*answer.notes, *direct_notes(answer)]
    found |= {"time": answer.time, "bound": answer.bound, "gap": answer.gap}
    found |= {**answer.bottleneck().words(), "method": answer.method, **_own(answer)}
    if topology.bytes_per_second is not None:
        fabric = Fabric(topology, topology.bytes_per_second)
        found |= physical(answer, fabric, size, latency)
    return in_order(found)


def sizes_of(topology: Topology) -> Summary:
    """Return the name and the size of a topology."""
    return {
        "topology": topology.name,
        "nodes": topology.nodes,
        "terminals": len(topology.terminals),
        "links": topology.links,
        "bidirectional": topology.bidirectional,
    }


def in_order(found: Mapping[str, Any]) -> Summary:
    """Return a summary with its names in their order."""
    known = {key: found[key] for key in ORDER if key in found}
    return known | {key: value for key, value in found.items() if key not in known}


def _own(answer: Answer) -> Summary:
    if isinstance(answer, Flow):
        return {"flow": answer.rate, "status": answer.status.value}
    if isinstance(answer, Routes):
        most = int(answer.routes_per_pair().max())
        return {"routes": answer.count, "max_routes_per_pair": most, "layers": answer.layers}
    if isinstance(answer, Schedule):
        keys = ("fractional_time", "loss", "steps", "chunks_per_shard", "sends")
        return {key: getattr(answer, key) for key in keys}
    return {}


def physical(
    answer: Answer, fabric: Fabric, shard_bytes: int | None = None, step_latency: float = 0.0
) -> dict[str, Any]:
    """Return an answer in GB/s and seconds, by the names of the JSON.

    `step_latency` is the cost of a step of a schedule, in shard times.
    """
    demand, rates = answer.problem.demand, fabric.link_rates / GIGA
    times = {
        "throughput_GBps": answer.time,
        "throughput_bound_GBps": answer.bound,
        "shortest_path_throughput_GBps": answer.learnt.get("shortest_path_time", 0.0),
    }
    found: dict[str, Any] = {"link_GBps": [float(rates.min()), float(rates.max())]}
    found |= {
        key: fabric.throughput(demand, time) / GIGA for key, time in times.items() if time > 0
    }
    if shard_bytes is None:
        return found
    steps = answer.steps if isinstance(answer, Schedule) else 0
    time = answer.time + steps * step_latency
    found |= {
        "bytes": shard_bytes,
        "transfer_seconds": fabric.seconds(time, shard_bytes),
        "transfer_GBps": fabric.throughput(demand, time) / GIGA,
        "bound_seconds": fabric.seconds(answer.bound, shard_bytes),
    }
    return found


def shard_size(problem: Problem, given: str | int | None) -> Summary:
    """Return the size of a shard for a summary; raise if links have no rate."""
    if given is None:
        return {}
    size = parse_size(given)
    if problem.topology.bytes_per_second is None:
        raise UsageError(
            "--bytes without --link-bandwidth; add what a link of capacity 1 carries, such as "
            "100G, or give capacities their units in an edge list"
        )
    return {"bytes": size}


ENDED = {
    "within_gap": " (within the gap asked for)",
    "time_limit": " (ended by the time limit)",
    "interrupted": " (interrupted)",
}
"""Endings of searches without a proven optimum."""

SAME = 1e-4
"""Shares below this are not mentioned."""


def headline(summary: Mapping[str, Any]) -> list[str]:
    """Compare an answer with the proven limit and with shortest paths."""
    return [*filter(None, (_reached(summary), _against_shortest_paths(summary)))]


def _reached(summary: Mapping[str, Any]) -> str:
    gap, status, rate = summary["gap"], summary.get("status"), summary.get("throughput_GBps")
    limit = summary["bound"] if rate is None else summary.get("throughput_bound_GBps")
    answer = shard_times(summary["time"]) if rate is None else f"{rate_of(rate)} per node"
    if status == "optimal" or 0 <= gap <= PROVEN:
        return f"{answer}, the proven {'minimum' if rate is None else 'maximum'}"
    if not limit:
        return answer
    beyond = f"{percent(gap)} above the proven limit of {limit:.6g}"
    if rate is not None:
        beyond = f"{percent(gap / (1 + gap))} below the proven limit of {rate_of(limit)}"
    return f"{answer}, {beyond}{ENDED.get(str(status), '')}"


def shard_times(time: float) -> str:
    """Return a time in shards over a link of capacity 1."""
    return f"{time:.6g} shard time{'' if f'{time:.6g}' == '1' else 's'}"


def _against_shortest_paths(summary: Mapping[str, Any]) -> str | None:
    if "shortest_path_time" not in summary:
        return None
    time, rate = summary["shortest_path_time"], summary.get("shortest_path_throughput_GBps")
    reach = shard_times(time) if rate is None else rate_of(rate)
    more = time / summary["time"] - 1
    if abs(more) < SAME:
        return f"as much as shortest-path routing ({reach})"
    side = "more" if more > 0 else "less"
    what = f"{side} throughput" if rate is None else side
    return f"{percent(abs(more))} {what} than shortest-path routing ({reach})"


def proof_in_words(summary: Mapping[str, Any]) -> str:
    """Return the proven limit and its reason."""
    limit = summary.get("throughput_bound_GBps")
    proof = f"({summary['proof']}; verified)"
    if limit is not None:
        return f"no routing can exceed {rate_of(limit)} per node {proof}"
    return f"no routing can take less than {summary['bound']:.6g} {proof}"


def link_in_words(summary: Mapping[str, Any]) -> str | None:
    """Return the rate of the links, or its range, or None if unknown."""
    if "link_GBps" not in summary:
        return None
    least, most = (rate_in_words(rate * 1e9) for rate in summary["link_GBps"])
    return least if least == most else f"{least} to {most}"


OPTIMAL_NOTE = (
    "direct sends are already optimal here: each shard straight to its destination takes the "
    "proven minimum"
)


def direct_notes(answer: Answer) -> list[str]:
    """Return the note that direct sends are optimal, where they are."""
    time = direct_time(answer.problem)
    return [OPTIMAL_NOTE] if time is not None and time <= answer.bound * (1 + PROVEN) else []


def direct_time(problem: Problem) -> float | None:
    """Return the time of direct sends, None if a pair has several direct paths or none."""
    topology, demand, switch = problem.topology, problem.demand, problem.topology.position < 0
    if not switch.any():
        if demand.uniform and topology.links < demand.total:
            return None
        source, destination = demand.pairs()
        capacity = np.zeros((topology.nodes, topology.nodes))
        np.add.at(capacity, (topology.tail, topology.head), topology.capacity)
        own = capacity[source, destination]
        return float((demand.of(source, destination) / own).max()) if own.all() else None
    # Else only where each terminal has links to and from the one switch, and there are no others.
    between = switch[topology.tail] != switch[topology.head]
    linked = topology.out_degree * topology.in_degree > 0
    if switch.sum() > 1 or not (between.all() and linked.all()):
        return None
    table, times = demand.table(), []
    for ends, load in ((topology.tail, table.sum(axis=1)), (topology.head, table.sum(axis=0))):
        width = np.bincount(ends, topology.capacity, topology.nodes)[topology.terminals]
        times.append(float((load / width).max()))
    return max(times)
