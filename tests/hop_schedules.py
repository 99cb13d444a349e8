"""Plain schedules for tests of what comes after scheduling."""

from dataclasses import replace
from typing import Any

import numpy as np

from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import tree_paths

KEYS = ("step", "source", "destination", "chunk", "link")
"""What a schedule says of every send."""


def hop_schedule(topology: Topology, chunks_per_shard: int = 1) -> Schedule:
    """Send every chunk along a shortest path, one hop between terminals a step, all at once.

    Correct, not optimal. Nodes that are not terminals are passed within a step.
    """
    terminals = topology.terminals
    source, destination = np.nonzero(~np.eye(len(terminals), dtype=np.bool_))
    ends = terminals[source], terminals[destination]
    start, links = tree_paths(topology, np.ones(topology.links), *ends)
    rows = []
    for path, pair in enumerate(zip(source.tolist(), destination.tolist(), strict=True)):
        step = 0
        for link in links[start[path] : start[path + 1]].tolist():
            rows += [(step, *pair, chunk, link) for chunk in range(chunks_per_shard)]
            step += int(topology.head[link] in terminals)
    rows.sort()
    step, source, destination, chunk, link = np.array(rows).T
    return Schedule(
        problem=Problem.all_to_all(topology),
        chunks=Chunks(len(terminals), chunks_per_shard),
        steps=int(step.max()) + 1,
        step=step,
        source=source,
        destination=destination,
        chunk=chunk,
        link=link,
        certificate=Certificate(np.ones(topology.links), 1.0),
        fractional_time=1.0,
        method="hops",
    )


def uneven_hops(problem: Problem, chunks: Chunks) -> Schedule:
    """Send the chunks of a problem of any demand along shortest paths, as `hop_schedule` does."""
    plain = hop_schedule(problem.topology, chunks.most)
    kept = plain.chunk < chunks.of(plain.source, plain.destination)
    fewer: dict[str, Any] = {key: getattr(plain, key)[kept] for key in KEYS}
    certificate = Certificate(np.ones(problem.topology.links), 1e-9)
    fewer["steps"] = int(fewer["step"].max()) + 1
    return replace(plain, problem=problem, chunks=chunks, certificate=certificate, **fewer)


def with_moves(schedule: Schedule, moves: list[tuple[int, int, int, int, int]]) -> Schedule:
    """Return a schedule with more sends: step, source, destination, from node and to node.

    It is chunk 0 that moves.
    """
    topology = schedule.problem.topology
    rows = np.stack([getattr(schedule, key) for key in KEYS], axis=1).tolist()
    for step, source, destination, tail, head in moves:
        link = int(np.flatnonzero((topology.tail == tail) & (topology.head == head))[0])
        rows.append([step, source, destination, 0, link])
    columns: Any = np.array(sorted(rows)).T
    return replace(
        schedule,
        steps=int(columns[0].max()) + 1,
        **dict(zip(KEYS, columns, strict=True)),
    )
