"""Into how many chunks a shard may be cut: which numbers are worth trying, and what they cost."""

from math import ceil

import numpy as np

from alltoall.ir.chunks import chunks_of
from alltoall.ir.problem import Problem
from alltoall.schedules.timed_chunks import amounts_of, capacity_unit
from alltoall.schedules.timestepped import TimedFlow
from alltoall.settings import USUAL_MOST_CHUNKS

MOST_TIMES = 8
"""Shards that are up to so many times as large as the smallest are cut into chunks of one size."""

FINEST_GRID = 2.0**40
"""Units of duration beyond which they are not counted, but measured."""


def most_chunks(problem: Problem, asked: int | None) -> int:
    """Return the most chunks of a shard of mean size to try.

    If none are asked for, that is the usual number: of the smallest shard, if all others are a few
    times as large, for then all chunks can be of one size.
    """
    if asked is not None:
        return asked
    shard = common_shard(problem)
    return ceil(USUAL_MOST_CHUNKS * (mean_shard(problem) / shard if shard else 1.0))


def mean_shard(problem: Problem) -> float:
    """Return the mean demand of pairs that have any."""
    amounts = problem.demand.table()
    return float(amounts[amounts > 0].mean())


def common_shard(problem: Problem) -> float | None:
    """Return the smallest shard, if all others are a few times as large: groups may overlap."""
    if problem.demand.matrix is None:
        return 1.0
    amounts = problem.demand.matrix[problem.demand.matrix > 0]
    times = amounts / amounts.min()
    alike = times.max() <= MOST_TIMES and np.abs(times - np.rint(times)).max() <= 1e-9
    return float(amounts.min()) if alike else None


def on_grid(flow: TimedFlow, chunks_per_shard: int) -> bool:
    """Whether durations are to be whole: all chunks are as large, and a unit is not too long."""
    amounts = amounts_of(flow)
    sizes = amounts[amounts > 0] / chunks_of(amounts[amounts > 0], chunks_per_shard)
    units = chunks_per_shard * capacity_unit(flow) * flow.time
    return bool(np.ptp(sizes) <= 1e-9 * sizes.max()) and 0.5 <= units <= FINEST_GRID


def choices_of(flow: TimedFlow, asked: int | None) -> list[int]:
    """Return the numbers of chunks per shard to try, within the most that are asked for.

    These are all that make equal chunks, and those that cut a shard of mean size into 1, 2, 4, ...:
    chunks of an uneven demand are never quite equal.
    """
    problem = flow.expansion.problem
    most, mean = most_chunks(problem, asked), mean_shard(problem)
    doubling = {min(2**power, most) for power in range(most.bit_length() + 1)}
    largest = max(1, int(most / mean * (1 + 1e-9)))
    rough = {max(1, min(largest, round(chunks / mean))) for chunks in doubling}
    whole = (chunks for chunks in range(1, min(most, largest) + 1) if on_grid(flow, chunks))
    return sorted(rough.union(whole))


def least_loss(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return the loss that whole durations cost with C equal chunks per shard.

    No schedule can be below it where all links are equally wide.
    """
    exact = chunks_per_shard * capacity_unit(flow) * flow.time
    return float(np.ceil(exact * (1 - 1e-9)) / exact - 1)


def floor_of(flow: TimedFlow, chunks_per_shard: int) -> float:
    """Return a loss that no schedule with C chunks per shard can be below."""
    capacity = flow.expansion.problem.topology.capacity
    alike = np.ptp(capacity) == 0 and on_grid(flow, chunks_per_shard)
    return max(0.0, least_loss(flow, chunks_per_shard)) if alike else 0.0
