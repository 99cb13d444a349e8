"""`decomposed`: the master program over sources, and its flows per destination.

The master program (eq:Dmcmcf-source-F to ineq:Dmcmcf-source-non-negativity) is the concurrent flow
program with one group per source: N times fewer variables than `link`, and the same optimum. Its
flow per source then splits into one flow per destination: by taking paths off (`flows.decompose`),
or, as in the paper, by N independent child programs (`flows.children`).
"""

from collections.abc import Callable
from dataclasses import replace

from a2aflow.flows.by_lp import SMALL_GAP, with_status
from a2aflow.flows.children import split_by_programs
from a2aflow.flows.decompose import per_commodity
from a2aflow.flows.master import solve_sources
from a2aflow.flows.workers import require_cluster
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.settings import SolveSettings


def solve_decomposed(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program and take its flow apart into paths; the flow is per commodity."""
    return _solve_and_split(problem, settings, per_commodity, "decomposed")


def solve_decomposed_lp(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program, then the paper's child programs; the flow is per commodity."""
    return _solve_and_split(problem, settings, split_by_programs, "decomposed-lp")


def _solve_and_split(
    problem: Problem,
    settings: SolveSettings,
    split: Callable[[Flow, SolveSettings], Flow],
    method: str,
) -> Flow:
    """Solve the master program and split its flow.

    If time runs out, or the user stops it, during the splitting, the master's flow is returned as
    it is: same rate, same certificate and so as good as it is proven to be, but per source.
    """
    settings = settings.begin()
    require_cluster(settings)
    master = replace(solve_sources(problem, settings), method=method)
    if settings.out_of_time() or master.status is Status.INTERRUPTED:
        return master
    try:
        flow = split(master, settings)
        if flow.time > master.time * (1 + SMALL_GAP):
            # A program lost flow that is small next to its tolerance; taking paths off does not.
            flow = per_commodity(master, settings)
    except (TimeoutError, KeyboardInterrupt) as stop:
        early = Status.TIME_LIMIT if isinstance(stop, TimeoutError) else Status.INTERRUPTED
        return with_status(master, early, settings)
    return with_status(flow, Status.GAP_NOT_REACHED, settings)
