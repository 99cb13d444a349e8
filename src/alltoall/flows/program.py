r"""The linear program of every link-based method: flows of groups that share the links of a graph.

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

The load of a class is the mean over its links, so z is exact for the average of all images under
symmetry. A certificate is a length per link; shortest paths under it prove a lower bound.
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
"""Memory of a flow in sweeps: its value, the best so far, and its part of the answer."""

MOST_FLOWS = int(0.8 * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) // FLOW_BYTES
"""Groups times links above which arrays of all flows would exceed the memory of this machine."""


@dataclass(frozen=True, eq=False)
class FlowProgram:
    """Groups with their weights, and the classes and budgets of the links of a graph.

    `budget[c]` is the budget of class c; links of class `classes` or above have no capacity row.
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
        """Raise if arrays of all flows would exceed the memory."""
        if self.variables > MOST_FLOWS:
            raise InputError(
                f"{self.graph.name}: {self.variables:,} flows, {len(self.weight):,} groups times "
                f"{self.graph.links:,} links, which need about "
                f"{self.variables * FLOW_BYTES / 2**30:.1f} GiB; expected at most {MOST_FLOWS:,} "
                "flows here. Use a smaller topology, one so symmetric that few sources stand for "
                "all, or the memory of several machines (mpiexec -n N alltoall solve)"
            )

    def volumes_of(self, paths: Paths, size: Floats) -> Floats:
        """Return the flow of each group on each link, if path p carries `size[p]`.

        The program must have one group for each source.
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
        """Return the time of each class, given the weighted link loads."""
        total = np.bincount(self.link_class, load, self.classes)[: self.classes]
        return np.asarray(total / (self.class_size * self.class_capacity))

    def durations(self, load: Floats) -> Floats:
        """Return the time of each budget, that of its slowest class, given weighted link loads."""
        durations = np.zeros(int(self.budget.max()) + 1)
        np.maximum.at(durations, self.budget, self.busy(load))
        return durations

    def time(self, volumes: Floats) -> float:
        """Return the objective value of volumes [groups, links]."""
        return float(self.durations(self.weight @ volumes).sum())

    def spent(self, lengths: Floats) -> float:
        """Return the largest sum of capacity times length over the links of a budget."""
        total = np.bincount(self.link_class, self.graph.capacity * lengths, self.classes)
        return float(np.bincount(self.budget, total[: self.classes]).max())

    def link_lengths(self, prices: Floats) -> Floats:
        """Return a length per link from a price per class; links without a class have length 0."""
        spread = np.zeros(int(self.link_class.max()) + 1)
        spread[: self.classes] = prices
        return spread[self.link_class]


def whole_program(problem: Problem, groups: Groups) -> FlowProgram:
    """Return the program without symmetry: every group has weight 1, every link is a class."""
    links = np.arange(problem.topology.links, dtype=np.int64)
    weight = np.ones(len(groups.start))
    return FlowProgram(problem.topology, groups, weight, links, np.zeros_like(links))


def reduced_program(symmetry: Symmetry) -> FlowProgram:
    """Return the program of one source per orbit, or of all sources without symmetry."""
    problem, orbit = symmetry.problem, symmetry.link_orbit
    if symmetry.trivial:
        return whole_program(problem, by_source(problem))
    sources, size = symmetry.representatives()
    groups, weight = by_source(problem, sources), size.astype(np.float64)
    budget = np.zeros(int(orbit.max()) + 1, dtype=np.int64)
    return FlowProgram(problem.topology, groups, weight, orbit, budget)


def certify(problem: Problem, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among unit lengths and candidate lengths."""
    return certify_program(whole_program(problem, by_source(problem)), candidates)


def certify_program(program: FlowProgram, candidates: Iterable[Floats]) -> Certificate:
    """Return the best certificate among unit lengths and candidate lengths.

    Any lengths prove a bound, so a solver's duals may be suboptimal or infeasible. Under symmetry
    the lengths must be equal within each class of links.
    """
    lengths = [np.ones(program.graph.links), *map(_normalize, candidates)]
    bound, best = max((program_bound(program, each), index) for index, each in enumerate(lengths))
    return Certificate(lengths[best], bound)


def length_bound(problem: Problem, lengths: Floats) -> float:
    """Return sum of demand times distance over sum of capacity times length; 0 if all are 0."""
    return program_bound(whole_program(problem, by_source(problem)), lengths)


def program_bound(program: FlowProgram, lengths: Floats, team: Team = ALONE) -> float:
    """Return the bound of lengths on the optimum of a program; 0 if all are 0.

    In a team the program is the part of one rank, and the bound that of the whole.
    """
    spent = program.spent(lengths)
    if spent <= 0:
        return 0.0
    sums = distance_sums(program.graph, lengths, program.groups.start, program.groups.wanted)
    return float(team.total(np.array([program.weight @ sums]))[0]) / spent


def _normalize(lengths: Floats) -> Floats:
    """Return lengths, negative ones set to 0, scaled to a maximum of 1."""
    positive = np.maximum(lengths, 0.0)
    longest = positive.max(initial=0.0)
    return positive / longest if longest > 0 else positive
