"""Lower bounds on the all-to-all time, and `Description`: what needs no solver.

| bound | holds for | needs |
|---|---|---|
| `regular_bound` | every d-regular digraph on N nodes (paper, Theorem 1 and eq:lb) | N and d |
| `cable_bound` | every d-regular graph of cables, one of which leads back | N and d |
| `distance_bound` | this topology and demand: every hop takes capacity | hop distances |
| `cut_bound` | this topology and demand: traffic across a cut takes its capacity | some cuts |
| a `Certificate` | this topology and demand, tight at the optimum | link lengths |
"""

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from fractions import Fraction
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import TopologyError, UsageError
from alltoall.flows import sizes
from alltoall.flows.program import length_bound
from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.ir.answer import GIGA
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.fabric import Fabric
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import shortest_distances
from alltoall.topologies.properties import diameter, girth, mean_distance

Mask = NDArray[np.bool_]

ROUNDING_SHARE = 1e-12
"""Smaller shares of the total capacity are rounding errors of links that cancel."""

SAME_EIGENVALUE = 1e-9
"""Eigenvalues are equal if they differ by a smaller share of the largest one."""

CUT_SPACES = 4
"""Spaces of eigenvectors along which nodes are swept."""

CUT_STARTS = 32
"""Random vectors in each space, terminals, and links at each of them, from which cuts start."""


def regular_bound(nodes: int, degree: int) -> Fraction:
    """Return the paper's bound for any `degree`-regular digraph: (sum of tree depths) / degree.

    A node reaches at most degree^k nodes in k hops, so the nodes fill a tree level by level.
    """
    _require(nodes >= 2 and degree >= 1, f"{nodes} nodes of degree {degree}")
    return Fraction(sum(map(prod, tree_levels(degree, degree, nodes - 1))), degree)


def cable_bound(nodes: int, degree: int) -> Fraction:
    """Return the bound for any `degree`-regular graph of cables, tighter than `regular_bound`.

    One of the ports of every node on a path leads back, so at most degree (degree - 1)^(k-1) nodes
    are at distance k. docs/methods.md derives it.
    """
    _require(nodes >= 2 and degree >= 1, f"{nodes} nodes of degree {degree}")
    _require(degree > 1 or nodes == 2, f"{nodes} nodes with one cable each are not connected")
    return Fraction(sum(map(prod, tree_levels(degree, degree - 1, nodes - 1))), degree)


def _require(sound: bool, what: str) -> None:
    if not sound:
        raise UsageError(f"{what}; expected at least two nodes and a positive degree")


def tree_levels(ports: int, growth: int, count: int) -> Iterator[tuple[int, int]]:
    """Yield the least depths of `count` nodes around a root, each with its number of nodes.

    Level 1 has at most `ports` nodes, and every level `growth` times as many as the last.
    """
    width, depth = ports, 1
    while count > 0:
        yield depth, min(width, count)
        count -= width
        width, depth = width * max(growth, 1), depth + 1


def distance_bound(problem: Problem) -> float:
    """Return total demand times hops over total capacity; exact for edge-transitive graphs."""
    return length_bound(problem, np.ones(problem.topology.links))


@dataclass(frozen=True, eq=False)
class Cut:
    """A set of nodes, the demand that leaves it, and the capacity that leaves it."""

    inside: Mask
    demand: float
    capacity: float

    @property
    def bound(self) -> float:
        """The lower bound on the time that this cut proves."""
        return self.demand / self.capacity if self.demand > 0 else 0.0


def cut_bound(problem: Problem) -> Cut:
    """Return the worst cut found: of all cuts on few nodes, else by sweeps and local moves.

    The worst cut is NP-hard to find, but every cut proves a valid bound.
    """
    nodes = problem.topology.nodes
    if nodes <= sizes.ENUMERATED_NODES:
        bits = np.arange(nodes)
        cuts: Iterable[Mask] = ((code >> bits) & 1 == 1 for code in range(1, 2**nodes - 1))
    else:
        orders = (each for order in _orders(problem) for each in (order, order[::-1]))
        cuts = (_best_prefix(problem, order) for order in orders)
    best = max((measure_cut(problem, each) for each in cuts), key=lambda cut: cut.bound)
    return _improve(problem, best)


def measure_cut(problem: Problem, inside: Mask) -> Cut:
    """Return the demand and the capacity that leave a set of nodes."""
    topology = problem.topology
    leaving = inside[topology.tail] & ~inside[topology.head]
    sends = inside[topology.terminals]
    matrix = problem.demand.matrix
    sent = sends.sum() * (~sends).sum() if matrix is None else matrix[sends][:, ~sends].sum()
    return Cut(inside, float(sent), float(topology.capacity[leaving].sum()))


