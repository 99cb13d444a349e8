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
from scipy.sparse import coo_array

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Certificate, Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.lp import LinearProgram, LPResult, LPSettings, LPStatus, solve_program
from a2aflow.solve.certificate import certify
from a2aflow.solve.exact import exact_flows
from a2aflow.solve.groups import Groups
from a2aflow.solve.settings import SolveSettings


def solve_groups(problem: Problem, groups: Groups, settings: SolveSettings, method: str) -> Flow:
    """Solve the program for `groups` and return an exact flow with its certificate."""
    program = concurrent_program(problem.topology, groups)
    result = solve_program(program, settings.solver, _lp_settings(settings))
    volumes = _feasible(problem.topology, groups, result)
    certificate = certify(problem, _duals(problem.topology, result))
    flow = flow_from_volumes(problem, groups, volumes, certificate, method)
    return with_status(flow, result.status, settings)


def concurrent_program(topology: Topology, groups: Groups) -> LinearProgram:
    """Build the program; variables are x[g, l] by group, then z."""
    size = len(groups.start) * topology.links
    row, column, value = conservation_entries(topology, groups.start)
    balance = len(groups.start) * (topology.nodes - 1)
    every_link = np.tile(np.arange(topology.links), len(groups.start))
    matrix = coo_array(
        (
            np.concatenate((value, np.ones(size), -topology.capacity)),
            (
                np.concatenate((row, balance + every_link, balance + np.arange(topology.links))),
                np.concatenate((column, np.arange(size), np.full(topology.links, size))),
            ),
        ),
        shape=(balance + topology.links, size + 1),
    )
    wanted = without_sources(groups.wanted, groups.start)
    return LinearProgram(
        cost=np.append(np.zeros(size), 1.0),
        matrix=matrix.tocsc(),
        row_lower=np.concatenate((wanted, np.full(topology.links, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(topology.links))),
    )


def conservation_entries(topology: Topology, start: Ints) -> tuple[Ints, Ints, Floats]:
    """Return row, column and value of B for every group, stacked; row (g, v) skips the source."""
    group = np.repeat(np.arange(len(start)), topology.links)
    source = start[group]
    variable = np.arange(len(group))
    rows, columns, values = [], [], []
    for ends, sign in ((topology.head, 1.0), (topology.tail, -1.0)):
        node = np.tile(ends, len(start))
        keep = node != source
        row = group * (topology.nodes - 1) + node - (node > source)
        rows.append(row[keep])
        columns.append(variable[keep])
        values.append(np.full(int(keep.sum()), sign))
    return np.concatenate(rows), np.concatenate(columns), np.concatenate(values)


def without_sources(wanted: Floats, start: Ints) -> Floats:
    """Return `wanted` flat, without the entry of each group's source."""
    keep = np.ones(wanted.shape, dtype=np.bool_)
    keep[np.arange(len(start)), start] = False
    return wanted[keep]


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


def _lp_settings(settings: SolveSettings) -> LPSettings:
    return LPSettings(
        # The repaired flow and the recomputed bound both lose a little on the solver's numbers.
        tolerance=min(1e-8, settings.gap / 100),
        time_limit=settings.seconds_left(),
        threads=settings.workers,
        report=settings.report,
    )


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
