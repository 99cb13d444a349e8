"""The optimum from outside: the plain program per pair, by scipy, sharing no code with alltoall."""

from typing import Any

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import block_diag, coo_array, csr_array, hstack


def best_time(
    nodes: int, links: list[tuple[int, int, float]], demand: dict[tuple[int, int], float]
) -> float | None:
    """Return the least time in which a demand fits the capacities; None if scipy loses its way.

    Minimise z with, for every pair, a flow of its demand, and on every link a load of at most z
    times its capacity. Amounts are in units of the largest demand, capacities of the largest one.
    """
    tail, head, given = (np.array(column) for column in zip(*links, strict=True))
    most, wide = max(demand.values()), float(given.max())
    count, capacity = len(links), given / wide
    ones, every = np.ones(count), np.arange(count)
    incidence = coo_array((ones, (head, every)), shape=(nodes, count)) - coo_array(
        (ones, (tail, every)), shape=(nodes, count)
    )
    wanted = np.zeros((len(demand), nodes))
    for row, ((source, destination), amount) in zip(wanted, demand.items(), strict=True):
        row[source], row[destination] = -amount / most, amount / most
    conserve: Any = hstack([block_diag([incidence] * len(demand)), csr_array((wanted.size, 1))])
    # One row in z per link, divided by its capacity so that all rows are loads over capacity.
    share: Any = coo_array((1 / capacity, (every, every)), shape=(count, count))
    fit: Any = hstack([*[share] * len(demand), csr_array(-np.ones((count, 1)))])
    cost = np.zeros(len(demand) * count + 1)
    cost[-1] = 1.0
    for method in ("highs", "highs-ipm"):
        found = linprog(
            cost,
            A_ub=fit,
            b_ub=np.zeros(count),
            A_eq=conserve,
            b_eq=wanted.ravel(),
            method=method,
        )
        if found.status == 0 and found.fun is not None:
            return float(found.fun * most / wide)
    return None
