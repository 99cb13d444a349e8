"""`link`: the link-based maximum concurrent flow with one commodity per pair, in one program.

This is the paper's first formulation (eq:mcmcf-F to ineq:mcmcf-non-negativity). It has N(N-1)
times as many variables as there are links, so it is the reference for small cases;
`decomposed` reaches the same rate with N times fewer.
"""

from a2aflow.flows.by_lp import require_program_memory, solve_by_lp
from a2aflow.flows.groups import by_commodity
from a2aflow.flows.program import whole_program
from a2aflow.ir.flow import Flow
from a2aflow.ir.problem import Problem
from a2aflow.settings import SolveSettings


def solve_link(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the link-based program; the flow is per commodity."""
    settings = settings.begin()
    require_program_memory(problem.topology, len(problem.demand.pairs()[0]))
    program = whole_program(problem, by_commodity(problem))
    return solve_by_lp(problem, program, settings, "link")
