"""Uneven demands that everything after scheduling is tried on."""

import numpy as np
from hypothesis import strategies as st

from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import uneven_hops
from strategies import fabrics, topologies


def lopsided(topology: Topology, seed: int = 0) -> Problem:
    """Return a demand of all sizes, with silent, deaf and idle terminals, on a topology."""
    random, count = np.random.default_rng(seed), len(topology.terminals)
    matrix = np.round(random.uniform(0, 2, (count, count)), 2)
    matrix[random.uniform(size=matrix.shape) < 0.4] = 0.0
    matrix[0, count - 1] = 3.0
    matrix[1] = matrix[:, count // 2] = 0.0
    matrix[2] = matrix[:, 2] = 0.0
    np.fill_diagonal(matrix, 0.0)
    return Problem(topology, Demand(count, matrix))


def scattered(problem: Problem, seed: int = 0) -> Schedule:
    """Return a schedule whose counts have nothing to do with the sizes of the shards."""
    random, rows = np.random.default_rng(seed), np.arange(problem.demand.terminals)
    wanted = problem.demand.rows(rows) > 0
    counts = np.where(wanted, random.integers(1, 6, wanted.shape), 0)
    return uneven_hops(problem, Chunks(len(rows), counts=counts))


CASES = {
    "ring": scattered(lopsided(build("ring:6"))),
    "torus": scattered(lopsided(build("torus:3x3"), 1)),
    "hosts": scattered(lopsided(with_host_bandwidth(build("hypercube:3"), 2), 2)),
}


@st.composite
def uneven_problems(draw: st.DrawFn) -> Problem:
    """Draw a fabric and a demand on it, of which many pairs have none."""
    topology = draw(topologies(max_nodes=6) | fabrics())
    count = len(topology.terminals)
    amounts = st.sampled_from([0.0, 0.0, 0.1, 0.5, 1.0, 2.3])
    cells = draw(st.lists(amounts, min_size=count**2, max_size=count**2))
    matrix = np.array(cells).reshape(count, count)
    np.fill_diagonal(matrix, 0.0)
    matrix[0, 1] = matrix[0, 1] or 1.0
    return Problem(topology, Demand(count, matrix))
