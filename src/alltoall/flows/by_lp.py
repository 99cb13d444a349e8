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
from alltoall.lp.matrix import Entries, sparse_matrix
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.settings import LPStatus
from alltoall.lp.solve import solve_program, solvers_to_try
from alltoall.settings import SolveSettings

VARIABLE_BYTES = 750
"""What a variable takes of memory until the program is solved: arrays, matrix, solver's copies."""

MOST_PROGRAM_BYTES = 4 << 30
"""Memory beyond which a program is refused rather than built."""

VARIABLE_SECONDS = 2e-6
"""What it takes to build and hand over a variable: a program that would come too late is not."""

SMALL_GAP = 1e-9
"""The gap to which small programs are solved, whatever larger one is asked for."""


def plain_flow(problem: Problem, program: FlowProgram, method: str) -> Flow:
    """Return the flow on shortest paths: optimal where there is little to choose, as on K_n."""
    program.require_memory()
    nothing = np.zeros((len(program.weight), problem.topology.links))
    volumes = exact_flows(problem.topology, program.groups, nothing)
    return flow_from_volumes(problem, program, volumes, certify_program(program, []), method)


def solve_by_lp(
    problem: Problem, program: FlowProgram, settings: SolveSettings, method: str
) -> Flow:
    """Solve the program and return an exact flow with its certificate."""
    require_program_memory(program.graph, len(program.weight))
    return polished(problem, program, plain_flow(problem, program, method), settings)


def finished(problem: Problem, program: FlowProgram, flow: Flow, settings: SolveSettings) -> Flow:
    """Return the flow if its program is not small or was stopped, else solved to the end."""
    stopped = flow.status in (Status.TIME_LIMIT, Status.INTERRUPTED)
    small = program.variables < SMALL_SIZE and not stopped
    return polished(problem, program, flow, settings) if small else flow


def polished(problem: Problem, program: FlowProgram, flow: Flow, settings: SolveSettings) -> Flow:
    """Return the flow with what a linear program's solver, or one after the other, does better.

    Where the time left is too short to build the program, it is the flow as it came.
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
        found = _flow_of(problem, program, result, flow.method)
        # The proof of one may be better than that of the other whose flow is.
        proof = max(flow.certificate, found.certificate, key=lambda each: each.bound)
        flow = replace(min(found, flow, key=lambda each: each.time), certificate=proof)
        ended = result.status
        if flow.gap <= enough or ended in ENDED:
            break
    return with_status(flow, ENDED.get(ended, Status.GAP_NOT_REACHED), settings)


def _flow_of(problem: Problem, program: FlowProgram, result: LPResult, method: str) -> Flow:
    """Return the exact flow of a solver's answer, with the certificate of its duals."""
    certificate = certify_program(program, _duals(program, result))
    return flow_from_volumes(problem, program, _feasible(program, result), certificate, method)


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
"""How a solve ended that did not reach its gap, by how its program did."""


def flow_from_volumes(
    problem: Problem, program: FlowProgram, volumes: Floats, certificate: Certificate, method: str
) -> Flow:
    """Scale exact volumes to the largest rate at which they fit the capacities."""
    group, link = np.nonzero(volumes)
    start = np.searchsorted(group, np.arange(len(program.weight) + 1))
    return flow_from_entries(
        problem, program, (start, link, volumes[group, link]), certificate, method
    )


def flow_from_entries(
    problem: Problem,
    program: FlowProgram,
    entries: tuple[Ints, Ints, Floats],
    certificate: Certificate,
    method: str,
) -> Flow:
    """Scale exact volumes, as (start, link, volume) by group, to the largest rate that fits."""
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
    """Say how the solve ended: by the certified gap, whatever the solver believes."""
    return replace(flow, status=Status.of_gap(flow.gap, settings.gap, otherwise))


def _feasible(program: FlowProgram, result: LPResult) -> Floats:
    """Return exact volumes: the solver's, repaired; shortest paths if it has none to show."""
    shape = (len(program.weight), program.graph.links)
    answer = np.zeros(shape) if result.x is None else result.x[:-1].reshape(shape)
    return exact_flows(program.graph, program.groups, answer)


def _duals(program: FlowProgram, result: LPResult) -> list[Floats]:
    if result.row_dual is None:
        return []
    return [program.link_lengths(-result.row_dual[-program.classes :])]


def all_variables(topology: Topology, groups: Groups) -> tuple[Ints, Ints]:
    """Return group and link of one variable for every group and link."""
    count = len(groups.start)
    return np.repeat(np.arange(count), topology.links), np.tile(np.arange(topology.links), count)


def conservation(
    topology: Topology, groups: Groups, group: Ints, link: Ints
) -> tuple[Entries, Floats]:
    """Return B and the right-hand side of B x = wanted: one row per group and node it touches.

    +1 where a link enters a node, -1 where it leaves; the row of a group's source is left out.
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
    """Return the rows that add up all groups' flow on each link."""
    return Entries(np.ones(len(link)), link, np.arange(len(link)))


def class_sums(program: FlowProgram, group: Ints, link: Ints) -> Entries:
    """Return the rows that add up, for each class of links, all flow that counts in it."""
    row = program.link_class[link]
    column = np.flatnonzero(row < program.classes)
    return Entries(program.weight[group[column]], row[column], column)


def linear_program(program: FlowProgram, group: Ints, link: Ints) -> LinearProgram:
    """Build the linear program over the variables x[group, link], then one z per budget.

    Rows are conservation, then one per class of links.
    """
    balance, wanted = conservation(program.graph, program.groups, group, link)
    rows, budgets = len(wanted) + program.classes, int(program.budget.max()) + 1
    room = program.class_size * program.class_capacity
    time = Entries(-room, np.arange(program.classes), program.budget)
    return LinearProgram(
        cost=np.concatenate((np.zeros(len(link)), np.ones(budgets))),
        matrix=sparse_matrix(
            (rows, len(link) + budgets),
            balance,
            class_sums(program, group, link).moved(rows=len(wanted)),
            time.moved(len(wanted), len(link)),
        ),
        row_lower=np.concatenate((wanted, np.full(program.classes, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(program.classes))),
    )
