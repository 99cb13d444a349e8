"""Clarabel, a second free interior-point method: `pip install '.[clarabel]'`."""

import clarabel
import numpy as np
from scipy.sparse import csc_matrix, eye_array, vstack

from alltoall.lp.program import LinearProgram, LPResult, Vector, to_scipy
from alltoall.lp.settings import LPSettings, LPStatus

_STATUS = {
    "Solved": LPStatus.OPTIMAL,
    "AlmostSolved": LPStatus.OPTIMAL,
    "PrimalInfeasible": LPStatus.INFEASIBLE,
    "AlmostPrimalInfeasible": LPStatus.INFEASIBLE,
    "DualInfeasible": LPStatus.UNBOUNDED,
    "AlmostDualInfeasible": LPStatus.UNBOUNDED,
    "MaxTime": LPStatus.TIME_LIMIT,
}


def solve(program: LinearProgram, settings: LPSettings) -> LPResult:
    """Solve with Clarabel, whose programs read A x + s = b with s = 0 or s >= 0."""
    rows = to_scipy(program.matrix).tocsr()
    equal = np.flatnonzero(program.row_lower == program.row_upper)
    uneven = program.row_lower != program.row_upper
    above = np.flatnonzero(uneven & np.isfinite(program.row_upper))
    below = np.flatnonzero(uneven & np.isfinite(program.row_lower))
    bounds = -eye_array(program.size, format="csr")
    stacked = csc_matrix(vstack((rows[equal], rows[above], -rows[below], bounds)))
    upper, lower = program.row_upper, -program.row_lower
    right = np.concatenate((upper[equal], upper[above], lower[below], np.zeros(program.size)))
    zero = clarabel.ZeroConeT(len(equal))
    cones = [zero, clarabel.NonnegativeConeT(len(right) - len(equal))]
    quadratic, options = csc_matrix((program.size, program.size)), _settings(settings)
    solver = clarabel.DefaultSolver(quadratic, program.cost, stacked, right, cones, options)
    solution = solver.solve()
    status = _STATUS.get(str(solution.status), LPStatus.STOPPED)
    dual: Vector = np.zeros(len(program.row_lower))
    multiplier = np.array(solution.z)
    ends = np.cumsum((len(equal), len(above), len(below)))
    dual[equal] -= multiplier[: ends[0]]
    dual[above] -= multiplier[ends[0] : ends[1]]
    dual[below] += multiplier[ends[1] : ends[2]]
    x = np.array(solution.x)
    sound = bool(np.isfinite(x).all() and np.isfinite(dual).all())
    return LPResult(status, x if sound else None, dual if sound else None, solution.iterations)


def _settings(settings: LPSettings) -> "clarabel.DefaultSettings":
    options = clarabel.DefaultSettings()
    options.verbose = False
    options.tol_gap_rel = options.tol_gap_abs = options.tol_feas = max(1e-10, settings.tolerance)
    if settings.time_limit is not None:
        options.time_limit = settings.time_limit
    if settings.threads is not None:
        options.max_threads = settings.threads
    return options
