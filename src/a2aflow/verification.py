"""The check of lowered files: parse, execute on real bytes, and measure on a topology."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from a2aflow.check.program.alltoall import AllToAllReport, check_all_to_all
from a2aflow.check.program.interpret_plan import check_plan
from a2aflow.check.program.memory import MAX_NAMED
from a2aflow.check.program.messages import check_messages
from a2aflow.check.program.pacing import Hop, paced_time
from a2aflow.errors import VerificationError
from a2aflow.ir.chunks import Chunks
from a2aflow.ir.demand import Demand
from a2aflow.ir.files.text import read_text
from a2aflow.ir.messages import Messages
from a2aflow.ir.problem import Problem
from a2aflow.ir.program import Program
from a2aflow.ir.topology import Topology
from a2aflow.lowering import MAX_FILE_BYTES, RUNTIMES, Lowered, parse_program
from a2aflow.lowering.programs.msccl.complete import refusals

Loads: TypeAlias = Mapping[tuple[int, int, int], float]
"""Shards by step, sender and receiver."""

Bound: TypeAlias = Callable[[Problem], float]
"""What proves a bound on the time of a problem."""


def verify_lowered(
    path: Path, topology: Topology | None = None, bound: Bound | None = None
) -> dict[str, Any]:
    """Check a lowered file of any target; return what it is, or raise what is wrong with it.

    On a topology, ranks may only send over links, or over paths through nodes that are not
    terminals. `time` is then the sum over steps of the largest load of a link over its capacity, in
    shards: the steps of `pacing` for a program, which has none of its own, for a plan its barriers,
    and for messages their own. `gap` compares it to what `bound` proves of the problem.
    """
    return verify_text(read_text(path, MAX_FILE_BYTES), str(path), topology, bound)


def verify_text(
    text: str, where: str, topology: Topology | None = None, bound: Bound | None = None
) -> dict[str, Any]:
    """Check the text of a lowered file; see `verify_lowered`."""
    kind, lowered = parse_program(text, where)
    report, shards = _judged(lowered)
    if not report.correct:
        raise VerificationError(where, report.problems())
    found = _summary(kind, lowered, report)
    if kind == "msccl" and isinstance(lowered, Program):
        refused = refusals(lowered, text, where)
        found["runtimes"] = [name for name in RUNTIMES if name not in refused]
        found |= {"refused_by": refused} if refused else {}
    if topology is not None:
        found |= {"topology": topology.name}
        found["time"] = _time(lowered, report, shards, topology, where)
        if bound is not None:
            proven = bound(Problem(topology, _demand(lowered)))
            found |= {"bound": proven, "gap": found["time"] / proven - 1.0}
    return found


def _judged(lowered: Lowered) -> tuple[AllToAllReport, Loads]:
    """Execute what was lowered; return what came out, and the shards sent between ranks by step."""
    if isinstance(lowered, Messages):
        found = check_messages(lowered)
        return found.outcome, found.shards
    report = check_all_to_all(lowered) if isinstance(lowered, Program) else check_plan(lowered)
    # Programs and plans do not say how large shards are: all their chunks are taken to be equal.
    return report, {key: chunks / report.chunks.most for key, chunks in report.loads.items()}


def _demand(lowered: Lowered) -> Demand:
    """Return how much ranks send each other, in the unit of the time."""
    if isinstance(lowered, Messages):
        return lowered.demand
    counts = lowered.chunks.counts
    if counts is None:
        return Demand(lowered.chunks.ranks)
    own = np.eye(len(counts), dtype=np.bool_)
    return Demand(len(counts), np.where(own, 0, counts) / lowered.chunks.most)


def _summary(kind: str, lowered: Lowered, report: AllToAllReport) -> dict[str, Any]:
    found: dict[str, Any] = {
        "format": kind,
        "name": lowered.name,
        "ranks": len(lowered.ranks),
        **_chunks(report.chunks),
        "correct": report.correct,
        "steps": report.steps,
        "sends": int(report.sends.sum()),
        "max_sends_per_link": int(report.sends.max()),
        "scratch_chunks": max(each.scratch for each in lowered.ranks),
    }
    if isinstance(lowered, Messages):
        found["messages"] = lowered.messages
    elif isinstance(lowered, Program):
        found["thread_blocks"] = max(len(each.threads) for each in lowered.ranks)
    else:
        found["thread_blocks"] = max(len(each.blocks) for each in lowered.ranks)
    return found


def _chunks(chunks: Chunks) -> dict[str, int]:
    """Say how many chunks there are: of every shard, or in all and of the largest."""
    if chunks.per_shard is not None:
        return {"chunks_per_shard": chunks.per_shard}
    return {"chunks": chunks.total, "max_chunks_per_shard": chunks.most}


def _time(
    lowered: Lowered, report: AllToAllReport, shards: Loads, topology: Topology, where: str
) -> float:
    if len(report.sends) != len(topology.terminals):
        found = (
            f"a program for {len(report.sends)} ranks; {topology.name} has "
            f"{len(topology.terminals)} terminals"
        )
        raise VerificationError(where, [found])
    hops: dict[tuple[int, int], list[Hop]] = {}
    strays: list[str] = []
    for sender, receiver in np.argwhere(report.sends).tolist():
        path = _path(topology, sender, receiver)
        if path is None:
            strays.append(_stray(topology, sender, receiver))
        else:
            hops[sender, receiver] = path
    if strays:
        raise VerificationError(where, strays[:MAX_NAMED])
    capacity = _capacities(topology)
    if isinstance(lowered, Program):
        return paced_time(lowered, hops, capacity)
    return _time_of_steps(shards, hops, capacity)


def _time_of_steps(
    shards: Loads, hops: dict[tuple[int, int], list[Hop]], capacity: dict[Hop, float]
) -> float:
    loads: dict[tuple[int, Hop], float] = {}
    for (step, sender, receiver), amount in shards.items():
        for hop in hops[sender, receiver]:
            loads[step, hop] = loads.get((step, hop), 0.0) + amount
    worst: dict[int, float] = {}
    for (step, hop), amount in loads.items():
        worst[step] = max(worst.get(step, 0.0), amount / capacity[hop])
    return sum(worst.values())


def _stray(topology: Topology, sender: int, receiver: int) -> str:
    ends = topology.terminal_name(sender), topology.terminal_name(receiver)
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
