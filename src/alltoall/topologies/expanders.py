"""Random regular graphs: Jellyfish and Xpander. The same seed gives the same graph."""

import random

import networkx as nx
import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import check_size, from_pairs, require

_DRAWS = 1000  # a 2-regular draw is rarely connected; from degree 3 on the first nearly always is


def jellyfish(n: int, d: int, seed: int = 0) -> Topology:
    """Build Jellyfish: a random d-regular simple graph on `n` nodes, drawn until connected.

    The pairing method of networkx draws the graph, or its complement where that is sparser,
    from one random stream that `seed` starts. Singla, Hong, Popa and Godfrey, "Jellyfish:
    networking data centers randomly", NSDI 2012.
    """
    name = f"jellyfish:n={n},d={d},seed={seed}"
    _check_regular(name, n, d, seed)
    require(n * d % 2 == 0, name, f"n * d is {n * d}; it counts link ends, so it must be even")
    check_size(name, n, n * d)
    stream = random.Random(seed)
    for _ in range(_DRAWS):
        left, right = _random_regular(n, d, stream)
        if _connected(n, left, right):
            return from_pairs(name, n, left, right)
    raise _unlucky(name)


def xpander(n: int, d: int, seed: int = 0) -> Topology:
    """Build Xpander: a random lift of the complete graph on d + 1 nodes, drawn until connected.

    Each of the d + 1 nodes becomes a group of n / (d + 1), numbered consecutively, and each edge
    of the complete graph a random perfect matching between two groups. Valadarsky, Shahaf,
    Dinitz and Schapira, "Xpander: towards optimal-performance datacenters", CoNEXT 2016.
    """
    name = f"xpander:n={n},d={d},seed={seed}"
    _check_regular(name, n, d, seed)
    require(
        n % (d + 1) == 0,
        name,
        f"n is {n}; a lift of the complete graph on {d + 1} nodes needs a multiple of {d + 1}",
    )
    check_size(name, n, n * d)
    generator = np.random.default_rng(seed)
    for _ in range(_DRAWS):
        left, right = _random_lift(d + 1, n // (d + 1), generator)
        if _connected(n, left, right):
            return from_pairs(name, n, left, right)
    raise _unlucky(name)


def _check_regular(name: str, n: int, d: int, seed: int) -> None:
    require(seed >= 0, name, f"the seed is {seed}; expected 0 or more")
    require(1 <= d < n, name, f"the degree is {d}; expected 1 to n - 1 = {n - 1}")
    require(d > 1 or n == 2, name, "a graph of degree 1 is connected only on 2 nodes")


def _random_regular(n: int, d: int, stream: random.Random) -> tuple[Ints, Ints]:
    # The pairing method hardly ever succeeds on dense graphs, but their complements are sparse.
    dense = 2 * d > n
    graph = nx.random_regular_graph(n - 1 - d if dense else d, n, seed=stream)
    edges = np.array(graph.edges, dtype=np.int64).reshape(-1, 2)
    if not dense:
        return edges[:, 0], edges[:, 1]
    absent = np.ones((n, n), dtype=np.bool_)
    absent[edges[:, 0], edges[:, 1]] = absent[edges[:, 1], edges[:, 0]] = False
    left, right = np.nonzero(np.triu(absent, 1))
    return left.astype(np.int64), right.astype(np.int64)


def _random_lift(groups: int, size: int, generator: np.random.Generator) -> tuple[Ints, Ints]:
    first, second = np.triu_indices(groups, 1)
    members = np.tile(np.arange(size, dtype=np.int64), (len(first), 1))
    left = first[:, None] * size + members
    right = second[:, None] * size + generator.permuted(members, axis=1)
    return left.ravel(), right.ravel()


def _connected(n: int, left: Ints, right: Ints) -> bool:
    matrix = coo_array((np.ones(len(left)), (left, right)), shape=(n, n))
    components, _ = connected_components(matrix, directed=False)
    return bool(components == 1)


def _unlucky(name: str) -> TopologyError:
    return TopologyError(
        f"{name}: none of {_DRAWS} random graphs was connected; "
        "choose another seed, a larger degree or fewer nodes"
    )
