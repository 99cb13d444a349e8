"""Orders of the links, one per virtual layer, under which short ways remain for every pair.

In a layer whose links have an order, a route may only go from a link to a later one; whatever the
routes, they cannot deadlock. How good a set of orders is follows from link lengths y, as a bound
on the unrestricted time does: no routes that go forward in one of the layers are faster than

    sum of demand(s, d) * (shortest forward way from s to d in any layer)  /  sum of cap(l) * y(l)

and the best of all lengths proves exactly the optimum under these orders. `improve_orders` looks
for orders with a small bound under a handful of lengths, by simulated annealing. A bound costs one
pass over the links of one layer, so 100,000 orders are judged in the time of one linear program.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.paths.shortest import shortest_distances
from alltoall.routes.deadlock_free.anneal import anneal, forward_distances


@dataclass(frozen=True, eq=False)
class OrderBounds:
    """Bounds on the time under any orders, from several lengths [count, links].

    `wanted[s, d]` is what terminal s sends to terminal d. Each row of lengths is scaled so that
    capacity times length adds up to 1: the bound is then the sum of demand times distance.
    """

    problem: Problem
    lengths: Floats
    wanted: Floats

    def of(self, orders: Ints) -> Floats:
        """Return one bound per row of lengths; infinite if a pair has no way forward at all."""
        distance = np.stack([self._distances(order) for order in orders]).min(axis=0)
        with np.errstate(invalid="ignore"):
            weighted = np.where(self.wanted.T > 0, distance * self.wanted.T, 0.0)
        return np.asarray(weighted.sum(axis=(1, 2)), dtype=np.float64)

    def _distances(self, order: Ints) -> Floats:
        """Return distances [lengths, destinations, sources] between terminals in one layer."""
        topology = self.problem.topology
        shape = (len(self.lengths), topology.nodes, len(topology.terminals))
        distance = np.empty(shape)
        ends = (topology.tail, topology.head)
        forward_distances(order, ends, self.lengths, topology.terminals, np.inf, distance)
        return distance[:, topology.terminals]


def order_bounds(problem: Problem, lengths: list[Floats]) -> OrderBounds:
    """Return the bounds that some lengths prove; lengths that are 0 everywhere are left out."""
    volume = [float(problem.topology.capacity @ each) for each in lengths]
    scaled = [each / total for each, total in zip(lengths, volume, strict=True) if total > 0]
    return OrderBounds(problem, np.stack(scaled), problem.demand.table())


def improve_orders(bounds: OrderBounds, orders: Ints, moves: int, seed: int) -> Ints:
    """Return orders [layers, links] whose bounds are at most those of the given ones."""
    topology = bounds.problem.topology
    improved: Ints = anneal(
        np.array(orders),
        (topology.tail, topology.head),
        bounds.lengths,
        topology.terminals,
        np.ascontiguousarray(bounds.wanted.T),
        _neighbours(bounds.problem),
        moves,
        np.random.default_rng(seed),
    )
    return improved


def up_down_orders(problem: Problem, layers: int) -> Ints:
    """Return up*/down* orders from as many roots.

    Links up, to a node nearer to the root, come before links down; each kind in the order in which
    a route can take them. If every link has one back, all pairs are connected over the root. Roots
    are those with the shortest distances to all others, in this order.
    """
    topology = problem.topology
    every = np.arange(topology.nodes, dtype=np.int64)
    distance = shortest_distances(topology, np.ones(topology.links), every)
    roots = np.resize(np.argsort(distance.sum(axis=1), kind="stable"), layers)
    return np.stack([_up_down(problem, distance[root]) for root in roots])


def _up_down(problem: Problem, distance: Floats) -> Ints:
    tail, head = problem.topology.tail, problem.topology.head
    level = np.argsort(np.argsort(distance, kind="stable"))
    up = level[head] < level[tail]
    return np.lexsort((np.where(up, -level[tail], level[tail]), ~up)).astype(np.int64)


def _neighbours(problem: Problem) -> tuple[Ints, Ints]:
    """Return where each link's neighbours begin, and all of them: what it meets, and itself."""
    topology = problem.topology
    meet = (topology.head[:, None] == topology.tail) | (topology.tail[:, None] == topology.head)
    np.fill_diagonal(meet, True)
    link, other = np.nonzero(meet)
    return np.searchsorted(link, np.arange(topology.links + 1)), other
