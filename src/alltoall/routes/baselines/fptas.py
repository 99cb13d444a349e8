"""FPTAS: maximum concurrent flow by multiplicative lengths, certified.

Fleischer, "Approximating fractional multicommodity flow independent of the number of commodities",
SIAM J. Discrete Math. 2000; Karakostas, "Faster approximation schemes for fractional
multicommodity flow problems", SODA 2002, who serves all destinations of a source at once:

    length[l] = 1 / capacity[l]
    phase:  for every source s, until all that the phase asks of s is routed:
                the tree of shortest paths from s under length
                route what is left along the tree, or the share of it that no capacity limits
                length[l] *= 1 + epsilon * (what this put on l) / capacity[l]

Two things are proven rather than left to the theory. The flow of all phases, divided by how often
the demand has been routed, is scaled to the capacities exactly; and the lengths after a phase
prove a lower bound on the time of any flow. The method stops as soon as the two are within
epsilon, and at the latest when the lengths have grown as far as Fleischer's analysis needs for a
gap of (1 - epsilon)^-3. Only ratios of lengths matter, so they are scaled back before they
overflow.

A phase asks for the demand over the best time found so far. So a phase's fair share of the
capacities is at least all of them and soon not much more, which is what the demand scaling of
both papers is for.
"""

import math
from dataclasses import dataclass, field

import numpy as np
from numba import njit

from alltoall.flows.decompose import paths_of_volumes
from alltoall.flows.exact import Groups, by_source, exact_flows
from alltoall.flows.program import certify, length_bound
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.paths.shortest import Adjacency, shortest_tree
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings, SolveSettings

PHASES_BETWEEN_BOUNDS = 8
"""A bound costs about as much as a phase."""

PHASES_SHARE = 0.5
"""The share of the time for the phases; the rest is for the paths of their flow."""

SOURCES_PER_CALL = 32
"""Sources routed in one compiled call, so that a time limit is heard in between."""

LEAST_LENGTH = 1e-200
"""Lengths do not sink to zero, from where no factor would bring them back."""


def route_fptas(problem: Problem, settings: RouteSettings) -> Routes:
    """Return routes within epsilon of the optimum, with the lengths that prove it.

    A time limit returns what the phases so far amount to, with the gap that they prove; raise
    TimeoutError if there are none yet, or their paths come too late.
    """
    settings = settings.begin()
    solving = settings.solve.sharing(PHASES_SHARE)
    search = _Search(problem, settings.epsilon)
    while not search.finished():
        search.phase(solving)
        if search.phases % PHASES_BETWEEN_BOUNDS == 1:
            search.prove()
            text = f"fptas: {search.phases} phases, certified gap {search.gap:.2%}"
            settings.solve.report(ProgressMessage.of_gap(text, search.gap, settings.epsilon))
        if solving.out_of_time():
            break
    if search.phases == 0:
        raise TimeoutError
    flows = exact_flows(problem.topology, search.groups, search.flows / search.routed)
    paths, weight = paths_of_volumes(problem, search.groups, flows, settings.solve)
    certificate = certify(problem, [search.best_lengths])
    return routes_from_weights(problem, paths, weight, certificate, "fptas")


@dataclass(eq=False)
class _Search:
    """The flow that all phases together route, the lengths, and what is proven so far."""

    problem: Problem
    epsilon: float
    groups: Groups = field(init=False)
    flows: Floats = field(init=False)
    lengths: Floats = field(init=False)
    best_lengths: Floats = field(init=False)
    bound: float = 0.0
    time: float = math.inf
    routed: float = 0.0
    grown: float = 0.0
    phases: int = 0

    def __post_init__(self) -> None:
        topology = self.problem.topology
        self.groups = by_source(self.problem)
        self.flows = np.zeros((len(self.groups.start), topology.links))
        self.lengths = 1.0 / topology.capacity
        self.best_lengths = self.lengths

    @property
    def gap(self) -> float:
        """What is proven about the flow so far."""
        return self.time / self.bound - 1.0 if self.bound > 0 else math.inf

    def finished(self) -> bool:
        """Whether the gap is small enough, or the lengths have grown as far as they need to."""
        links = self.problem.topology.links
        enough = math.log(links / (1 - self.epsilon)) / self.epsilon - math.log(links)
        return self.gap <= self.epsilon or self.grown >= enough

    def phase(self, settings: SolveSettings) -> None:
        """Route the demand once more, over the best time so far, and scale the lengths back.

        If time runs out on the way, some sources have delivered more than they count for, which
        is cut off in the end.
        """
        topology = self.problem.topology
        near = Adjacency(topology)
        share = 1.0 / self._guess()
        before = float(topology.capacity @ self.lengths)
        for begin in range(0, len(self.groups.start), SOURCES_PER_CALL):
            part = slice(begin, begin + SOURCES_PER_CALL)
            _phase(
                (topology.tail, topology.head),
                near.outgoing,
                topology.capacity,
                self.groups.start[part],
                self.groups.wanted[part] * share,
                self.epsilon,
                self.lengths,
                self.flows[part],
            )
            if settings.out_of_time() and begin + SOURCES_PER_CALL < len(self.groups.start):
                return
        after = float(topology.capacity @ self.lengths)
        self.grown += math.log(after / before)
        self.lengths = np.maximum(self.lengths / after, LEAST_LENGTH)
        self.routed += share
        self.phases += 1
        self.time = float((self.flows.sum(axis=0) / topology.capacity).max()) / self.routed

    def prove(self) -> None:
        """Take the bound that the lengths prove, if it is the best one."""
        bound = length_bound(self.problem, self.lengths)
        if bound > self.bound:
            self.bound, self.best_lengths = bound, self.lengths.copy()

    def _guess(self) -> float:
        """Return the time of the flow so far; before there is any, of plain shortest paths."""
        if self.phases:
            return self.time
        topology = self.problem.topology
        plain = exact_flows(topology, self.groups, np.zeros_like(self.flows))
        return float((plain.sum(axis=0) / topology.capacity).max())


@njit(cache=True)
def _phase(
    ends: tuple[Ints, Ints],
    out: tuple[Ints, Ints],
    capacity: Floats,
    start: Ints,
    wanted: Floats,
    epsilon: float,
    lengths: Floats,
    flows: Floats,
) -> None:
    """Route `wanted` from every source, changing lengths and adding to flows."""
    tail, head = ends
    nodes = len(out[0]) - 1
    distance, load = np.empty(nodes), np.zeros(len(tail))
    parent, order = np.empty(nodes, dtype=np.int64), np.empty(nodes, dtype=np.int64)
    for group in range(len(start)):
        left = 1.0
        while left > 0.0:
            count = shortest_tree(
                nodes, out[0], out[1], head, lengths, start[group], distance, parent, order
            )
            passing = wanted[group] * left
            share = 1.0
            for index in range(count - 1, 0, -1):
                link = parent[order[index]]
                load[link] = passing[order[index]]
                passing[tail[link]] += load[link]
                share = min(share, capacity[link] / load[link] if load[link] > 0.0 else 1.0)
            for index in range(1, count):
                link = parent[order[index]]
                flows[group, link] += load[link] * share
                lengths[link] *= 1.0 + epsilon * load[link] * share / capacity[link]
            left = left * (1.0 - share) if share < 1.0 else 0.0
