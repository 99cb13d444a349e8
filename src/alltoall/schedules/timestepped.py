"""tsMCF: the time-stepped concurrent flow, for fabrics where hosts or accelerators forward.

On the time-expanded graph of T steps, over volumes x[g, l, t] and the duration U[t] of each step:

    minimise    sum over t of U[t]                                                (eq:mcmcf-Ut)
    subject to  sum over g of x[g, l, t]  <=  cap[l] U[t]     for every l, t      (capacity)
                B x[g]  =  wanted[g]                          for every group g   (conservation)
                x >= 0

Conservation on the expanded graph, with free storage links, is the same as the paper's cumulative
inequalities (ineq:mcmcf-t-flow-conservation to ineq:mcmcf-t-demand-conservation): a node cannot
send what it has not received in an earlier step. As for the plain flow, a group is a pair in the
paper's form and a source in the decomposed one; the optimum is the same.

A group has no variables for links whose tail its source cannot reach in time. Under translations
(`flows.symmetry`) one source per orbit is enough, and orbits of links share their rows. Programs
that are still too large for a solver of linear programs are solved by primal-dual steps, to a gap
below the loss of whole chunks.

The time-expanded graph has one copy of the terminals per moment, one copy of the links per step.
Terminal u has a copy u_t for every moment t = 0..T, before and after each of the T steps. A
storage link u_t -> u_(t+1) is waiting. In step t = 0..T-1 a link (u, v) between terminals leads
from u_t to v_(t+1). Switches store nothing, so they have one copy per step, and a link to or from a
switch stays within the step.

A schedule of T steps is a flow on this graph from (s, 0) to (d, T); paths on it need no detours.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.by_lp import linear_program
from alltoall.flows.exact import Groups, by_commodity, by_source, exact_flows
from alltoall.flows.first_order import answer_by_steps
from alltoall.flows.guess import Guess
from alltoall.flows.program import FlowProgram, program_bound
from alltoall.flows.symmetry.orbits import Symmetry
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.topology import MAX_LINKS, Topology
from alltoall.lp.settings import LPStatus
from alltoall.lp.solve import solve_program
from alltoall.paths.shortest import shortest_distances
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.settings import SolveSettings


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


COARSE_GAP = COARSE_BOUND_GAP
"""Least gap of primal-dual steps, even if a smaller one is requested."""


@dataclass(frozen=True, eq=False)
class TimedFlow:
    """A fractional schedule: exact volumes [groups, links of the expanded graph].

    A group stands for its images under the translations. `bound` is a lower bound on every schedule
    of as many steps, proven by lengths of the expanded graph; `exact` is the gap of the solver.
    """

    expansion: Expansion
    program: FlowProgram
    volumes: Floats
    status: Status
    translations: Translations
    bound: float = 0.0
    exact: float = 1e-9

    @property
    def groups(self) -> Groups:
        """The groups of the flow."""
        return self.program.groups

    @cached_property
    def load(self) -> Floats:
        """The load of each link of the expanded graph."""
        return np.asarray(self.program.weight @ self.volumes)

    @property
    def durations(self) -> Floats:
        """The duration of each step: its largest load over capacity."""
        return self.program.durations(self.load)

    @property
    def time(self) -> float:
        """The sum of the durations."""
        return float(self.durations.sum())

    def cost(self, latency: float) -> float:
        """Return the time, plus a latency for each step."""
        return self.time + latency * self.expansion.steps


def solve_timestepped(
    problem: Problem,
    steps: int,
    settings: SolveSettings,
    per_commodity: bool = False,
    translations: Translations | None = None,
    lengths: Floats | None = None,
) -> TimedFlow:
    """Return an optimal fractional schedule of `steps` steps.

    The `lengths` of the plain flow's certificate are a good start.
    """
    expansion = Expansion(problem, steps)
    translations = translations or find_translations(problem, wanted=False)
    if per_commodity:
        program = expansion.program(expansion.groups(by_commodity(problem)))
    else:
        program = expansion.reduced_program(translations.symmetry)
    program.require_memory()
    group, link = useful_variables(program)
    start = TimedFlow(expansion, program, np.zeros((0, 0)), Status.GAP_NOT_REACHED, translations)
    if settings.solver == "auto" and len(link) > sizes.TIMED_FIRST_ORDER_VARIABLES:
        return _by_steps(start, settings, lengths)
    return _by_lp(start, settings, group, link)


def _with_status(flow: TimedFlow, otherwise: Status, gap: float) -> TimedFlow:
    """Set the status by the certified gap, not by the status of the solver."""
    proven = flow.time / flow.bound - 1 if flow.bound > 0 else np.inf
    return replace(flow, status=Status.of_gap(proven, gap, otherwise))


def _by_lp(start: TimedFlow, settings: SolveSettings, group: Ints, link: Ints) -> TimedFlow:
    """Solve the linear program over the variables given."""
    program = start.program
    result = solve_program(
        linear_program(program, group, link), settings.solver, settings.lp_settings()
    )
    if result.status is LPStatus.INTERRUPTED:
        raise KeyboardInterrupt
    approximate = np.zeros((len(program.weight), program.graph.links))
    if result.x is not None:
        approximate[group, link] = result.x[: len(link)]
    volumes, bound = exact_flows(program.graph, program.groups, approximate), 0.0
    if result.row_dual is not None:
        prices = np.maximum(-result.row_dual[-program.classes :], 0.0)
        bound = program_bound(program, program.link_lengths(prices))
    late = result.status is LPStatus.TIME_LIMIT
    ended = Status.TIME_LIMIT if late else Status.GAP_NOT_REACHED
    return _with_status(replace(start, volumes=volumes, bound=bound), ended, settings.gap)


def _by_steps(start: TimedFlow, settings: SolveSettings, lengths: Floats | None) -> TimedFlow:
    """Solve by primal-dual steps; the status is optimal only if the requested gap is proven."""
    program, expansion = start.program, start.expansion
    plain = np.ones(expansion.problem.topology.links) if lengths is None else lengths
    waiting = np.zeros(program.graph.links - expansion.timed_links)
    tiled = np.concatenate((np.tile(plain, expansion.steps), waiting))
    nothing = np.zeros((len(program.weight), program.graph.links))
    guess = Guess(exact_flows(program.graph, program.groups, nothing, tiled), tiled)
    gap = max(settings.gap, COARSE_GAP)
    answer = answer_by_steps(program, replace(settings, gap=gap), guess)
    if answer.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    volumes = nothing
    first, link, volume = answer.entries
    volumes[np.repeat(np.arange(len(program.weight)), np.diff(first)), link] = volume
    bound = max(answer.bound, program_bound(program, tiled))
    found = replace(start, volumes=volumes, bound=bound, exact=gap)
    return _with_status(found, answer.status, settings.gap)


def is_large(problem: Problem, steps: int, translations: Translations) -> bool:
    """Return whether a program of so many steps is too large for solvers of linear programs."""
    program = Expansion(problem, steps).reduced_program(translations.symmetry)
    return len(useful_variables(program)[1]) > sizes.TIMED_FIRST_ORDER_VARIABLES


def useful_variables(program: FlowProgram) -> tuple[Ints, Ints]:
    """Return group and link of the variables that can be positive."""
    graph = program.graph
    starts, row = np.unique(program.groups.start, return_inverse=True)
    reached = np.isfinite(shortest_distances(graph, np.ones(graph.links), starts))
    group, link = np.nonzero(reached[row][:, graph.tail])
    return group.astype(np.int64), link.astype(np.int64)


def without_translations(flow: TimedFlow) -> TimedFlow:
    """Return the same flow with a group for every source, without translations."""
    problem, steps = flow.expansion.problem, flow.expansion.steps
    topology, translations = problem.topology, flow.translations
    program = flow.expansion.program(flow.expansion.groups(by_source(problem)))
    volumes = np.zeros((len(program.weight), program.graph.links))
    timed, terminals = flow.expansion.timed_links, len(topology.terminals)
    moments = np.arange(steps)[:, None]
    for nodes, links in zip(translations.members, translations.link_members, strict=True):
        terminal = topology.position[nodes[topology.terminals]]
        row = np.searchsorted(program.groups.source, terminal[flow.groups.source])
        hops = (moments * topology.links + links).ravel()
        waits = (timed + moments * terminals + terminal).ravel()
        volumes[row[:, None], np.concatenate((hops, waits))] = flow.volumes
    alone = find_translations(problem, wanted=False)
    return replace(flow, program=program, volumes=volumes, translations=alone)
