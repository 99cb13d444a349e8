"""The time-expanded graph: one copy of the terminals per moment, one copy of the links per step.

Terminal u has a copy u_t for every moment t = 0..T, before and after each of the T steps. A
storage link u_t -> u_(t+1) is waiting. In step t = 0..T-1 a link (u, v) between terminals leads
from u_t to v_(t+1). Switches store nothing, so they have one copy per step, and a link to or from a
switch stays within the step.

A schedule of T steps is a flow on this graph from (s, 0) to (d, T); paths on it need no detours.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.exact import Groups, by_source
from alltoall.flows.program import FlowProgram
from alltoall.flows.symmetry.orbits import Symmetry
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.topology import MAX_LINKS, Topology


@dataclass(frozen=True, eq=False)
class Expansion:
    """A problem unrolled over `steps` steps.

    Link t * links + l of `graph` is link l in step t; the storage links come last.
    """

    problem: Problem
    steps: int

    def __post_init__(self) -> None:
        if self.timed_links > MAX_LINKS:
            raise InputError(
                f"{self.steps:,} steps of {self.problem.topology.links:,} links; expected at most "
                f"{MAX_LINKS:,} links in all steps together"
            )

    @property
    def timed_links(self) -> int:
        """The number of links of the graph that are not storage."""
        return self.steps * self.problem.topology.links

    @cached_property
    def layer(self) -> Ints:
        """The step of each timed link."""
        return np.repeat(np.arange(self.steps), self.problem.topology.links)

    @cached_property
    def graph(self) -> Topology:
        """The time-expanded graph; storage links are as wide as all the demand together."""
        topology, step = self.problem.topology, self.layer
        everything = max(self.problem.demand.total, 1.0) * float(topology.capacity.max())
        tail = self._copy(np.tile(topology.tail, self.steps), step, arriving=False)
        head = self._copy(np.tile(topology.head, self.steps), step, arriving=True)
        terminals = len(topology.terminals)
        waiting = np.arange(self.steps * terminals)
        capacity = np.tile(topology.capacity, self.steps)
        return Topology(
            name=f"{topology.name} over {self.steps} steps",
            nodes=self._switch_base + self.steps * (topology.nodes - terminals),
            tail=np.concatenate((tail, waiting)),
            head=np.concatenate((head, waiting + terminals)),
            capacity=np.append(capacity, np.full(len(waiting), everything)),
            terminals=np.concatenate((self.starts, self.ends)),
        )

    @property
    def starts(self) -> Ints:
        """The copy of each terminal before the first step."""
        return np.arange(len(self.problem.topology.terminals), dtype=np.int64)

    @property
    def ends(self) -> Ints:
        """The copy of each terminal after the last step."""
        return self.starts + self.steps * len(self.starts)

    def groups(self, groups: Groups) -> Groups:
        """Return the same groups on the time-expanded graph, from moment 0 to moment T."""
        wanted = np.zeros((len(groups.start), self.graph.nodes))
        wanted[:, self.ends] = groups.wanted[:, self.problem.topology.terminals]
        return Groups(groups.source, groups.destination, groups.source, wanted)

    def program(self, groups: Groups) -> FlowProgram:
        """Return the program of groups on the time-expanded graph, with a budget for every step."""
        links = np.arange(self.problem.topology.links, dtype=np.int64)
        return self._program(groups, np.ones(len(groups.start)), links)

    def reduced_program(self, symmetry: Symmetry) -> FlowProgram:
        """Return the program of one source per orbit, in which orbits of links share budgets."""
        if symmetry.trivial:
            return self.program(self.groups(by_source(self.problem)))
        sources, size = symmetry.representatives()
        groups = self.groups(by_source(self.problem, sources))
        return self._program(groups, size.astype(np.float64), symmetry.link_orbit)

    def _program(self, groups: Groups, weight: Floats, link_class: Ints) -> FlowProgram:
        """Return the program with the classes of links repeated in every step."""
        classes = int(link_class.max()) + 1
        timed = self.layer * classes + np.tile(link_class, self.steps)
        none = np.full(self.graph.links - self.timed_links, self.steps * classes, dtype=np.int64)
        budget = np.repeat(np.arange(self.steps), classes)
        return FlowProgram(self.graph, groups, weight, np.concatenate((timed, none)), budget)

    @property
    def _switch_base(self) -> int:
        return (self.steps + 1) * len(self.problem.topology.terminals)

    def _copy(self, node: Ints, step: Ints, arriving: bool) -> Ints:
        """Return the copy of each node at which a link of a step starts or ends."""
        topology = self.problem.topology
        terminal = topology.position >= 0
        rank = np.cumsum(terminal) - 1
        switches = topology.nodes - len(topology.terminals)
        stored = (step + arriving) * len(topology.terminals) + rank[node]
        passing = self._switch_base + step * switches + (node - rank[node] - 1)
        return np.where(terminal[node], stored, passing)


def without_detours(expansion: Expansion, paths: Ints) -> Ints:
    """Remove cycles and waiting from paths, so that only hops are left.

    A chunk that returns to a terminal could have waited there, and one that returns to a switch
    within a step could have gone on at once. So no load grows.
    """
    terminals = len(expansion.starts)
    node = np.arange(expansion.graph.nodes)
    # All copies of a terminal are one place; each copy of a switch is a place of its own.
    stored = node < (expansion.steps + 1) * terminals
    place = np.where(stored, node % terminals, node)
    return skip_detours(paths, place[expansion.graph.tail], place[expansion.graph.head])


def skip_detours(paths: Ints, tail: Ints, head: Ints) -> Ints:
    """Return paths, rows of links that end with -1, that visit no place twice.

    Link l leads from place `tail[l]` to place `head[l]`.
    """
    moves = (paths != NOTHING) & (tail[paths] != head[paths])
    first = np.argsort(~moves, axis=1, kind="stable")
    shorter = np.take_along_axis(np.where(moves, paths, NOTHING), first, axis=1)
    # The ends of unused hops are places of their own.
    ends = np.where(shorter != NOTHING, head[shorter], -1 - np.arange(shorter.shape[1]))
    visited = np.sort(np.column_stack((tail[shorter[:, :1]], ends)), axis=1)
    for each in np.flatnonzero((visited[:, 1:] == visited[:, :-1]).any(axis=1)):
        row = shorter[each]
        places, kept = [tail[row[0]]], list[int]()
        for link in row[row != NOTHING]:
            if head[link] in places:
                back = places.index(head[link])
                del places[back + 1 :], kept[back:]
            else:
                places.append(head[link])
                kept.append(link)
        row[:] = NOTHING
        row[: len(kept)] = kept
    return shorter
