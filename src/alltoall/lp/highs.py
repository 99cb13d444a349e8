"""HiGHS: simplex, two interior-point methods with crossover, PDLP, and branch and bound.

Answers of the simplex method to small programs are refined: their violations, in extended
precision, are magnified and solved again from the same basis (the primal half of iterative
refinement by Gleixner, Steffy and Wolter, 2016), which leaves rounding errors only.
"""

import threading
import time
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.lp.address_space import require_address_space

require_address_space()

import highspy

from alltoall.lp.program import LinearProgram, LPResult, Vector
from alltoall.lp.settings import LPSettings, LPStatus

Extended = NDArray[np.longdouble]

INTERRUPTIBLE_SIZE = 20_000
"""Variables above which a solve can take seconds, so that a thread watches it; integer ones too."""

ABANDONED = "alltoall-abandoned"
"""The name of a thread whose solver did not stop in time; the next solve waits for it."""

REFINED_SIZE = 2_000
"""Variables up to which the answers of the simplex method are refined."""

REFINEMENTS = 3
"""Rounds of refinement at most; one is enough unless the basis changes."""

NEGLIGIBLE = 1e-17
"""A violation, with numbers scaled to about 1, that needs no further round."""

PATIENCE = 3.0
"""Seconds for a solver to stop after Ctrl-C before its thread is abandoned."""

OVERTIME = 1.0
"""Seconds beyond its time limit before a solver is abandoned."""

POLL = 0.2
"""Polling interval of a running solver."""

_STATUS = {
    highspy.HighsModelStatus.kOptimal: LPStatus.OPTIMAL,
    highspy.HighsModelStatus.kInfeasible: LPStatus.INFEASIBLE,
    highspy.HighsModelStatus.kUnbounded: LPStatus.UNBOUNDED,
    highspy.HighsModelStatus.kUnboundedOrInfeasible: LPStatus.INFEASIBLE,
    highspy.HighsModelStatus.kTimeLimit: LPStatus.TIME_LIMIT,
    highspy.HighsModelStatus.kInterrupt: LPStatus.INTERRUPTED,
}

_OPTIONS: dict[str, dict[str, Any]] = {
    "simplex": {"solver": "simplex"},
    "ipm": {"solver": "ipx"},
    # Eliminating a commodity's node rows leaves a dense block only as large as the capacity rows,
    # so the normal equations in minimum-degree order are the right system for these programs;
    # left to choose, HiPO spends longer on the analysis of both systems than on the solve.
    "hipo": {"solver": "hipo", "hipo_system": "normaleq", "hipo_ordering": "amd"},
    "pdlp": {"solver": "pdlp"},
    "mip": {"solver": "choose"},
}


def _solve(
    name: str, program: LinearProgram, settings: LPSettings, start: Vector | None = None
) -> LPResult:
    """Solve with a thread pool that ends with the solve.

    HiGHS keeps one pool per process and refuses a solve that wants another number of threads; and a
    forked child that inherits a pool would wait for threads that it does not have.
    """
    if not _wait_for_previous(settings.time_limit):
        return LPResult(LPStatus.TIME_LIMIT, None, None)
    highspy.Highs.resetGlobalScheduler(True)
    try:
        return _run(name, program, settings, start)
    finally:
        if _wait_for_previous(0.0):
            highspy.Highs.resetGlobalScheduler(True)


simplex = partial(_solve, "simplex")
"""The dual simplex method: exact vertices, best for small programs."""

ipm = partial(_solve, "ipm")
"""IPX, an interior point method on an iterative linear solver, with crossover."""

hipo = partial(_solve, "hipo")
"""HiPO, an interior point method on a direct factorisation, without crossover."""

pdlp = partial(_solve, "pdlp")
"""PDLP, a first-order method: low memory, modest accuracy."""

mip = partial(_solve, "mip")
"""Branch and bound for the integer variables of a program.

`settings.tolerance` is the relative gap at which to stop. A time limit returns the best solution so
far, at worst the feasible `start` if there is one, with the bound proven by then.
"""


def _run(name: str, program: LinearProgram, settings: LPSettings, start: Vector | None) -> LPResult:
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    for key, value in (_OPTIONS[name] | _accuracy(name, settings)).items():
        solver.setOptionValue(key, value)
    solver.passModel(_model(program, whole=name == "mip"))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = start.tolist()
        solver.setSolution(solution)
    if name != "mip" and program.size <= INTERRUPTIBLE_SIZE:
        solver.run()
        result = _result(solver)
        small = name == "simplex" and program.size <= REFINED_SIZE
        return _refine(solver, program, result) if small else result
    thread = threading.Thread(target=solver.run, daemon=True)
    stopped = _watch(thread, solver, f"{name}: {program.size:,} variables", settings)
    if thread.is_alive():
        return LPResult(stopped or LPStatus.STOPPED, None, None)
    result = _result(solver)
    return result if stopped is None else replace(result, status=stopped)


def _wait_for_previous(seconds: float | None) -> bool:
    """Wait for an abandoned solver, which holds the thread pool; return whether it ended."""
    for thread in threading.enumerate():
        if thread.name == ABANDONED:
            thread.join(seconds)
            if thread.is_alive():
                return False
    return True


