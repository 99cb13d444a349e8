"""tsMCF: the time-stepped concurrent flow, for fabrics where hosts or accelerators forward.

On the time-expanded graph of T steps, over volumes x[g, l, t] and the duration U[t] of each step:

    minimise    sum over t of U[t]                                                (eq:mcmcf-Ut)
    subject to  sum over g of x[g, l, t]  <=  cap[l] U[t]     for every l, t      (capacity)
                B x[g]  =  wanted[g]                          for every group g   (conservation)
                x >= 0

Conservation on the expanded graph, with free storage links, is what the paper writes as cumulative
inequalities (ineq:mcmcf-t-flow-conservation to ineq:mcmcf-t-demand-conservation): a node cannot
send what it has not received in an earlier step. As for the plain flow, a group is a pair in the
paper's form and a source in the decomposed one; the optimum is the same.

A group's variables are left out where its source cannot have reached a link's tail in time.
"""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import block_array, coo_array

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Status
from a2aflow.ir.problem import Problem
from a2aflow.lp import LinearProgram, LPStatus, solve_program
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.expansion import Expansion, step_loads
from a2aflow.solve.groups import Groups, by_commodity, by_source
from a2aflow.solve.network import conservation, sharing
from a2aflow.solve.paths import shortest_distances
from a2aflow.solve.settings import SolveSettings


@dataclass(frozen=True, eq=False)
class TimedFlow:
    """A fractional schedule: exact volumes [groups, links of the expanded graph]."""

    expansion: Expansion
    groups: Groups
    volumes: Floats
    status: Status

    @property
    def durations(self) -> Floats:
        """The duration of each step: its largest load over capacity."""
        capacity = self.expansion.problem.topology.capacity
        return np.asarray((step_loads(self.expansion, self.volumes) / capacity).max(axis=1))

    @property
    def time(self) -> float:
        """The sum of the durations."""
        return float(self.durations.sum())


def solve_timestepped(
    problem: Problem, steps: int, settings: SolveSettings, per_commodity: bool = False
) -> TimedFlow:
    """Return an optimal fractional schedule of `steps` steps."""
    expansion = Expansion(problem, steps)
    groups = expansion.groups(by_commodity(problem) if per_commodity else by_source(problem))
    group, link = useful_variables(expansion, groups)
    program = timestepped_program(expansion, groups, group, link)
    result = solve_program(program, settings.solver, settings.lp_settings())
    if result.status is LPStatus.INTERRUPTED:
        raise KeyboardInterrupt
    approximate = np.zeros((len(groups.start), expansion.graph.links))
    if result.x is not None:
        approximate[group, link] = result.x[: len(link)]
    volumes = exact_flows(expansion.graph, groups, approximate)
    return TimedFlow(expansion, groups, volumes, ENDED.get(result.status, Status.GAP_NOT_REACHED))


ENDED = {LPStatus.OPTIMAL: Status.OPTIMAL, LPStatus.TIME_LIMIT: Status.TIME_LIMIT}
"""How a time-stepped solve ended, by how its program did."""


def useful_variables(expansion: Expansion, groups: Groups) -> tuple[Ints, Ints]:
    """Return group and link of the variables that can be positive."""
    graph = expansion.graph
    starts, row = np.unique(groups.start, return_inverse=True)
    reached = np.isfinite(shortest_distances(graph, np.ones(graph.links), starts))
    group, link = np.nonzero(reached[row][:, graph.tail])
    return group.astype(np.int64), link.astype(np.int64)


def timestepped_program(
    expansion: Expansion, groups: Groups, group: Ints, link: Ints
) -> LinearProgram:
    """Build the program; variables are x by group and link, then U by step."""
    balance, wanted = conservation(expansion.graph, groups, group, link)
    timed = expansion.timed_links
    widths = -np.tile(expansion.problem.topology.capacity, expansion.steps)
    durations = coo_array(
        (widths, (np.arange(timed), expansion.layer)), shape=(timed, expansion.steps)
    )
    blocks: list[list[coo_array | None]] = [[balance, None], [sharing(timed, link), durations]]
    return LinearProgram(
        cost=np.concatenate((np.zeros(len(link)), np.ones(expansion.steps))),
        matrix=block_array(blocks, format="csc"),
        row_lower=np.concatenate((wanted, np.full(timed, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(timed))),
    )
