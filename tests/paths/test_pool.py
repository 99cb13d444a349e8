"""The pool in which compiled searches collect paths."""

import numpy as np

from alltoall.ir.problem import Problem
from alltoall.paths.pool import new_pool, pooled_paths, store
from alltoall.topologies.spec import build


def test_a_pool_grows_and_keeps_what_it_has() -> None:
    """Thousands of paths of different lengths come back as they went in, turned round."""
    problem = Problem.all_to_all(build("ring:5"))
    pool, stored = new_pool(), []
    random = np.random.default_rng(1)
    for number, size in zip(range(3000), np.tile([1, 2, 5, 7], 750), strict=True):
        path = random.integers(0, 10, int(size))
        source, node = number % 5, number // 5 % 5
        pool = store(pool, source * 5 + node, float(number), path)
        stored.append((source, node, float(number), path[::-1].tolist()))
    long = random.integers(0, 10, 50_000)
    pool = store(pool, 7, 0.5, long)
    stored.append((1, 2, 0.5, long[::-1].tolist()))
    paths, weight = pooled_paths(problem, pool)
    assert paths.count == len(stored)
    for index, (source, node, heavy, links) in enumerate(stored):
        assert (paths.source[index], paths.destination[index]) == (source, node)
        assert weight[index] == heavy
        assert paths.link[paths.start[index] : paths.start[index + 1]].tolist() == links
