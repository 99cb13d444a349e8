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
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.by_lp import linear_program
from alltoall.flows.exact import Groups, by_commodity, by_source, exact_flows
from alltoall.flows.first_order import answer_by_steps
from alltoall.flows.guess import Guess
from alltoall.flows.program import FlowProgram, program_bound
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.ir.problem import Problem
from alltoall.lp.settings import LPStatus
from alltoall.lp.solve import solve_program
from alltoall.paths.shortest import shortest_distances
from alltoall.routes.single import COARSE_BOUND_GAP
from alltoall.schedules.expansion import Expansion
from alltoall.settings import SolveSettings

COARSE_GAP = COARSE_BOUND_GAP
"""The gap to which primal-dual steps go at least, however small a one is asked for."""


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