def _refine(solver: highspy.Highs, program: LinearProgram, result: LPResult) -> LPResult:
    """Solve for the magnified violations of the answer until only rounding is left."""
    if result.status is not LPStatus.OPTIMAL or result.x is None:
        return result
    x = result.x.astype(np.longdouble)
    for _ in range(REFINEMENTS):
        lower, upper = _room(program, x)
        worst = max(lower.max(initial=0.0), -upper.min(initial=0.0), -x.min(initial=0.0))
        if worst <= NEGLIGIBLE:
            break
        # The basis stays the one that was optimal: bounds are all that changes.
        columns, rows = (np.arange(count, dtype=np.int32) for count in (len(x), len(lower)))
        low, least, most = (np.asarray(each / worst, float) for each in (-x, lower, upper))
        solver.changeColsBounds(len(x), columns, low, np.full(len(x), highspy.kHighsInf))
        solver.changeRowsBounds(len(lower), rows, least, most)
        solver.run()
        step = _result(solver)
        if step.status is not LPStatus.OPTIMAL or step.x is None:
            break
        x += step.x * worst
        result = replace(step, x=x.astype(np.float64))
    return result


def _room(program: LinearProgram, x: Extended) -> tuple[Extended, Extended]:
    """Return how far each row is below its bounds, in extended precision."""
    matrix = program.matrix
    column = np.repeat(np.arange(program.size), np.diff(matrix.indptr))
    activity = np.zeros(matrix.shape[0], dtype=np.longdouble)
    np.add.at(activity, matrix.indices, matrix.data.astype(np.longdouble) * x[column])
    return program.row_lower - activity, program.row_upper - activity


def _accuracy(name: str, settings: LPSettings) -> dict[str, Any]:
    options: dict[str, Any] = {
        # HiGHS rejects tolerances below 1e-10.
        "ipm_optimality_tolerance": max(1e-10, settings.tolerance),
        "pdlp_optimality_tolerance": max(1e-10, settings.tolerance),
        "mip_rel_gap": settings.tolerance,
        "run_crossover": "on" if settings.vertex and name == "ipm" else "off",
    }
    if settings.time_limit is not None:
        options["time_limit"] = max(0.0, settings.time_limit)
    if settings.threads is not None:
        options["threads"] = settings.threads
    return options


def _model(program: LinearProgram, whole: bool = False) -> highspy.HighsLp:
    model = highspy.HighsLp()
    if whole and program.integer is not None:
        kinds = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
        model.integrality_ = [kinds[each] for each in program.integer.astype(np.int64)]
    model.num_row_, model.num_col_ = program.matrix.shape
    model.col_cost_ = program.cost
    model.col_lower_ = np.zeros(program.size)
    model.col_upper_ = np.full(program.size, highspy.kHighsInf)
    model.row_lower_ = program.row_lower
    model.row_upper_ = program.row_upper
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_ = program.matrix.indptr
    model.a_matrix_.index_ = program.matrix.indices
    model.a_matrix_.value_ = program.matrix.data
    return model


def _watch(
    thread: threading.Thread, solver: Any, what: str, settings: LPSettings
) -> LPStatus | None:
    """Run the solver's thread and report its progress; return why it was cancelled, if it was.

    It is cancelled by Ctrl-C, by a caller that heard Ctrl-C, and by a time limit that the solver
    itself misses.
    """
    solver.HandleUserInterrupt = True
    thread.start()
    started, spent = time.monotonic(), 0.0
    limit = np.inf if settings.time_limit is None else settings.time_limit + OVERTIME / 2
    try:
        while thread.is_alive() and not settings.stopped() and spent < limit:
            settings.report(f"{what}, {spent:.0f} s")
            thread.join(min(POLL, limit - spent))
            spent = time.monotonic() - started
        if not thread.is_alive():
            return None
        patience = PATIENCE if settings.stopped() else OVERTIME / 2
        return _cancel(thread, solver, patience, LPStatus.TIME_LIMIT)
    except KeyboardInterrupt:
        settings.report(f"{what}, stopping")
        return _cancel(thread, solver, PATIENCE, LPStatus.INTERRUPTED)


def _cancel(thread: threading.Thread, solver: Any, patience: float, status: LPStatus) -> LPStatus:
    """Ask the solver to stop, wait a little, and return the status of its result."""
    solver.cancelSolve()
    thread.join(patience)
    if thread.is_alive():
        thread.name = ABANDONED
    return status


def _result(solver: highspy.Highs) -> LPResult:
    info, solution = solver.getInfo(), solver.getSolution()
    x, dual = np.array(solution.col_value), np.array(solution.row_dual)
    whole = len(solver.getLp().integrality_) > 0
    # A search without a solution leaves the values of some relaxation behind.
    shown = not whole or info.primal_solution_status == highspy.kSolutionStatusFeasible
    return LPResult(
        status=_STATUS.get(solver.getModelStatus(), LPStatus.STOPPED),
        x=x if shown and len(x) and np.isfinite(x).all() else None,
        row_dual=dual if not whole and len(dual) and np.isfinite(dual).all() else None,
        iterations=max(0, info.simplex_iteration_count, info.ipm_iteration_count),
        bound=info.mip_dual_bound if whole and np.isfinite(info.mip_dual_bound) else None,
    )