def _orders(problem: Problem) -> Iterator[Ints]:
    """Yield node orders to sweep: along the slowest modes, around terminals, across links."""
    topology = problem.topology
    spaces = _slow_spaces(topology)
    random = np.random.default_rng(0).standard_normal((topology.nodes, CUT_STARTS))
    for space in (*spaces, np.hstack(spaces)):
        # Eigenvectors of equal eigenvalues depend on the library, and may separate nothing. A
        # projection on their space is the same everywhere.
        projected = space @ (space.T @ random[:, : space.shape[1] ** 3])
        for values in projected.T:
            yield np.argsort(np.round(values / np.abs(values).max(), 9), kind="stable")
    starts = topology.terminals[:: -(-len(topology.terminals) // CUT_STARTS)]
    for start, distance in zip(starts, _hops(topology, starts), strict=True):
        yield np.argsort(distance, kind="stable")
        # Nearer to one end of a link than to the other: the straight cuts of grids and cubes.
        ends = topology.head[topology.tail == start][:CUT_STARTS]
        for other in _hops(topology, ends):
            yield np.argsort(distance - other, kind="stable")


def _hops(topology: Topology, starts: Ints) -> Floats:
    """Return the hops from some nodes to every node; `nodes` where there is no path."""
    hops = shortest_distances(topology, np.ones(topology.links), starts)
    return np.minimum(hops, topology.nodes)


def _best_prefix(problem: Problem, order: Ints) -> Mask:
    """Return the prefix of an order with the largest ratio of demand to capacity."""
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
    """Return, for every prefix of the nodes, the total weight of the pairs that leave it."""
    forward = begin < end
    enters = np.bincount(begin[forward], weight[forward], nodes)
    leaves = np.bincount(end[forward], weight[forward], nodes)
    return np.asarray(np.cumsum(enters - leaves), dtype=np.float64)


def _crossing_demand(problem: Problem, position: Ints) -> Floats:
    """Return, for every prefix of the nodes, the demand that leaves it."""
    nodes, terminals = problem.topology.nodes, len(position)
    if problem.demand.matrix is None:
        inside = np.cumsum(np.bincount(position, minlength=nodes))
        return np.asarray(inside * (terminals - inside), dtype=np.float64)
    source, destination = np.nonzero(problem.demand.matrix)
    amount = problem.demand.matrix[source, destination]
    return _crossing(position[source], position[destination], amount, nodes)


def _slow_spaces(topology: Topology) -> list[Floats]:
    """Return the spaces of the least positive eigenvalues of the undirected Laplacian."""
    ends = (np.append(topology.tail, topology.head), np.append(topology.head, topology.tail))
    capacity = np.tile(topology.capacity, 2)
    degree = np.zeros(topology.nodes)
    np.add.at(degree, ends[0], capacity)
    if topology.nodes <= sizes.DENSE_NODES:
        laplacian = np.diag(degree)
        np.add.at(laplacian, ends, -capacity)
        values, vectors = np.linalg.eigh(laplacian)
        cuts = 1 + np.flatnonzero(np.diff(values[1:]) > SAME_EIGENVALUE * values[-1])
        return np.split(vectors[:, 1:], cuts, axis=1)[:CUT_SPACES]
    from scipy.sparse import coo_array, diags_array  # noqa: PLC0415 (slow to import)
    from scipy.sparse.linalg import eigsh  # noqa: PLC0415

    weight = coo_array((capacity, ends), shape=(topology.nodes,) * 2).tocsr()
    # Large eigenvalues converge fast and small ones slowly, so reverse the spectrum.
    turned = diags_array(2 * degree.max() - degree) + weight
    start = np.random.default_rng(0).standard_normal(topology.nodes)
    values, vectors = eigsh(turned.tocsr(), k=CUT_SPACES + 1, which="LA", v0=start, tol=1e-2)
    slow = vectors[:, np.argsort(-values)[1:]]
    return np.split(np.asarray(slow, dtype=np.float64), CUT_SPACES, axis=1)


def _improve(problem: Problem, cut: Cut) -> Cut:
    """Move single nodes across the cut while that raises its bound."""
    topology = problem.topology
    while True:
        capacity = cut.capacity + _capacity_changes(topology, cut.inside)
        demand = cut.demand + _demand_changes(problem, cut.inside)
        real = capacity > ROUNDING_SHARE * topology.capacity.sum()
        bound = np.divide(demand, capacity, out=np.zeros_like(demand), where=real)
        node = int(np.argmax(bound))
        if bound[node] <= cut.bound * (1 + 1e-9):
            return cut
        inside = cut.inside.copy()
        inside[node] = ~inside[node]
        cut = measure_cut(problem, inside)


def _capacity_changes(topology: Topology, inside: Mask) -> Floats:
    """Return the change of the capacity that leaves `inside` if each node alone changes side."""
    tail, head, capacity = topology.tail, topology.head, topology.capacity
    to_outside = np.bincount(tail, capacity * ~inside[head], topology.nodes)
    from_inside = np.bincount(head, capacity * inside[tail], topology.nodes)
    return np.where(inside, from_inside - to_outside, to_outside - from_inside)


def _demand_changes(problem: Problem, inside: Mask) -> Floats:
    """Return the change of the demand that leaves `inside` if each node alone changes side."""
    terminals = problem.topology.terminals
    sends = inside[terminals]
    if problem.demand.matrix is None:
        to_outside = np.full(len(terminals), float((~sends).sum())) - ~sends
        from_inside = np.full(len(terminals), float(sends.sum())) - sends
    else:
        to_outside = problem.demand.matrix @ ~sends
        from_inside = sends @ problem.demand.matrix
    changes = np.zeros(len(inside))
    changes[terminals] = np.where(sends, from_inside - to_outside, to_outside - from_inside)
    return changes


MAX_COUNT = 10**300
"""Larger numbers of automorphisms are given by their logarithm only."""


@dataclass(frozen=True)
class Description:
    """The numbers that distinguish topologies.

    Degrees and capacities are the least and the largest; `girth` is None without a cycle;
    `diameter` and `mean_distance` are None if a terminal has no path to another; `automorphisms` is
    None if only their logarithm is known, `names` if nodes have none, `link_rates`, in bytes per
    second, if capacities have no unit. `bounds` are lower bounds on the all-to-all time by name.
    """

    topology: str
    nodes: int
    terminals: int
    links: int
    bidirectional: bool
    out_degree: tuple[int, int]
    in_degree: tuple[int, int]
    capacity: tuple[float, float]
    diameter: int | None
    mean_distance: float | None
    girth: int | None
    automorphisms: int | None
    automorphisms_log10: float
    bounds: dict[str, float]
    notes: tuple[str, ...]
    names: tuple[str, ...] | None = None
    link_rates: tuple[float, float] | None = None

    def summary(self) -> dict[str, Any]:
        """Return everything as plain values; names and rates of links only if there are any."""
        values = asdict(self).items()
        found = {key: list(value) if isinstance(value, tuple) else value for key, value in values}
        if self.names is None:
            del found["names"]
        rates = found.pop("link_rates")
        return found if rates is None else found | {"link_GBps": [rate / GIGA for rate in rates]}


def describe_problem(problem: Problem) -> Description:
    """Return the description of a topology, with the bounds for a demand."""
    topology = problem.topology
    symmetries = count_automorphisms(topology)
    longest: int | None = None
    mean: float | None = None
    with suppress(TopologyError):  # Terminals may not reach each other.
        longest, mean = diameter(topology), mean_distance(topology)
    rates: tuple[float, float] | None = None
    if topology.bytes_per_second is not None:
        every = Fabric(topology, topology.bytes_per_second).link_rates
        rates = float(every.min()), float(every.max())
    return Description(
        topology=topology.name,
        nodes=topology.nodes,
        terminals=len(topology.terminals),
        links=topology.links,
        bidirectional=topology.bidirectional,
        out_degree=(int(topology.out_degree.min()), int(topology.out_degree.max())),
        in_degree=(int(topology.in_degree.min()), int(topology.in_degree.max())),
        capacity=(float(topology.capacity.min()), float(topology.capacity.max())),
        diameter=longest,
        mean_distance=mean,
        girth=girth(topology),
        automorphisms=symmetries if symmetries < MAX_COUNT else None,
        automorphisms_log10=math.log10(symmetries),
        bounds=_bounds(problem),
        notes=topology.notes,
        names=topology.names,
        link_rates=rates,
    )


def _bounds(problem: Problem) -> dict[str, float]:
    """Return the bounds by name; `regular` only for the uniform demand on regular topologies."""
    topology, degree = problem.topology, problem.topology.out_degree
    bounds = {"distance": distance_bound(problem), "cut": cut_bound(problem).bound}
    regular = degree.min() == degree.max() and len(topology.terminals) == topology.nodes > 1
    if problem.demand.uniform and regular:
        bound = float(regular_bound(topology.nodes, int(degree[0])))
        bounds["regular"] = bound / float(topology.capacity.max())
    return bounds
