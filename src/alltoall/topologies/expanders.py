"""Expanders: Jellyfish and Xpander, random regular graphs, and the best networks found by search.

The same seed gives the same graph. `best:n=64,d=4` is read from a package file that
`benchmarks/catalogue.py` writes: for every size and degree searched, the heads of all links as
bytes, in order of tails, and the certified time.
"""

import random
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Floats, Ints, reachable
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import check_size, from_arcs, from_pairs, require

FILE = Path(__file__).with_name("catalogue.npz")
"""The catalogue."""

Key = tuple[int, int, bool]
"""A size, a degree, and whether links are one way."""

_DRAWS = 1000
"""Graphs drawn before giving up: 2-regular ones are rarely connected, denser ones nearly always."""


def best(n: int, d: int, bidirectional: bool = False) -> Topology:
    """Build the best network found by search, of `n` nodes with `d` ports each.

    It has one-way links, d out of every node and d into it, or cables if `bidirectional`. Found
    among lifts of small graphs and by annealing; docs/design.md says how good they are.
    """
    name = f"best:n={n},d={d}" + (",bidirectional=true" if bidirectional else "")
    table, heads = _catalogue()
    if (n, d, not bidirectional) not in table:
        low, high = np.min(list(table), axis=0), np.max(list(table), axis=0)
        raise TopologyError(
            f"{name}: not in the catalogue, which has n = {low[0]} to {high[0]} and "
            f"d = {low[1]} to {high[1]}; run alltoall design"
        )
    start, end, time, bound = table[n, d, not bidirectional]
    tail = np.repeat(np.arange(n, dtype=np.int64), d)
    note = f"from the catalogue: certified time {time:.6g}, at least {bound:.6g}"
    return from_arcs(name, n, tail, heads[start:end].astype(np.int64), notes=(note,))


def catalogued(n: int, d: int) -> list[str]:
    """Return the SPECs of the entries of a size and degree."""
    found = {True: f"best:n={n},d={d}", False: f"best:n={n},d={d},bidirectional=true"}
    return [spec for one_way, spec in found.items() if (n, d, one_way) in _catalogue()[0]]


@cache
def _catalogue() -> tuple[dict[Key, tuple[int, int, float, float]], Ints]:
    """Return the range of heads, the time and the bound of every entry, and the heads of all."""
    with np.load(FILE) as file:
        keys, start = file["key"].tolist(), file["start"].tolist()
        rows = zip(start, start[1:], file["time"].tolist(), file["bound"].tolist(), strict=False)
        table = {(n, d, bool(way)): row for (n, d, way), row in zip(keys, rows, strict=True)}
        return table, file["heads"]


def times() -> dict[str, Floats]:
    """Return keys, certified times and bounds of all entries, and `kautz` times."""
    with np.load(FILE) as file:
        return {name: file[name] for name in ("key", "time", "bound", "kautz")}


def jellyfish(n: int, d: int, seed: int = 0) -> Topology:
    """Build Jellyfish: a random d-regular simple graph on `n` nodes, drawn until connected.

    The pairing method of networkx draws the graph, or its complement where that is sparser,
    from one random stream that `seed` starts. Singla, Hong, Popa and Godfrey, "Jellyfish:
    networking data centers randomly", NSDI 2012.
    """
    name = f"jellyfish:n={n},d={d},seed={seed}"
    _check_regular(name, n, d, seed)
    require(n * d % 2 == 0, name, f"n * d is {n * d}; it counts link ends, so it must be even")
    stream = random.Random(seed)
    return _draw_connected(name, n, d, lambda: _random_regular(n, d, stream))


def xpander(n: int, d: int, seed: int = 0) -> Topology:
    """Build Xpander: a random lift of the complete graph on d + 1 nodes, drawn until connected.

    Each of the d + 1 nodes becomes a group of n / (d + 1), numbered consecutively, and each edge
    of the complete graph a random perfect matching between two groups. Valadarsky, Shahaf,
    Dinitz and Schapira, "Xpander: towards optimal-performance datacenters", CoNEXT 2016.
    """
    name = f"xpander:n={n},d={d},seed={seed}"
    _check_regular(name, n, d, seed)
    needs = f"a lift of the complete graph on {d + 1} nodes needs a multiple of {d + 1}"
    require(n % (d + 1) == 0, name, f"n is {n}; {needs}")
    generator = np.random.default_rng(seed)
    return _draw_connected(name, n, d, lambda: _random_lift(d + 1, n // (d + 1), generator))


def _check_regular(name: str, n: int, d: int, seed: int) -> None:
    require(seed >= 0, name, f"the seed is {seed}; expected 0 or more")
    require(1 <= d < n, name, f"the degree is {d}; expected 1 to n - 1 = {n - 1}")
    require(d > 1 or n == 2, name, "a graph of degree 1 is connected only on 2 nodes")


def _draw_connected(name: str, n: int, d: int, draw: Callable[[], tuple[Ints, Ints]]) -> Topology:
    check_size(name, n, n * d)
    for _ in range(_DRAWS):
        left, right = draw()
        tail, head = np.concatenate((left, right)), np.concatenate((right, left))
        if reachable(n, tail, head, 0).all():
            return from_pairs(name, n, left, right)
    raise TopologyError(
        f"{name}: none of {_DRAWS} random graphs was connected; "
        "choose another seed, a larger degree or fewer nodes"
    )


def _random_regular(n: int, d: int, stream: random.Random) -> tuple[Ints, Ints]:
    # The pairing method hardly ever succeeds on dense graphs, but their complements are sparse.
    dense = 2 * d > n
    degree = n - 1 - d if dense else d
    graph = import_module("networkx").random_regular_graph(degree, n, seed=stream)
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
