"""One route per pair by tables of destinations: a node sends all that is for a terminal one way on.

That is what InfiniBand switches and most cards have room for: routes to a terminal form a tree that
leads to it. The trees of `sssp` are a beginning. Then one node after the other changes the link by
which it sends on to one terminal, with all that it passes on, if that lowers the potential of
`placing.place`, which grows steeper from pass to pass. A link that leads back to the node is none
of the choices, so trees stay trees. `deadlock_free.tables` does the same within one layer.

A pass costs, for every node and terminal, a walk to the terminal over each of the node's links.
"""

from dataclasses import replace

import numpy as np

from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, inner_index, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.topology import Topology
from alltoall.ir.words import ProgressMessage
from alltoall.paths.shortest import Adjacency
from alltoall.placing.place import LAST_STEEPNESS, PlacementParams
from alltoall.routes.baselines.sssp import sssp_tables
from alltoall.routes.baselines.tables import routes_from_tables
from alltoall.routes.table_loops import Fabric, Tables, Turns, fill_tables, respond
from alltoall.settings import RouteSettings

METHOD = "single by destination"
"""What its routes say made them."""

TREE_PASSES = 60
"""Passes over all nodes and terminals while the steepness rises."""


def route_by_destination(
    problem: Problem, certificate: Certificate, settings: RouteSettings
) -> Routes:
    """Return one route per pair; all routes to a terminal that meet go on together."""
    spreading = Spreading(problem, sssp_tables(problem))
    spreading.spread(certificate.bound, settings)
    return replace(routes_from_tables(problem, spreading.best, METHOD), certificate=certificate)


class Spreading:
    """Forwarding tables while nodes change their links: the present ones, and the `best` so far.

    With an `order` of the links in which all ways go forward, their turns never close a cycle.
    """

    def __init__(self, problem: Problem, table: Ints, order: Ints | None = None) -> None:
        self.problem, self.demand = problem, problem.demand.table()
        self.fabric = fabric_of(problem.topology)
        self.tables = Tables(
            np.array(table),
            np.zeros(table.shape),
            np.zeros(table.shape, dtype=np.int64),
            np.zeros(problem.topology.links),
        )
        self.turns = _no_turns(problem.topology, order)
        fill_tables(self.tables, self.fabric, self.turns, self.demand)
        self.best, self.least = np.array(table), self.time

    @property
    def time(self) -> float:
        """The largest load over capacity of the present tables."""
        return float((self.tables.load / self.problem.topology.capacity).max())

    def spread(
        self, goal: float, settings: RouteSettings, rng: np.random.Generator | None = None
    ) -> None:
        """Let nodes respond to ever steeper prices until the goal, the last pass, or time is up.

        They do so in an order drawn anew for each pass, if there is something to draw from.
        """
        solve = settings.solve
        for steepness in self._steepnesses(goal):
            if self.least <= goal * (1 + 1e-9) or solve.out_of_time():
                break
            scale = steepness / (self.time * self.problem.topology.capacity)
            several = [np.arange(count) for count in self.tables.link.shape]
            rows, nodes = several if rng is None else map(rng.permutation, several)
            prices = (scale, float(steepness))
            respond(self.tables, self.fabric, self.turns, prices, (rows, nodes))
            if self.time < self.least:
                self.best, self.least = self.tables.link.copy(), self.time
            gap = self.least / goal - 1
            solve.report(
                ProgressMessage.of_gap(
                    f"tables by destination: {gap:.2%} above the bound", gap, solve.gap
                )
            )

    def _steepnesses(self, goal: float) -> Floats:
        mean = float(self.demand[self.demand > 0].mean())
        fit = goal * float(self.problem.topology.capacity.mean()) / mean
        last = min(LAST_STEEPNESS, max(10 * PlacementParams.first, fit))
        return np.geomspace(PlacementParams.first, last, TREE_PASSES)


def fabric_of(topology: Topology) -> Fabric:
    """Return the links of a topology, by node."""
    around = Adjacency(topology)
    return Fabric(
        topology.tail, topology.head, topology.terminals, *around.outgoing, *around.incoming
    )


def _no_turns(topology: Topology, order: Ints | None) -> Turns:
    """Return all turns of a topology, none of them made; acyclic if links have an order."""
    first_out, leaving = Adjacency(topology).outgoing
    slot = np.empty(topology.links, dtype=np.int64)
    slot[leaving] = inner_index(topology.out_degree)
    nexts = topology.out_degree[topology.head]
    held = np.repeat(np.arange(topology.links), nexts)
    wanted = leaving[first_out[topology.head[held]] + inner_index(nexts)]
    into = np.argsort(wanted, kind="stable")
    uses, seen = np.zeros(len(held), dtype=np.int64), np.zeros(topology.links, dtype=np.int64)
    return Turns(
        acyclic=order is not None,
        slot=slot,
        held=held,
        wanted=wanted,
        first=starts_of(nexts),
        into_first=np.searchsorted(wanted[into], np.arange(topology.links + 1)),
        into=into,
        uses=uses,
        present=uses > 0,
        rank=np.argsort(np.arange(topology.links) if order is None else order),
        seen=seen,
    )
