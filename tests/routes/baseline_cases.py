"""Problems that every baseline is run on, and what it is compared with."""

from functools import cache

import numpy as np

from alltoall.flows import SolveSettings, solve
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.settings import RouteSettings
from alltoall.topologies.operators import (
    drop_links,
    drop_nodes,
    set_capacities,
    with_host_bandwidth,
)
from alltoall.topologies.spec import build

SPECS = (
    "hypercube:3",
    "twisted-hypercube:3",
    "bipartite:4x4",
    "torus:3x3x3",
    "genkautz:n=16,d=4",
    "genkautz:n=27,d=4",
    "fattree:k=4",
    "dgx1",
)
CASES = (*SPECS, "punctured torus", "node-punctured torus", "hosted ring", "uneven capacities",
         "uneven demand")  # fmt: skip


@cache
def case(name: str) -> Problem:
    """Return the problem of that name."""
    if name in SPECS:
        return Problem.all_to_all(build(name))
    torus = build("torus:3x3x3")
    if name == "uneven demand":
        return Problem(torus, Demand(27, _uneven_matrix(27)))
    special = {
        "punctured torus": lambda: drop_links(torus, 3, seed=1),
        "node-punctured torus": lambda: drop_nodes(torus, 3, seed=1),
        "hosted ring": lambda: with_host_bandwidth(build("ring:6"), 1.0),
        "uneven capacities": lambda: set_capacities(
            build("hypercube:3"), {(0, 1): 0.01, (2, 3): 7.5, (4, 5): 1 / 3}
        ),
    }
    return Problem.all_to_all(special[name]())


def _uneven_matrix(terminals: int) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    """Return a sparse demand over three orders of magnitude, with senders that send nothing."""
    random = np.random.default_rng(7)
    matrix = np.exp(random.uniform(-3, 4, (terminals, terminals)))
    matrix[random.random((terminals, terminals)) < 0.5] = 0.0
    matrix[[3, 11]] = 0.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


@cache
def optimum(name: str) -> float:
    """Return the certified bound of the MCF: no routes take less time."""
    return solve(case(name), "grouped").bound


def settings(seconds: float = 5.0, gap: float = 0.02, epsilon: float = 0.1) -> RouteSettings:
    """Return settings under which every baseline is quick."""
    return RouteSettings(epsilon=epsilon, solve=SolveSettings(gap=gap, time_limit=seconds))
