"""The concurrent flow program on the layered graph; `routes.deadlock_free.best` opens with it."""

from dataclasses import replace

import numpy as np
from scipy.sparse import block_array, coo_array

from a2aflow.flows.exact import exact_flows
from a2aflow.flows.groups import Groups
from a2aflow.flows.matrices import conservation, sharing
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.lp.program import LinearProgram, LPResult
from a2aflow.lp.solve import solve_program
from a2aflow.routes.deadlock_free.graph import LayeredGraph
from a2aflow.settings import SolveSettings


def least_time(layered: LayeredGraph, settings: SolveSettings) -> tuple[float, Floats]:
    """Return the least time in the layers, as the solver sees it, and the dual of each link.

    Duals from the inside of the optimal face say more about the orders than a vertex of it does,
    so the interior-point solver is used, without crossover, unless another is asked for.
    """
    groups = layered.groups()
    result = _solve(layered, groups, layered.variables(groups), settings, vertex=False)
    time = np.inf if result.x is None else float(result.x[-1])
    return time, _duals(layered, result)


def solve_layered(layered: LayeredGraph, settings: SolveSettings) -> tuple[Floats, Floats]:
    """Return exact volumes [sources, links of the graph] of least time, and each link's dual."""
    groups = layered.groups()
    group, link = layered.variables(groups)
    result = _solve(layered, groups, (group, link), settings, vertex=True)
    approximate = np.zeros((len(groups.start), layered.graph.links))
    if result.x is not None:
        approximate[group, link] = result.x[:-1]
    return exact_flows(layered.graph, groups, approximate), _duals(layered, result)


def _solve(
    layered: LayeredGraph,
    groups: Groups,
    variables: tuple[Ints, Ints],
    settings: SolveSettings,
    vertex: bool,
) -> LPResult:
    solver = "ipm" if settings.solver == "auto" else settings.solver
    wanted = replace(settings.lp_settings(), vertex=vertex)
    return solve_program(_program(layered, groups, *variables), solver, wanted)


def _program(layered: LayeredGraph, groups: Groups, group: Ints, link: Ints) -> LinearProgram:
    """Build the program; variables are the flows of the given groups and links, then z."""
    topology = layered.problem.topology
    balance, wanted = conservation(layered.graph, groups, group, link)
    shared = sharing(topology.links, layered.origin[link])
    capacity = coo_array(-topology.capacity[:, None])
    blocks: list[list[coo_array | None]] = [[balance, None], [shared, capacity]]
    return LinearProgram(
        cost=np.append(np.zeros(len(link)), 1.0),
        matrix=block_array(blocks, format="csc"),
        row_lower=np.concatenate((wanted, np.full(topology.links, -np.inf))),
        row_upper=np.concatenate((wanted, np.zeros(topology.links))),
    )


def _duals(layered: LayeredGraph, result: LPResult) -> Floats:
    """Return the dual of each link's capacity, all 0 if the solver has none."""
    links = layered.problem.topology.links
    if result.row_dual is None:
        return np.zeros(links)
    return np.asarray(np.maximum(-result.row_dual[-links:], 0.0))
