"""GOAL: per rank a list of sends and receives with labels, and what requires what.

`a requires b` starts a when b has ended, `a irequires b` when b has started. Comments say what the
numbers come from: how large shards are, of an uneven demand for every pair.
"""

from collections.abc import Iterator

import numpy as np

from alltoall.ir.schedule import Schedule
from alltoall.lowering.options import Options
from alltoall.lowering.programs.traffic import Operation, Traffic, traffic_of

MAX_NAME = 200
"""How much of a topology's name a comment holds."""


def emit_goal(schedule: Schedule, options: Options) -> str:
    """Lower a schedule to GOAL."""
    return "".join(_lines(traffic_of(schedule, options)))


def _lines(traffic: Traffic) -> Iterator[str]:
    name = " ".join(traffic.name.split())[:MAX_NAME].encode("ascii", "replace").decode()
    yield f"num_ranks {len(traffic.ranks)}\n"
    yield f"// alltoall name {name}\n"
    yield f"// alltoall shard {traffic.unit}\n"
    for rank, operations in enumerate(traffic.ranks):
        yield f"\nrank {rank} {{\n"
        if traffic.shard.counts is not None:
            row = traffic.shard.counts[rank]
            for to in np.flatnonzero(row).tolist():
                yield f"// alltoall to {to} {row[to]}\n"
        for index, operation in enumerate(operations):
            yield from _operation(index, operation)
        yield "}\n"


def _operation(index: int, operation: Operation) -> Iterator[str]:
    sends, peer, tag, size, after, beside = operation
    does = f"send {size}b to {peer}" if sends else f"recv {size}b from {peer}"
    yield f"l{index + 1}: {does} tag {tag}\n"
    for word, others in (("requires", after), ("irequires", beside)):
        for other in others:
            yield f"l{index + 1} {word} l{other + 1}\n"
