"""From weighted paths to `Routes`: what all routing methods end with."""

import numpy as np
from numpy.typing import NDArray

from a2aflow.ir.arrays import Floats, Ints, inner_index
from a2aflow.ir.certificate import Certificate
from a2aflow.ir.problem import Problem
from a2aflow.ir.routes import Routes
from a2aflow.paths.candidates import Candidates

NEGLIGIBLE = 1e-9
"""Weights below this share of the pair's demand are noise of the solver."""


def routes_from_weights(
    problem: Problem,
    paths: Candidates,
    weight: Floats,
    certificate: Certificate,
    method: str,
    denominator: int | None = None,
    layer: Ints | None = None,
) -> Routes:
    """Return routes of the paths with weight, scaled so that each pair carries its demand."""
    demand = _demand_of(problem, paths)
    weight = np.where(weight > NEGLIGIBLE * demand, weight, 0.0)
    pair = paths.source * len(problem.topology.terminals) + paths.destination
    total = np.bincount(pair, weight)[pair]
    kept = np.flatnonzero(weight)
    chosen = select_paths(paths, kept)
    return Routes(
        problem=problem,
        source=chosen.source,
        destination=chosen.destination,
        start=chosen.start,
        link=chosen.link,
        weight=weight[kept] / total[kept] * demand[kept],
        certificate=certificate,
        method=method,
        layer=None if layer is None else layer[kept],
        denominator=denominator,
    )


def select_paths(paths: Candidates, which: Ints) -> Candidates:
    """Return some of the paths, in the given order."""
    hops = np.diff(paths.start)[which]
    entries = np.repeat(paths.start[which], hops) + inner_index(hops)
    return Candidates(
        source=paths.source[which],
        destination=paths.destination[which],
        start=np.concatenate(([0], np.cumsum(hops))),
        link=paths.link[entries],
    )


def join_paths(parts: list[Candidates]) -> Candidates:
    """Return all paths of several sets, without duplicates, ordered by pair."""
    joined = concatenated(parts)
    return merge_equal(joined, np.zeros(joined.count))[0]


def concatenated(parts: list[Candidates]) -> Candidates:
    """Return the paths of several sets, one after the other."""
    return Candidates(
        source=np.concatenate([part.source for part in parts]),
        destination=np.concatenate([part.destination for part in parts]),
        start=np.concatenate(([0], np.cumsum(np.concatenate([np.diff(p.start) for p in parts])))),
        link=np.concatenate([part.link for part in parts]),
    )


def merge_equal(paths: Candidates, weight: Floats) -> tuple[Candidates, Floats]:
    """Return the distinct paths, ordered by pair, and the sum of the weights of each."""
    keys = path_keys(paths)
    # Sorting column by column is many times faster than `np.unique` over rows.
    order = np.lexsort(keys.T[::-1])
    fresh = np.ones(len(order), dtype=np.bool_)
    fresh[1:] = (keys[order[1:]] != keys[order[:-1]]).any(axis=1)
    total = np.bincount(np.cumsum(fresh) - 1, weight[order])
    return select_paths(paths, order[fresh]), total.astype(np.float64)


def path_keys(paths: Candidates) -> NDArray[np.int32]:
    """Return a row per path that is equal for equal paths only: its ends and all its links."""
    hops = np.diff(paths.start)
    keys = np.full((paths.count, int(hops.max()) + 2), -1, dtype=np.int32)
    keys[:, 0], keys[:, 1] = paths.source, paths.destination
    keys[np.repeat(np.arange(paths.count), hops), 2 + inner_index(hops)] = paths.link
    return keys


def _demand_of(problem: Problem, paths: Candidates) -> Floats:
    every = np.arange(len(problem.topology.terminals), dtype=np.int64)
    return problem.demand.rows(every)[paths.source, paths.destination]
