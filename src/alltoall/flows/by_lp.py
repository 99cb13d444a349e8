r"""The maximum concurrent flow program by a solver of linear programs.

The paper maximises the common rate F of flows f within the capacities. Dividing its program by F
gives the same one in units of time, with volumes g = f / F and the time z = 1 / F:

    minimise    z
    subject to  sum over g of x[g, l]  <=  cap[l] z             for every link l     (capacity)
                B x[g]  =  wanted[g]                            for every group g    (conservation)
                x[g, l] >= 0

With one group per pair this is the paper's link-based MCF (eq:mcmcf-F to
ineq:mcmcf-non-negativity) in its compact matrix form; with one group per source it is the master
program (eq:Dmcmcf-source-F to ineq:Dmcmcf-source-non-negativity). `FlowProgram` has the general
form, in which symmetry makes one source stand for many.

The duals of the capacity rows are the link lengths of the certificate.
"""

from dataclasses import replace

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.exact import Groups, exact_flows
from alltoall.flows.program import FlowProgram, certify_program
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lp import SMALL_SIZE
from alltoall.lp.program import Entries, LinearProgram, LPResult, least_time
from alltoall.lp.settings import LPStatus
from alltoall.lp.solve import solve_program, solvers_to_try
from alltoall.settings import SolveSettings

VARIABLE_BYTES = 750
"""Memory of a variable until the program is solved: arrays, matrix, solver's copies."""

MOST_PROGRAM_BYTES = 4 << 30
"""Memory beyond which a program is refused rather than built."""

VARIABLE_SECONDS = 2e-6
"""Seconds to build and pass on a variable: no program is begun that would miss the time limit."""

SMALL_GAP = 1e-9
"""The gap of small programs, even if a larger one is requested."""


def plain_flow(problem: Problem, program: FlowProgram, method: str) -> Flow:
    """Return the flow on shortest paths, which is optimal on topologies such as K_n."""
    program.require_memory()
    nothing = np.zeros((len(program.weight), problem.topology.links))
    volumes = exact_flows(problem.topology, program.groups, nothing)
    return flow_from_volumes(problem, program, volumes, certify_program(program, []), method)


def solve_by_lp(
    problem: Problem, program: FlowProgram, settings: SolveSettings, method: str
) -> Flow:
    """Solve the program and return an exact flow with its certificate."""
    require_program_memory(program.graph, len(program.weight))
    return polish(problem, program, plain_flow(problem, program, method), settings)


def finish_small(
    problem: Problem, program: FlowProgram, flow: Flow, settings: SolveSettings
) -> Flow:
    """Return the flow if its program is large or was stopped, else solve it to the end."""
    stopped = flow.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    small = program.variables < SMALL_SIZE and not stopped
    return polish(problem, program, flow, settings) if small else flow


def polish(problem: Problem, program: FlowProgram, flow: Flow, settings: SolveSettings) -> Flow:
    """Improve the flow and its bound by LP solvers in turn.

    Return the flow unchanged if too little time is left to build the program.
    """
    enough = min(settings.gap, SMALL_GAP) if program.variables < SMALL_SIZE else settings.gap
    if flow.gap <= enough:
        return with_status(flow, flow.status, settings)
    left = settings.seconds_left()
    if left is not None and left <= VARIABLE_SECONDS * program.variables:
        return with_status(flow, Status.TIME_LIMIT, settings)
    lp = linear_program(program, *all_variables(program.graph, program.groups))
    ended = LPStatus.STOPPED
    for solver in solvers_to_try(settings.solver, lp.size):
        result = solve_program(lp, solver, settings.lp_settings())
        found = _exact_flow(problem, program, result, flow.method)
        # The better flow and the better bound may come from different solvers.
        proof = max(flow.certificate, found.certificate, key=lambda proof: proof.bound)
        flow = replace(min(found, flow, key=lambda flow: flow.time), certificate=proof)
        ended = result.status
        if flow.gap <= enough or ended in ENDED:
            break
    return with_status(flow, ENDED.get(ended, Status.GAP_NOT_REACHED), settings)


