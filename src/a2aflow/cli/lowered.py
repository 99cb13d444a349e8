"""The check of lowered files: parse, execute on real bytes, and measure on a topology."""

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from a2aflow.errors import VerificationError
from a2aflow.ir.files import read_text
from a2aflow.ir.program import Program
from a2aflow.ir.topology import Topology
from a2aflow.lower import MAX_FILE_BYTES, RUNTIMES, Lowered, parse_program
from a2aflow.lower.limits import excesses
from a2aflow.runtime.alltoall import AllToAllReport, check_all_to_all
from a2aflow.runtime.interpret_plan import check_plan

Hop = tuple[int, int]


def verify_lowered(
    path: Path, topology: Topology | None = None, bound: float | None = None
) -> dict[str, Any]:
    """Check a lowered file of any target; return what it is, or raise what is wrong with it.

    On a topology, ranks may only send over links, or over paths through nodes that are not
    terminals. `time` is then the sum over the depths of the program of the largest load of a link
    over its capacity, in shards; the depth of a send is one more than that of the deepest receive
    that its rank waited for (`runtime.interpret.Execution`). `gap` compares it to `bound`.
    """
    return verify_text(read_text(path, MAX_FILE_BYTES), str(path), topology, bound)


def verify_text(
    text: str, where: str, topology: Topology | None = None, bound: float | None = None
) -> dict[str, Any]:
    """Check the text of a lowered file; see `verify_lowered`."""
    kind, lowered = parse_program(text, where)
    report = check_all_to_all(lowered) if isinstance(lowered, Program) else check_plan(lowered)
    if not report.correct:
        raise VerificationError(where, report.problems())
    found = _summary(kind, lowered, report)
    if topology is not None:
        found |= {"topology": topology.name, "time": _time(report, topology, where)}
        if bound is not None:
            found |= {"bound": bound, "gap": found["time"] / bound - 1.0}
    return found


def _summary(kind: str, lowered: Lowered, report: AllToAllReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "format": kind,
        "name": lowered.name,
        "ranks": len(lowered.ranks),
        "chunks_per_shard": report.chunks_per_shard,
        "correct": report.correct,
        "steps": report.steps,
        "sends": int(report.sends.sum()),
        "max_sends_per_link": int(report.sends.max()),
        "scratch_chunks": max(each.scratch for each in lowered.ranks),
    }
    if isinstance(lowered, Program):
        found["thread_blocks"] = max(len(each.threads) for each in lowered.ranks)
        if kind == "msccl":
            found["runtimes"] = [name for name in RUNTIMES if not any(excesses(lowered, name))]
    else:
        found["thread_blocks"] = max(len(each.blocks) for each in lowered.ranks)
    return found


def _time(report: AllToAllReport, topology: Topology, where: str) -> float:
    if len(report.sends) != len(topology.terminals):
        raise VerificationError(
            where,
            [
                f"a program for {len(report.sends)} ranks; {topology.name} has "
                f"{len(topology.terminals)} terminals"
            ],
        )
    pairs = {(sender, receiver) for _, sender, receiver in report.loads}
    hops = {pair: _path(topology, *pair) for pair in pairs}
    strays = sorted(pair for pair, path in hops.items() if path is None)
    if strays:
        raise VerificationError(where, [_stray(topology, *pair) for pair in strays[:20]])
    capacity = _capacities(topology)
    loads: dict[tuple[int, Hop], float] = {}
    for (depth, *pair), chunks in report.loads.items():
        for hop in hops[pair[0], pair[1]] or []:
            loads[depth, hop] = loads.get((depth, hop), 0.0) + chunks / report.chunks_per_shard
    worst: dict[int, float] = {}
    for (depth, hop), load in loads.items():
        worst[depth] = max(worst.get(depth, 0.0), load / capacity[hop])
    return sum(worst.values())


def _stray(topology: Topology, sender: int, receiver: int) -> str:
    ends = topology.terminals[[sender, receiver]]
    return (
        f"rank {sender} sends to rank {receiver}, but no link or path through switches of "
        f"{topology.name} leads from node {ends[0]} to node {ends[1]}"
    )


def _capacities(topology: Topology) -> dict[Hop, float]:
    """Return the capacity from node to node, of all parallel links together."""
    capacity: dict[Hop, float] = {}
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    for hop, each in zip(ends, topology.capacity.tolist(), strict=True):
        capacity[hop] = capacity.get(hop, 0.0) + each
    return capacity


def _path(topology: Topology, sender: int, receiver: int) -> list[Hop] | None:
    """Return a shortest path between two ranks through nodes that are not terminals, if any."""
    start, goal = int(topology.terminals[sender]), int(topology.terminals[receiver])
    passes = np.ones(topology.nodes, dtype=np.bool_)
    passes[topology.terminals] = False
    parent = {start: start}
    queue = deque([start])
    while queue and goal not in parent:
        node = queue.popleft()
        for head in topology.head[topology.tail == node].tolist():
            if head not in parent and (head == goal or passes[head]):
                parent[head] = node
                queue.append(head)
    return list(_walk_back(parent, start, goal)) if goal in parent else None


def _walk_back(parent: dict[int, int], start: int, node: int) -> Iterator[Hop]:
    while node != start:
        yield parent[node], node
        node = parent[node]
