"""FPTAS: maximum concurrent flow by multiplicative lengths, certified.

Fleischer, "Approximating fractional multicommodity flow independent of the number of commodities",
SIAM J. Discrete Math. 2000; Karakostas, "Faster approximation schemes for fractional
multicommodity flow problems", SODA 2002, who serves all destinations of a source at once:

    length[l] = 1 / capacity[l]
    phase:  for every source s, until the phase's demand of s is routed:
                the tree of shortest paths from s under length
                route the rest along the tree, or the share that capacities allow
                length[l] *= 1 + epsilon * (load added to l) / capacity[l]

Two things are proven rather than left to the theory. The flow of all phases, divided by how often
the demand has been routed, is scaled to the capacities exactly; and the lengths after a phase
prove a lower bound on the time of any flow. The method stops as soon as the two are within
epsilon, and at the latest when the lengths have grown as far as Fleischer's analysis needs for a
gap of (1 - epsilon)^-3, which with `published` is the only stop. Only ratios of lengths matter, so
they are scaled back before they overflow.

A phase routes the demand divided by the best time found so far, in place of the demand scaling of
both papers: its load is at least all capacities and soon not much more.
"""

import math

import numpy as np

from alltoall import core
from alltoall.flows.decompose import paths_of_volumes
from alltoall.flows.exact import by_source, exact_flows
from alltoall.flows.program import certify, length_bound
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.paths.shortest import core_graph
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings, SolveSettings

PHASES_BETWEEN_BOUNDS = 8
"""A bound costs about as much as a phase; `benchmarks/routes.py` measures it."""

TREES_PER_CALL = 32
"""Trees of shortest paths in one call of the core, so that a time limit is heard in between."""

LEAST_LENGTH = 1e-200
"""Least length: from zero no factor could raise it again."""


def route_fptas(problem: Problem, settings: RouteSettings) -> Routes:
    """Return routes within epsilon of the optimum, with the lengths that prove it.

    At a time limit, return the routes of the finished phases with their proven gap; raise
    TimeoutError if there are none in time.
    """
    solving = settings.solve.sharing()  # The other half is for the paths of the flow.
    search = _Search(problem, settings.epsilon, settings.published)
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


class _Search:
    """The flow of all phases, the lengths, and the best bound so far."""

    def __init__(self, problem: Problem, epsilon: float, published: bool) -> None:
        self.published = published
        self.problem, self.epsilon, self.groups = problem, epsilon, by_source(problem)
        self.flows = np.zeros((len(self.groups.start), problem.topology.links))
        self.lengths = self.best_lengths = 1.0 / problem.topology.capacity
        self.bound, self.time, self.routed, self.grown, self.phases = 0.0, math.inf, 0.0, 0.0, 0

    @property
    def gap(self) -> float:
        """The proven gap of the flow so far."""
        return self.time / self.bound - 1.0 if self.bound > 0 else math.inf

    def finished(self) -> bool:
        """Whether the gap is small enough, or the lengths have reached Fleischer's limit."""
        links = self.problem.topology.links
        enough = math.log(links / (1 - self.epsilon)) / self.epsilon - math.log(links)
        certified = self.gap <= self.epsilon and not self.published
        return certified or self.grown >= enough

    def phase(self, settings: SolveSettings) -> None:
        """Route the demand once more, over the best time so far, and scale the lengths back.

        If time runs out on the way, some sources have delivered more than they count for, which
        is cut off in the end.
        """
        topology = self.problem.topology
        guess = self.time
        if not self.phases:  # There is no flow yet, so plain shortest paths.
            plain = exact_flows(topology, self.groups, np.zeros_like(self.flows))
            guess = float((plain.sum(axis=0) / topology.capacity).max())
        graph, share = core_graph(topology), 1.0 / guess
        wanted, capacity = self.groups.wanted * share, topology.capacity
        before, state = float(capacity @ self.lengths), (0, 1.0)
        while state[0] < len(self.groups.start):
            state = core.grow_lengths(
                graph, capacity, self.groups.start, wanted, self.epsilon, state, TREES_PER_CALL,
                self.lengths, self.flows,
            )  # fmt: skip
            if settings.out_of_time() and state[0] < len(self.groups.start):
                return
        after = float(topology.capacity @ self.lengths)
        self.grown += math.log(after / before)
        self.lengths = np.maximum(self.lengths / after, LEAST_LENGTH)
        self.routed += share
        self.phases += 1
        self.time = float((self.flows.sum(axis=0) / topology.capacity).max()) / self.routed

    def prove(self) -> None:
        """Keep the bound of the lengths if it is the best one."""
        bound = length_bound(self.problem, self.lengths)
        if bound > self.bound:
            self.bound, self.best_lengths = bound, self.lengths.copy()
