r"""The program behind every link-based method: flows by groups that share the links of a graph.

    minimise    sum over b of z[b]
    subject to  (1 / |c|) sum over g, l in c of weight[g] x[g, l]  <=  cap[c] z[budget[c]]
                B x[g]  =  wanted[g]                      for every group g      (conservation)
                x[g, l] >= 0

where c runs over classes of links and B is the node-to-link incidence matrix without the row of the
group's source: +1 where a link enters a node, -1 where it leaves.

| program | groups | classes | budgets |
|---|---|---|---|
| MCF | pairs, or sources | links | one, the time |
| MCF under symmetry | a source per orbit, weighted by its size | orbits of links | one |
| tsMCF | sources | links of each step; storage has none | the duration of each step |
| deadlock-free routes | sources | copies of a link, one in each layer | one, the time |
| tsMCF under symmetry | a source per orbit | orbits of links, of each step | each step |

A class of links carries its mean, so z is exact for the average of all images under symmetry. A
certificate is a length per link, and the bound that shortest paths read off it.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.exact import Groups, by_source
from alltoall.flows.symmetry.orbits import Symmetry
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import distance_sums
from alltoall.settings import ALONE, Team

FLOW_BYTES = 26
"""Memory of a flow by sweeps: its value, the best so far, and its part of the answer."""

MOST_FLOWS = int(0.8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) // FLOW_BYTES
"""Groups times links beyond which arrays of all flows are refused: this machine could not hold
them."""


@dataclass(frozen=True, eq=False)
class FlowProgram:
    """Groups with their weights, and the classes and budgets of the links of a graph.

    `budget[c]` is the budget of class c; links of class `classes` or above share nothing.
    """

    graph: Topology
    groups: Groups
    weight: Floats
    link_class: Ints
    budget: Ints

    @property
    def classes(self) -> int:
        """The number of classes of links that have a capacity row."""
        return len(self.budget)

    @property
    def variables(self) -> int:
        """The number of flow variables: one for every group and link."""
        return len(self.weight) * self.graph.links

    def require_memory(self) -> None:
        """Raise, before anything is allocated, if arrays of all flows would not fit in memory."""
        if self.variables > MOST_FLOWS:
            raise InputError(
                f"{self.graph.name}: {self.variables:,} flows, {len(self.weight):,} groups times "
                f"{self.graph.links:,} links, which need about "
                f"{self.variables * FLOW_BYTES / 2**30:.1f} GiB; expected at most {MOST_FLOWS:,} "
                "flows here. Use a smaller topology, one so symmetric that few sources stand for "
                "all, or the memory of several machines (--mpi)"
            )

    def volumes_of(self, paths: Paths, size: Floats) -> Floats:
        """Return what each group sends over each link, if path p carries `size[p]`.

        Groups are those of all sources.
        """
        volumes = np.zeros((len(self.weight), self.graph.links))
        row, path = np.searchsorted(self.groups.source, paths.source), paths.path_of_link
        np.add.at(volumes, (row[path], paths.link), size[path])
        return volumes

    @cached_property
    def class_size(self) -> Floats:
        """The number of links of each class."""
        counts = np.bincount(self.link_class, minlength=self.classes)
        return counts[: self.classes].astype(np.float64)

    @cached_property
    def class_capacity(self) -> Floats:
        """The capacity of each link of a class."""
        capacity = np.zeros(int(self.link_class.max()) + 1)
        capacity[self.link_class] = self.graph.capacity
        return capacity[: self.classes]

    def busy(self, load: Floats) -> Floats:
        """Return how long each class is busy, given the weighted sum of flow on each link."""
        total = np.bincount(self.link_class, load, self.classes)[: self.classes]
        return np.asarray(total / (self.class_size * self.class_capacity))

    def durations(self, load: Floats) -> Floats:
        """Return the least value of each budget, given the weighted sum of flow on each link."""
        durations = np.zeros(int(self.budget.max()) + 1)
        np.maximum.at(durations, self.budget, self.busy(load))
        return durations

    def time(self, volumes: Floats) -> float:
        """Return the objective that volumes [groups, links] reach."""
        return float(self.durations(self.weight @ volumes).sum())

    def spent(self, lengths: Floats) -> float:
        """Return the largest sum of capacity times length, a length per link, in any budget."""
        counted = np.bincount(self.link_class, self.graph.capacity * lengths, self.classes)
        return float(np.bincount(self.budget, counted[: self.classes]).max())

    def link_lengths(self, prices: Floats) -> Floats:
        """Return a length per link from a price per class; what has no class costs nothing."""
        spread = np.zeros(int(self.link_class.max()) + 1)
        spread[: self.classes] = prices
        return spread[self.link_class]


def whole_program(problem: Problem, groups: Groups) -> FlowProgram:
    """Return the program of groups that each stand for themselves."""
    links = problem.topology.links
    return FlowProgram(
        problem.topology,
        groups,
        np.ones(len(groups.start)),
        np.arange(links, dtype=np.int64),
        np.zeros(links, dtype=np.int64),
    )


def reduced_program(symmetry: Symmetry) -> FlowProgram:
    """Return the program of one source per orbit; all sources if nothing is symmetric."""
    problem = symmetry.problem
    if symmetry.trivial:
        return whole_program(problem, by_source(problem))
    sources, size = symmetry.representatives()
    classes = int(symmetry.link_orbit.max()) + 1
    return FlowProgram(
        problem.topology,
        by_source(problem, sources),
        size.astype(np.float64),
        symmetry.link_orbit,
        np.zeros(classes, dtype=np.int64),
    )


def certify(problem: Problem, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among candidate lengths; unit lengths always take part."""
    return certify_program(whole_program(problem, by_source(problem)), candidates)


def certify_program(program: FlowProgram, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among candidate lengths; unit lengths always take part.

    Any lengths prove some bound, so a solver's duals need not be optimal, nor even feasible. Under
    symmetry the lengths must be equal within each class of links.
    """
    lengths = [np.ones(program.graph.links), *map(_cleaned, candidates)]
    proven = [(program_bound(program, each), index) for index, each in enumerate(lengths)]
    bound, best = max(proven)
    return Certificate(lengths[best], bound)


def length_bound(problem: Problem, lengths: Floats) -> float:
    """Return sum of demand times distance over sum of capacity times length; 0 if all are 0."""
    return program_bound(whole_program(problem, by_source(problem)), lengths)


def program_bound(program: FlowProgram, lengths: Floats, team: Team = ALONE) -> float:
    """Return the bound of lengths on the optimum of a program; 0 if all are 0.

    With several budgets it is the largest share of length in one of them that counts. In a team
    the program is the part of one rank, and the bound that of the whole.
    """
    spent = program.spent(lengths)
    if spent <= 0:
        return 0.0
    sums = distance_sums(program.graph, lengths, program.groups.start, program.groups.wanted)
    return float(team.total(np.array([program.weight @ sums]))[0]) / spent


def _cleaned(lengths: Floats) -> Floats:
    """Return lengths without negative ones, scaled so that the longest is 1."""
    positive = np.maximum(lengths, 0.0)
    longest = positive.max(initial=0.0)
    return positive / longest if longest > 0 else positive
