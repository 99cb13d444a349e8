"""The methods of `solve`: one optimum, and one signature from a problem to a certified flow.

| method | program | solver |
|---|---|---|
| `link` | one commodity per pair, the paper's first formulation | linear program |
| `grouped` | one flow per source, the master program | linear program; exact vertices |
| `first-order` | the same | sweeps (`flows.sweeps`), or primal-dual steps (`flows.first_order`) |
| `decomposed` | the same, then a flow per pair | by size; path decomposition (`flows.decompose`) |
| `decomposed-lp` | the same, then a flow per pair | by size; child programs (`flows.decompose`) |

`link` (eq:mcmcf-F to ineq:mcmcf-non-negativity) has N(N-1) times as many variables as there are
links, so it is the reference for small cases. The master program (eq:Dmcmcf-source-F to
ineq:Dmcmcf-source-non-negativity) has N times fewer, and the same optimum. All solvers take the
program reduced by symmetry (`symmetry.orbits`), and stop at once where shortest paths are optimal.
`flows.sizes` says which solver pays at which size.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from alltoall.flows import sizes
from alltoall.flows.by_lp import (
    SMALL_GAP,
    finish_small,
    require_program_memory,
    solve_by_lp,
    with_status,
)
from alltoall.flows.decompose import per_commodity, split_by_programs
from alltoall.flows.exact import by_commodity
from alltoall.flows.program import FlowProgram, reduced_program, whole_program
from alltoall.flows.symmetry.orbits import expand, expand_if_small, find_symmetry
from alltoall.flows.workers import require_cluster
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.registry import deferred
from alltoall.settings import SolveSettings

Method = Callable[[Problem, SolveSettings], Flow]
Means = Callable[[Problem, FlowProgram, SolveSettings, str], Flow]

solve_by_steps: Means = deferred("alltoall.flows.first_order:solve_by_steps")
"""It is imported when called: most problems do not need it."""


def solve_link(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the link-based program; the flow is per commodity."""
    require_program_memory(problem.topology, len(problem.demand.pairs()[0]))
    program = whole_program(problem, by_commodity(problem))
    return solve_by_lp(problem, program, settings, "link")


def solve_grouped(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program as a linear program; the flow is per source."""
    return expand_if_small(solve_master(problem, settings, solve_by_lp, "grouped"))


def solve_first_order(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program by sweeps or primal-dual steps; the flow is per source."""
    return expand_if_small(solve_master(problem, settings, _by_steps, "first-order"))


def solve_sources(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program and return the flow of every source, expanded by symmetry."""
    variables = len(problem.sources) * problem.topology.links
    small = variables < sizes.WHOLE_VARIABLES
    return expand(solve_master(problem, replace(settings, symmetry=False) if small else settings))


def _by_steps(problem: Problem, program: FlowProgram, settings: SolveSettings, method: str) -> Flow:
    """Solve by sweeps or steps, and a small program then to the end by a linear program."""
    flow = solve_by_steps(problem, program, settings, method)
    return finish_small(problem, program, flow, settings)


def _by_size(problem: Problem, program: FlowProgram, settings: SolveSettings, method: str) -> Flow:
    """Solve by size; take steps where the linear program's solvers fail.

    Interior points and simplex may fail on capacities over many orders of magnitude.
    """
    if settings.solver != "auto":
        return solve_by_lp(problem, program, settings, method)
    if program.variables > sizes.FIRST_ORDER_VARIABLES:
        return solve_by_steps(problem, program, settings, "first-order")
    flow = solve_by_lp(problem, program, settings, method)
    if flow.status is not Status.GAP_NOT_REACHED:
        return flow
    other = solve_by_steps(problem, program, settings, "first-order")
    return min(flow, other, key=lambda flow: flow.gap)


def solve_master(
    problem: Problem, settings: SolveSettings, means: Means = _by_size, method: str = "grouped"
) -> Flow:
    """Solve the master program; under symmetry, return the flow of one source per orbit."""
    symmetry = find_symmetry(problem, settings.symmetry)
    program = reduced_program(symmetry)
    flow = means(problem, program, settings, method)
    return flow if symmetry.trivial else replace(flow, generators=symmetry.generators)


def solve_decomposed(
    problem: Problem,
    settings: SolveSettings,
    split: Callable[[Flow, SolveSettings], Flow] = per_commodity,
    method: str = "decomposed",
) -> Flow:
    """Solve the master program and split its flow into paths; the flow is per commodity.

    If the splitting is stopped by a time limit or Ctrl-C, return the master's flow, which has the
    same rate and certificate, but is per source.
    """
    require_cluster(settings)
    master = replace(solve_sources(problem, settings), method=method)
    if master.status is Status.INTERRUPTED:
        return master
    if settings.out_of_time():
        return with_status(master, Status.TIME_LIMIT, settings)
    try:
        flow = split(master, settings)
        if flow.time > master.time * (1 + SMALL_GAP):
            # A child program lost flow below its tolerance; path decomposition loses none.
            flow = per_commodity(master, settings)
    except (TimeoutError, KeyboardInterrupt) as stop:
        early = Status.TIME_LIMIT if isinstance(stop, TimeoutError) else Status.INTERRUPTED
        return with_status(master, early, settings)
    # The splitting keeps the gap, so the status is that of the master.
    late = settings.out_of_time() or master.status is Status.TIME_LIMIT
    return with_status(flow, Status.TIME_LIMIT if late else Status.GAP_NOT_REACHED, settings)


solve_decomposed_lp: Method = partial(
    solve_decomposed, split=split_by_programs, method="decomposed-lp"
)
"""Solve the master program, then the paper's child programs; the flow is per commodity."""


def method_for_size(problem: Problem) -> Method:
    """Return the method of `auto`; all methods have the same optimum."""
    pairs = len(problem.sources) * len(problem.topology.terminals)
    return solve_decomposed if pairs <= sizes.SPLIT_PAIRS else solve_master
