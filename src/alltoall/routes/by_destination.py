"""One route per pair by tables of destinations: a node forwards all traffic for a terminal alike.

InfiniBand switches and most NICs support nothing more: routes to a terminal form a tree. The search
starts from the trees of `sssp`. Then each node in turn changes its link to a terminal, and reroutes
all traffic behind it, if that lowers the potential of `placing.place`, which grows steeper with
every pass. Links that would close a loop are excluded, so trees stay trees. `deadlock_free.best`
does the same within one layer.

A pass costs, for every node and terminal, a walk to the terminal over each of the node's links.
"""

from dataclasses import replace

import numpy as np

from alltoall import core
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.words import ProgressMessage
from alltoall.paths.shortest import core_graph
from alltoall.placing.chunks import grow_steeper
from alltoall.placing.place import SOURCES_PER_CALL, PlacementParams
from alltoall.routes.baselines.tables import routes_from_tables, sssp_tables
from alltoall.settings import RouteSettings

METHOD = "single by destination"
"""The name of the method in its routes."""

TREES = PlacementParams(rounds=60, last_share=0.0)
"""How prices grow steeper for trees; `benchmarks/deadlock_free.py` measures it."""


def route_by_destination(
    problem: Problem, certificate: Certificate, settings: RouteSettings
) -> Routes:
    """Return one route per pair; routes to a terminal merge where they meet."""
    spreading = Spreading(problem, sssp_tables(problem)[0])
    spreading.spread(certificate.bound, settings)
    return replace(routes_from_tables(problem, spreading.best, METHOD), certificate=certificate)


class Spreading:
    """Forwarding tables while nodes change their links: the present ones, and the `best` so far.

    With an `order` of the links in which all paths go forward, their turns never close a cycle.
    """

    def __init__(self, problem: Problem, table: Ints, order: Ints | None = None) -> None:
        self.problem, topology, demand = problem, problem.topology, problem.demand.table()
        self.count, graph = len(topology.terminals), core_graph(topology)
        self.tables = core.ForwardingTables(graph, topology.terminals, table, demand, order)
        self.best, self.least = table, self.time

    @property
    def time(self) -> float:
        """The largest load over capacity of the present tables."""
        return float((self.tables.load / self.problem.topology.capacity).max())

    def spread(
        self, goal: float, settings: RouteSettings, rng: np.random.Generator | None = None
    ) -> None:
        """Let nodes respond to ever steeper prices until the goal, the last pass or the end.

        With a random generator the order is shuffled for each pass.
        """
        self.goal, self.solve, self.rng = goal, settings.solve, rng
        demand = self.problem.demand
        size = demand.total / len(demand.pairs()[0])
        steepness = TREES.steepness(goal, self.problem.topology.capacity, size)
        if not self._is_done():
            grow_steeper(self, steepness, self.solve.out_of_time)

    def move(self, begin: int, steepness: float) -> int:
        """Let nodes change their links to some of the terminals."""
        topology = self.problem.topology
        if begin == 0:
            draw = np.arange if self.rng is None else self.rng.permutation
            self.rows, self.nodes = draw(self.count), draw(topology.nodes)
            self.scale = steepness / (self.time * topology.capacity)
        end = min(begin + SOURCES_PER_CALL, self.count)
        self.tables.respond(self.rows[begin:end], self.nodes, self.scale, steepness)
        return end

    def end_round(self) -> bool:
        """Keep the best tables; stop at the goal."""
        if self.time < self.least:
            self.best, self.least = self.tables.table, self.time
        gap = self.least / self.goal - 1
        text = f"tables by destination: {gap:.2%} above the bound"
        self.solve.report(ProgressMessage.of_gap(text, gap, self.solve.gap))
        return self._is_done()

    def _is_done(self) -> bool:
        return self.least <= self.goal * (1 + 1e-9)
