"""Lower bounds on the all-to-all time, from the coarsest to the one that a topology's cuts prove.

| bound | holds for | needs |
|---|---|---|
| `regular_bound` | every d-regular digraph on N nodes (paper, Theorem 1 and eq:lb) | N and d |
| `cable_bound` | the same of cables, which lead back where a path came from | N and d |
| `distance_bound` | this topology and demand: every hop takes capacity | hop distances |
| `cut_bound` | this topology and demand: what crosses a cut takes its capacity | some cuts |
| a `Certificate` | this topology and demand, tight at the optimum | link lengths |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.flows import sizes
from alltoall.flows.program import length_bound
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import shortest_distances

Mask = NDArray[np.bool_]

CANCELLED_SHARE = 1e-12
"""A capacity below this share of all is what rounding left of links that cancel."""

SAME_EIGENVALUE = 1e-9
"""Eigenvalues that differ by a smaller share of the largest one are the same."""


@dataclass(frozen=True)
class CutParams:
    """How many cuts are tried.

    Nodes are swept along `spaces` of eigenvectors, in `mixtures` of them, and grown around at most
    `starts` terminals and along `neighbours` links of each.
    """

    spaces: int = 4
    mixtures: int = 32
    starts: int = 64
    neighbours: int = 16


CUTS = CutParams()
"""What cuts are searched by."""


def regular_bound(nodes: int, degree: int) -> Fraction:
    """Return the paper's bound for any `degree`-regular digraph: (sum of tree depths) / degree.

    A node reaches at most degree^k nodes in k hops, so the nodes fill a tree level by level.
    """
    _require(nodes >= 2 and degree >= 1, f"{nodes} nodes of degree {degree}")
    left, width, depth, total = nodes - 1, degree, 1, 0
    while left > 0 and degree > 1:
        here = min(left, width)
        total += here * depth
        left, width, depth = left - here, width * degree, depth + 1
    return Fraction(total, degree) if degree > 1 else Fraction(nodes * (nodes - 1), 2)


def cable_bound(nodes: int, degree: int) -> Fraction:
    """Return the bound for any `degree`-regular graph of cables, tighter than `regular_bound`.

    One of the ports of every node on a path leads back, so at most degree (degree - 1)^(k-1) nodes
    are at distance k. docs/methods.md derives it.
    """
    _require(nodes >= 2 and degree >= 1, f"{nodes} nodes of degree {degree}")
    _require(degree > 1 or nodes == 2, f"{nodes} nodes with one cable each are not connected")
    left, width, depth, total = nodes - 1, degree, 1, 0
    while left > 0:
        here = min(left, width)
        total += here * depth
        left, width, depth = left - here, width * (degree - 1), depth + 1
    return Fraction(total, degree)


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise UsageError(f"{what}; expected at least two nodes and a positive degree")


def distance_bound(problem: Problem) -> float:
    """Return total demand times hops over total capacity; exact for edge-transitive graphs."""
    return length_bound(problem, np.ones(problem.topology.links))


@dataclass(frozen=True, eq=False)
class Cut:
    """A set of nodes, what its terminals send out of it, and the capacity that leaves it."""

    inside: Mask
    demand: float
    capacity: float

    @property
    def bound(self) -> float:
        """The lower bound on the time that this cut proves."""
        return self.demand / self.capacity if self.demand > 0 else 0.0


def cut_bound(problem: Problem) -> Cut:
    """Return the worst cut found: of all cuts on few nodes, else of sweeps and local moves.

    Finding the worst cut is NP-hard, but every cut proves its bound, so a heuristic is honest.
    """
    candidates = _all_cuts if problem.topology.nodes <= sizes.ENUMERATED_NODES else _swept_cuts
    best = max((measure_cut(problem, each) for each in candidates(problem)), key=lambda c: c.bound)
    return _improved(problem, best)


def measure_cut(problem: Problem, inside: Mask) -> Cut:
    """Return what leaves a set of nodes, and the capacity of the links that leave it."""
    topology = problem.topology
    leaving = inside[topology.tail] & ~inside[topology.head]
    sends = inside[topology.terminals]
    matrix = problem.demand.matrix
    sent = sends.sum() * (~sends).sum() if matrix is None else matrix[sends][:, ~sends].sum()
    return Cut(inside, float(sent), float(topology.capacity[leaving].sum()))


def _all_cuts(problem: Problem) -> Iterator[Mask]:
    nodes = np.arange(problem.topology.nodes)
    for code in range(1, 2 ** len(nodes) - 1):
        yield (code >> nodes) & 1 == 1


def _swept_cuts(problem: Problem) -> Iterator[Mask]:
    """Yield the best prefix or suffix of several node orders."""
    for order in _orders(problem):
        yield _best_prefix(problem, order)
        yield _best_prefix(problem, order[::-1])


def _orders(problem: Problem) -> Iterator[Ints]:
    """Yield orders to sweep: along the graph's slowest modes, around terminals, across links."""
    topology = problem.topology
    spaces = _slow_spaces(topology)
    random = np.random.default_rng(0).standard_normal((topology.nodes, CUTS.mixtures))
    for space in (*spaces, np.hstack(spaces)):
        # Of equal eigenvalues only the space is known, not its vectors: these are the library's
        # choice, and may separate nothing. What is projected on the space is the same everywhere.
        projected = space @ (space.T @ random[:, : space.shape[1] ** 3])
        for values in projected.T:
            yield np.argsort(np.round(values / np.abs(values).max(), 9), kind="stable")
    starts = topology.terminals[:: -(-len(topology.terminals) // CUTS.starts)]
    for start, distance in zip(starts, _hops(topology, starts), strict=True):
        yield np.argsort(distance, kind="stable")
        # Nearer to this end of a link or to that one: the straight cuts of grids and cubes.
        ends = topology.head[topology.tail == start][: CUTS.neighbours]
        for other in _hops(topology, ends):
            yield np.argsort(distance - other, kind="stable")


def _hops(topology: Topology, starts: Ints) -> Floats:
    """Return the hops from some nodes to every node; what cannot be reached is farthest."""
    hops = shortest_distances(topology, np.ones(topology.links), starts)
    return np.minimum(hops, topology.nodes)


def _best_prefix(problem: Problem, order: Ints) -> Mask:
    """Return the prefix of an order whose outgoing demand is largest for its capacity."""
    topology = problem.topology
    position = np.empty(topology.nodes, dtype=np.int64)
    position[order] = np.arange(topology.nodes)
    ends = position[topology.tail], position[topology.head]
    capacity = _crossing(*ends, topology.capacity, topology.nodes)
    demand = _crossing_demand(problem, position[topology.terminals])
    bound = np.divide(demand, capacity, out=np.zeros_like(demand), where=capacity > 0)
    inside: Mask = position <= int(np.argmax(bound))
    return inside


def _crossing(begin: Ints, end: Ints, weight: Floats, nodes: int) -> Floats:
    """Return, for every prefix of the nodes, the weight of what begins in it and ends beyond it."""
    forward = begin < end
    enters = np.bincount(begin[forward], weight[forward], nodes)
    leaves = np.bincount(end[forward], weight[forward], nodes)
    return np.asarray(np.cumsum(enters - leaves), dtype=np.float64)


def _crossing_demand(problem: Problem, position: Ints) -> Floats:
    """Return, for every prefix of the nodes, what its terminals send beyond it."""
    nodes, terminals = problem.topology.nodes, len(position)
    if problem.demand.matrix is None:
        inside = np.cumsum(np.bincount(position, minlength=nodes))
        return np.asarray(inside * (terminals - inside), dtype=np.float64)
    source, destination = np.nonzero(problem.demand.matrix)
    amount = problem.demand.matrix[source, destination]
    return _crossing(position[source], position[destination], amount, nodes)


def _slow_spaces(topology: Topology) -> list[Floats]:
    """Return the spaces of the least eigenvalues of the Laplacian but 0, links taken both ways."""
    ends = (np.append(topology.tail, topology.head), np.append(topology.head, topology.tail))
    capacity = np.tile(topology.capacity, 2)
    degree = np.zeros(topology.nodes)
    np.add.at(degree, ends[0], capacity)
    if topology.nodes <= sizes.DENSE_NODES:
        laplacian = np.diag(degree)
        np.add.at(laplacian, ends, -capacity)
        values, vectors = np.linalg.eigh(laplacian)
        cuts = 1 + np.flatnonzero(np.diff(values[1:]) > SAME_EIGENVALUE * values[-1])
        return np.split(vectors[:, 1:], cuts, axis=1)[: CUTS.spaces]
    from scipy.sparse import coo_array, diags_array  # noqa: PLC0415 (slow to import)
    from scipy.sparse.linalg import eigsh  # noqa: PLC0415

    weight = coo_array((capacity, ends), shape=(topology.nodes,) * 2).tocsr()
    # Large eigenvalues converge fast and small ones slowly, so turn the spectrum around.
    turned = diags_array(2 * degree.max() - degree) + weight
    start = np.random.default_rng(0).standard_normal(topology.nodes)
    values, vectors = eigsh(turned.tocsr(), k=CUTS.spaces + 1, which="LA", v0=start, tol=1e-2)
    slow = vectors[:, np.argsort(-values)[1:]]
    return np.split(np.asarray(slow, dtype=np.float64), CUTS.spaces, axis=1)


def _improved(problem: Problem, cut: Cut) -> Cut:
    """Move single nodes across the cut while that raises its bound."""
    topology = problem.topology
    while True:
        capacity = cut.capacity + _moved(
            topology.tail, topology.head, topology.capacity, cut.inside
        )
        demand = cut.demand + _moved_demand(problem, cut.inside)
        real = capacity > CANCELLED_SHARE * topology.capacity.sum()
        bound = np.divide(demand, capacity, out=np.zeros_like(demand), where=real)
        node = int(np.argmax(bound))
        if bound[node] <= cut.bound * (1 + 1e-9):
            return cut
        inside = cut.inside.copy()
        inside[node] = ~inside[node]
        cut = measure_cut(problem, inside)


def _moved(tail: Ints, head: Ints, weight: Floats, inside: Mask) -> Floats:
    """Return how the weight that leaves `inside` changes when each node alone changes side."""
    nodes = len(inside)
    to_outside = np.bincount(tail, weight * ~inside[head], nodes)
    from_inside = np.bincount(head, weight * inside[tail], nodes)
    return np.where(inside, from_inside - to_outside, to_outside - from_inside)


def _moved_demand(problem: Problem, inside: Mask) -> Floats:
    """Return how the demand that leaves `inside` changes when each node alone changes side."""
    terminals = problem.topology.terminals
    sends = inside[terminals]
    if problem.demand.matrix is None:
        to_outside = np.full(len(terminals), float((~sends).sum())) - ~sends
        from_inside = np.full(len(terminals), float(sends.sum())) - sends
    else:
        to_outside = problem.demand.matrix @ ~sends
        from_inside = sends @ problem.demand.matrix
    moved = np.zeros(len(inside))
    moved[terminals] = np.where(sends, from_inside - to_outside, to_outside - from_inside)
    return moved
