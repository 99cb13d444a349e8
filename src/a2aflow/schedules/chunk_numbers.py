"""Into how many chunks a shard may be cut: which numbers are worth trying, and what they cost."""

import numpy as np

from a2aflow.ir.chunks import chunks_of
from a2aflow.schedules.timed_chunks import amounts_of, capacity_unit
from a2aflow.schedules.timestepped import TimedFlow

FINEST_GRID = 2.0**40
"""Units of duration beyond which they are not counted, but measured."""


def on_grid(flow: TimedFlow, chunks_per_shard: int) -> bool:
    """Whether durations are to be whole: all chunks are as large, and a unit is not too long."""
    amounts = amounts_of(flow)
    sizes = amounts[amounts > 0] / chunks_of(amounts[amounts > 0], chunks_per_shard)
    units = chunks_per_shard * capacity_unit(flow) * flow.time
    return bool(np.ptp(sizes) <= 1e-9 * sizes.max()) and 0.5 <= units <= FINEST_GRID


def choices_of(flow: TimedFlow, most_chunks: int) -> list[int]:
    """Return the numbers of chunks per shard to try.

    These are all up to `most_chunks` that make equal chunks, and those that cut a shard of mean
    size into up to `most_chunks`, doubling: chunks of an uneven demand are never quite equal.
    """
    amounts = amounts_of(flow)
    mean = float(amounts[amounts > 0].mean())
    doubling = {min(2**power, most_chunks) for power in range(most_chunks.bit_length() + 1)}
    rough = {max(1, round(chunks / mean)) for chunks in doubling}
    return sorted(rough | {chunks for chunks in range(1, most_chunks + 1) if on_grid(flow, chunks)})


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
