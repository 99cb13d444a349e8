"""A pool that collects weighted paths in compiled code, and grows as it has to."""

from typing import TypeAlias, TypeVar

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem

Numbers = TypeVar("Numbers", Ints, Floats)

Pool: TypeAlias = tuple[Ints, Ints, Ints, Floats, Ints]
"""(paths and links used), owner and end of each path, its weight, and all paths' links."""


@njit(cache=True)
def new_pool() -> Pool:
    """Return a pool without paths."""
    size = 1024
    used = np.zeros(2, dtype=np.int64)
    owner, end = np.empty(size, dtype=np.int64), np.empty(size, dtype=np.int64)
    return used, owner, end, np.empty(size), np.empty(size, dtype=np.int64)


@njit(cache=True)
def store(pool: Pool, owner: int, weight: float, backwards: Ints) -> Pool:
    """Return the pool with one more path, whose links are given from its last to its first."""
    used, owners, ends, weights, links = pool
    paths, filled = used[0], used[1]
    if paths == len(owners):
        owners, ends = longer(owners, 2 * paths), longer(ends, 2 * paths)
        weights = longer(weights, 2 * paths)
    if filled + len(backwards) > len(links):
        links = longer(links, 2 * len(links) + len(backwards))
    for place in range(len(backwards)):
        links[filled + place] = backwards[-1 - place]
    owners[paths], ends[paths], weights[paths] = owner, filled + len(backwards), weight
    used[0], used[1] = paths + 1, filled + len(backwards)
    return used, owners, ends, weights, links


@njit(cache=True)
def longer(values: Numbers, size: int) -> Numbers:
    """Return an array of a size that begins with `values`."""
    larger = np.empty(size, dtype=values.dtype)
    larger[: len(values)] = values
    return larger


def pooled_paths(problem: Problem, pool: Pool) -> tuple[Paths, Floats]:
    """Return the paths and weights of a pool; owners are `source * nodes + destination's node`."""
    (paths, filled), owner, end, weight, link = pool
    source, node = np.divmod(owner[:paths], problem.topology.nodes)
    start = np.concatenate((np.zeros(1, np.int64), end[:paths]))
    return Paths(source, problem.topology.position[node], start, link[:filled]), weight[:paths]
