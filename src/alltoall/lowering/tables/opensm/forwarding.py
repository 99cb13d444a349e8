"""Forwarding tables on a topology: the ways that they make, followed from switch to switch.

The tables say through which port a switch sends on; only a topology tells where that leads.
"""

from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from alltoall.errors import TopologyError, VerificationError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lowering.tables.opensm.emit import NO_LINK
from alltoall.lowering.tables.routed_file import RoutedFile, ports_of
from alltoall.topologies.formats.ibsim import ADAPTER_PORT, MAX_PORTS, switch_ports

_NONE: Ints = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class ForwardingFile(RoutedFile):
    """What switches do with what is for a terminal; it has routes once it is on a topology.

    Row i says that the switch of node `at[i]` sends what is for terminal `goal[i]`, by position,
    through port `through[i]`.
    """

    switches: int = 0
    at: Ints = field(default_factory=lambda: _NONE)
    goal: Ints = field(default_factory=lambda: _NONE)
    through: Ints = field(default_factory=lambda: _NONE)
    one_layer: bool = False

    def on(self, problem: Problem) -> RoutedFile:
        """Follow the tables from every source to every destination that it sends to."""
        topology, (source, destination) = problem.topology, _pairs(problem)
        pair, link = self._hops(problem, source, destination)
        order = np.argsort(pair, kind="stable")
        return RoutedFile(
            kind=self.kind,
            name=self.name,
            source=topology.terminals[source],
            destination=topology.terminals[destination],
            start=starts_of(np.bincount(pair, minlength=len(source))),
            node=topology.tail[link[order]],
            port=ports_of(topology)[link[order]],
            weight=np.ones(len(source)),
            layer=np.zeros(len(source), dtype=np.int64) if self.one_layer else None,
            shares=True,
            facts=self.facts,
        )

    def _hops(self, problem: Problem, source: Ints, destination: Ints) -> tuple[Ints, Ints]:
        """Return the pair and the link of every hop, the first ones of all pairs first."""
        topology, table = problem.topology, self._table(problem.topology)
        goal = topology.terminals[destination]
        pair, node = np.arange(len(source)), topology.terminals[source]
        hops = [(_NONE, _NONE)]
        for _ in range(topology.nodes):
            link = table[node, destination[pair]]
            stuck = pair[link == NO_LINK]
            if len(stuck):
                self._refuse(topology, source, destination, stuck, "ends at a switch without it")
            hops.append((pair, link))
            on = topology.head[link] != goal[pair]
            pair, node = pair[on], topology.head[link][on]
        if len(pair):
            self._refuse(topology, source, destination, pair, "goes round in a circle")
        return np.concatenate([each for each, _ in hops]), np.concatenate(
            [each for _, each in hops]
        )

    def _table(self, topology: Topology) -> Ints:
        """Return the link by which each node sends on to each terminal."""
        adapters = int(self.goal.max(initial=-1)) + 1
        if (self.switches, adapters) != (topology.nodes, len(topology.terminals)):
            self._wrong(
                f"tables of {self.switches} switches with {adapters} adapters; {topology.name} "
                f"has {topology.nodes} with {len(topology.terminals)}"
            )
        try:
            port = switch_ports(topology)
        except TopologyError as error:
            self._wrong(str(error))
        link_at = np.full((topology.nodes, MAX_PORTS + 1), NO_LINK, dtype=np.int64)
        link_at[topology.tail, port] = np.arange(topology.links)
        link, home = link_at[self.at, self.through], self.at == topology.terminals[self.goal]
        wrong = np.flatnonzero(np.where(home, self.through != ADAPTER_PORT, link == NO_LINK))
        if len(wrong):
            row = int(wrong[0])
            self._wrong(
                f"switch S{self.at[row]} sends what is for adapter "
                f"H{topology.terminals[self.goal[row]]} through port {self.through[row]}, where "
                f"{'it is not' if home[row] else 'no other switch is'}"
            )
        if home.sum() != len(topology.terminals):
            self._wrong("some switch has no entry for its own adapter")
        table = np.full((topology.nodes, len(topology.terminals)), NO_LINK, dtype=np.int64)
        table[self.at[~home], self.goal[~home]] = link[~home]
        return table

    def _refuse(
        self, topology: Topology, source: Ints, destination: Ints, wrong: Ints, words: str
    ) -> NoReturn:
        ends = [int(topology.terminals[each[wrong[0]]]) for each in (source, destination)]
        names = " to ".join(f"node {topology.node_name(node)}" for node in ends)
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        self._wrong(f"the way from {names} {words}{more}")

    def _wrong(self, words: str) -> NoReturn:
        raise VerificationError(self.name, [words])


def _pairs(problem: Problem) -> tuple[Ints, Ints]:
    """Return the pairs that have a demand, by source, then destination."""
    terminals = problem.demand.terminals
    source, destination = np.divmod(np.arange(terminals * terminals), terminals)
    used = np.flatnonzero(problem.demand.of(source, destination) > 0)
    return source[used], destination[used]