def _exact_flow(problem: Problem, program: FlowProgram, result: LPResult, method: str) -> Flow:
    """Return a solver's flow made exact, or shortest paths without one, and its certificate."""
    shape, duals = (len(program.weight), program.graph.links), result.row_dual
    answer = np.zeros(shape) if result.x is None else result.x[:-1].reshape(shape)
    volumes = exact_flows(program.graph, program.groups, answer)
    lengths = [] if duals is None else [program.link_lengths(-duals[-program.classes :])]
    return flow_from_volumes(problem, program, volumes, certify_program(program, lengths), method)


def require_program_memory(graph: Topology, groups: int) -> None:
    """Raise, before anything is built, if the linear program would not fit in memory."""
    needed = groups * graph.links * VARIABLE_BYTES
    if needed > MOST_PROGRAM_BYTES:
        raise InputError(
            f"{graph.name}: a linear program of {groups * graph.links:,} variables, "
            f"{groups:,} groups times {graph.links:,} links, needs about "
            f"{needed / 2**30:.1f} GiB; expected at most {MOST_PROGRAM_BYTES / 2**30:g} GiB. "
            "The method first-order needs a fraction of it"
        )


ENDED = {LPStatus.TIME_LIMIT: Status.TIME_LIMIT, LPStatus.INTERRUPTED: Status.INTERRUPTED}
"""The status of a solve that missed its gap, by the status of its program."""


def flow_from_volumes(
    problem: Problem, program: FlowProgram, volumes: Floats, certificate: Certificate, method: str
) -> Flow:
    """Scale exact volumes to the largest feasible rate."""
    group, link = np.nonzero(volumes)
    start = np.searchsorted(group, np.arange(len(program.weight) + 1))
    entries = (start, link, volumes[group, link])
    return flow_from_entries(problem, program, entries, certificate, method)


def flow_from_entries(
    problem: Problem,
    program: FlowProgram,
    entries: tuple[Ints, Ints, Floats],
    certificate: Certificate,
    method: str,
) -> Flow:
    """Scale exact volumes, as (start, link, volume) by group, to the largest feasible rate."""
    start, link, volume = entries
    weight = np.repeat(program.weight, np.diff(start))
    load: Floats = np.bincount(link, weight * volume, problem.topology.links).astype(np.float64)
    time = float(program.durations(load).sum())
    return Flow(
        problem=problem,
        rate=1.0 / time,
        source=program.groups.source,
        destination=program.groups.destination,
        start=start,
        link=link,
        amount=volume / time,
        certificate=certificate,
        method=method,
    )


def with_status(flow: Flow, otherwise: Status, settings: SolveSettings) -> Flow:
    """Set the status by the certified gap, not by the status of the solver."""
    return replace(flow, status=Status.of_gap(flow.gap, settings.gap, otherwise))


def all_variables(topology: Topology, groups: Groups) -> tuple[Ints, Ints]:
    """Return group and link of one variable for every group and link."""
    count = len(groups.start)
    return np.repeat(np.arange(count), topology.links), np.tile(np.arange(topology.links), count)


def conservation(
    topology: Topology, groups: Groups, group: Ints, link: Ints
) -> tuple[Entries, Floats]:
    """Return B and the right-hand side of B x = wanted: one row per group and node it touches.

    Entries are +1 where a link enters a node, -1 where it leaves; sources have no row.
    """
    keys = np.concatenate(
        (group * topology.nodes + topology.head[link], group * topology.nodes + topology.tail[link])
    )
    signs = np.repeat((1.0, -1.0), len(link))
    columns = np.tile(np.arange(len(link)), 2)
    keep = keys % topology.nodes != np.tile(groups.start[group], 2)
    present, row = np.unique(keys[keep], return_inverse=True)
    wanted = groups.wanted[present // topology.nodes, present % topology.nodes]
    return Entries(signs[keep], row, columns[keep]), wanted


def link_sums(link: Ints) -> Entries:
    """Return the rows of link loads: the sum of all groups' flow on each link."""
    return Entries(np.ones(len(link)), link, np.arange(len(link)))


def linear_program(program: FlowProgram, group: Ints, link: Ints) -> LinearProgram:
    """Build the linear program over the variables x[group, link], then one z per budget.

    Rows are conservation, then one per class of links.
    """
    balance, wanted = conservation(program.graph, program.groups, group, link)
    row = program.link_class[link]
    column = np.flatnonzero(row < program.classes)
    load = Entries(program.weight[group[column]], row[column], column)
    width = program.class_size * program.class_capacity
    return least_time(balance, wanted, load, width, program.budget)
