r"""The maximum concurrent flow program, for groups of any kind.

The paper maximises the common rate F of flows f within the capacities. Dividing its program by F
gives the same one in units of time, with volumes g = f / F and the time z = 1 / F:

    minimise    z
    subject to  sum over g of x[g, l]  <=  cap[l] z             for every link l     (capacity)
                B x[g]  =  wanted[g]                            for every group g    (conservation)
                x[g, l] >= 0

where B is the node-to-link incidence matrix without the row of the group's source: +1 where a link
enters a node, -1 where it leaves. With one group per pair this is the paper's link-based MCF
(eq:mcmcf-F to ineq:mcmcf-non-negativity) in its compact matrix form; with one group per source it
is the master program (eq:Dmcmcf-source-F to ineq:Dmcmcf-source-non-negativity).

The duals of the capacity rows are the link lengths of the certificate.
"""

from dataclasses import replace

import numpy as np
from scipy.sparse import block_array, coo_array

from a2aflow.ir.arrays import Floats
from a2aflow.ir.flow import Certificate, Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.lp import LinearProgram, LPResult, LPStatus, solve_program
from a2aflow.solve.certificate import certify
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.groups import Groups
from a2aflow.solve.network import all_variables, conservation, sharing
from a2aflow.solve.settings import SolveSettings


def solve_groups(problem: Problem, groups: Groups, settings: SolveSettings, method: str) -> Flow:
    """Solve the program for `groups` and return an exact flow with its certificate."""
    plain = _plain_answer(problem, groups, method)
    if plain.gap <= settings.gap:
        return plain
    program = concurrent_program(problem.topology, groups)
    result = solve_program(program, settings.solver, settings.lp_settings())
    volumes = _feasible(problem.topology, groups, result)
    certificate = certify(problem, _duals(problem.topology, result))
    flow = flow_from_volumes(problem, groups, volumes, certificate, method)
    return with_status(flow, result.status, settings)


def _plain_answer(problem: Problem, groups: Groups, method: str) -> Flow:
    """Return the flow on shortest paths: optimal where there is little to choose, as on K_n."""
    nothing = np.zeros((len(groups.start), problem.topology.links))
    volumes = exact_flows(problem.topology, groups, nothing)
    return flow_from_volumes(problem, groups, volumes, certify(problem, []), method)


def concurrent_program(topology: Topology, groups: Groups) -> LinearProgram:
    """Build the program; variables are x[g, l] by group, then z."""
    group, link = all_variables(topology, groups)
    balance, wanted = conservation(topology, groups, group, link)
    capacity = coo_array(-topology.capacity[:, None])
    blocks: list[list[coo_array | None]] = [
        [balance, None],
        [sharing(topology.links, link), capacity],
    ]
    return LinearProgram(
        cost=np.append(np.zeros(len(link)), 1.0),
        matrix=block_array(blocks, format="csc"),
        row_lower=np.concatenate((wanted, np.full(topology.links, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(topology.links))),
    )


def flow_from_volumes(
    problem: Problem, groups: Groups, volumes: Floats, certificate: Certificate, method: str
) -> Flow:
    """Scale exact volumes to the largest rate at which they fit the capacities."""
    time = volume_time(problem.topology, volumes)
    group, link = np.nonzero(volumes)
    return Flow(
        problem=problem,
        rate=1.0 / time,
        source=groups.source,
        destination=groups.destination,
        start=np.searchsorted(group, np.arange(len(groups.start) + 1)),
        link=link,
        amount=volumes[group, link] / time,
        certificate=certificate,
        method=method,
    )


def with_status(flow: Flow, lp_status: LPStatus, settings: SolveSettings) -> Flow:
    """Say how the solve ended: by the certified gap, whatever the solver believes."""
    if flow.gap <= settings.gap:
        return replace(flow, status=Status.OPTIMAL)
    ended = {LPStatus.TIME_LIMIT: Status.TIME_LIMIT, LPStatus.INTERRUPTED: Status.INTERRUPTED}
    return replace(flow, status=ended.get(lp_status, Status.GAP_NOT_REACHED))


def _feasible(topology: Topology, groups: Groups, result: LPResult) -> Floats:
    """Return exact volumes: the solver's, repaired, unless plain shortest paths beat them."""
    shape = (len(groups.start), topology.links)
    answers = [] if result.x is None else [result.x[:-1].reshape(shape)]
    if result.status is not LPStatus.OPTIMAL:
        answers.append(np.zeros(shape))
    repaired = [exact_flows(topology, groups, answer) for answer in answers]
    return min(repaired, key=lambda volumes: volume_time(topology, volumes))


def volume_time(topology: Topology, volumes: Floats) -> float:
    """Return the time of the most loaded link."""
    return float((volumes.sum(axis=0) / topology.capacity).max())


def _duals(topology: Topology, result: LPResult) -> list[Floats]:
    return [] if result.row_dual is None else [-result.row_dual[-topology.links :]]
