"""Link loads when all shortest paths of a pair share its traffic evenly, and how uneven they are.

Short distances bound the time from below, and a network reaches that bound only if its links are
loaded alike. The Euclidean norm of the loads counts both: scaled, it is never below the sum of all
loads, which is the sum of all distances, and equals it only if all loads are equal. Higher norms
see only the fullest links, which a solver relieves by longer paths, and lead to slower networks.
Brandes, "A faster algorithm for betweenness centrality", 2001.
"""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Floats, Ints


@njit(cache=True)
def load_cost(out: Ints, nodes: int) -> float:
    """Return the norm of all link loads, scaled so that equal loads give their sum."""
    load = shared_loads(out, nodes)
    links, total = 0, 0.0
    for node in range(nodes):
        for port in range(out.shape[1]):
            if out[node, port] != node:
                links += 1
                total += load[node, port] ** 2
    return float(np.sqrt(links * total))


@njit(cache=True)
def shared_loads(out: Ints, nodes: int) -> Floats:
    """Return the load of every port; row v of `out` has the successors of v, or v itself."""
    load = np.zeros((nodes, out.shape[1]))
    queue, depth = np.empty(nodes, np.int64), np.empty(nodes, np.int64)
    paths, behind = np.empty(nodes), np.empty(nodes)
    for source in range(nodes):
        depth[:] = -1
        paths[:] = 0.0
        behind[:] = 0.0
        queue[0], depth[source], paths[source] = source, 0, 1.0
        end = 1
        for begin in range(nodes):
            if begin >= end:
                break
            node = queue[begin]
            for port in range(out.shape[1]):
                other = out[node, port]
                if depth[other] < 0:
                    depth[other] = depth[node] + 1
                    queue[end] = other
                    end += 1
                if depth[other] == depth[node] + 1:
                    paths[other] += paths[node]
        for begin in range(end - 1, -1, -1):
            node = queue[begin]
            for port in range(out.shape[1]):
                other = out[node, port]
                if depth[other] == depth[node] + 1:
                    share = paths[node] / paths[other] * (1.0 + behind[other])
                    load[node, port] += share
                    behind[node] += share
    return load
