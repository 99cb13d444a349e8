"""The master program: one flow per source, by whichever means its size calls for.

| method | means | where it pays |
|---|---|---|
| `grouped` | a solver of linear programs | up to some hundred thousand variables; exact vertices |
| `first-order` | primal-dual steps over arrays (`flows.first_order`) | beyond |

Both solve the program that symmetry leaves over (`symmetry.orbits`), and both stop at once where
plain shortest paths are optimal.
"""

from collections.abc import Callable
from dataclasses import replace

from a2aflow.flows.by_lp import finished, solve_by_lp
from a2aflow.flows.first_order import solve_by_steps
from a2aflow.flows.program import FlowProgram, reduced_program
from a2aflow.flows.symmetry.orbits import expand, expand_if_small, find_symmetry
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.settings import SolveSettings

FIRST_ORDER_VARIABLES = 50_000
"""Variables above which primal-dual steps beat solvers of linear programs."""

SYMMETRY_VARIABLES = 20_000
"""Below this size a flow that is to be routed is solved as it stands.

Vertices of the whole program split few pairs, and symmetric flows split many.
"""

Solver = Callable[[Problem, FlowProgram, SolveSettings, str], Flow]


def solve_grouped(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program as a linear program; the flow is per source."""
    return expand_if_small(_solve(problem, settings, solve_by_lp, "grouped"))


def solve_first_order(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program by primal-dual steps; the flow is per source."""
    return expand_if_small(_solve(problem, settings, _by_steps, "first-order"))


def solve_master(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program by the means that suits its size.

    Under symmetry the flow is that of one source per orbit.
    """
    return _solve(problem, settings, _by_size, "grouped")


def solve_sources(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program and return the flow of every source, written out."""
    settings = settings.begin()
    variables = len(problem.sources) * problem.topology.links
    small = variables < SYMMETRY_VARIABLES
    return expand(solve_master(problem, replace(settings, symmetry=False) if small else settings))


def _by_steps(problem: Problem, program: FlowProgram, settings: SolveSettings, method: str) -> Flow:
    """Take primal-dual steps; what is small is then solved to the end."""
    flow = solve_by_steps(problem, program, settings, method)
    return finished(problem, program, flow, settings)


def _by_size(problem: Problem, program: FlowProgram, settings: SolveSettings, method: str) -> Flow:
    """Take the solver that the size calls for; where a linear program's fails, steps may not.

    Interior points and simplex lose their way on capacities over many orders of magnitude.
    """
    if settings.solver != "auto":
        return solve_by_lp(problem, program, settings, method)
    if program.variables > FIRST_ORDER_VARIABLES:
        return solve_by_steps(problem, program, settings, "first-order")
    flow = solve_by_lp(problem, program, settings, method)
    if flow.status is not Status.GAP_NOT_REACHED:
        return flow
    other = solve_by_steps(problem, program, settings, "first-order")
    return min(flow, other, key=lambda each: each.gap)


def _solve(problem: Problem, settings: SolveSettings, solver: Solver, method: str) -> Flow:
    settings = settings.begin()
    symmetry = find_symmetry(problem, settings.symmetry)
    program = reduced_program(symmetry)
    flow = solver(problem, program, settings, method)
    return flow if symmetry.trivial else replace(flow, generators=symmetry.generators)
