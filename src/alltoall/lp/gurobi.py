"""Gurobi, for those who have it: `pip install '.[gurobi]'` and a licence for your size."""

import gurobipy
import numpy as np

from alltoall.errors import MissingComponentError
from alltoall.lp.matrix import to_scipy
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.settings import LPSettings, LPStatus

_STATUS = {
    gurobipy.GRB.OPTIMAL: LPStatus.OPTIMAL,
    gurobipy.GRB.INFEASIBLE: LPStatus.INFEASIBLE,
    gurobipy.GRB.INF_OR_UNBD: LPStatus.INFEASIBLE,
    gurobipy.GRB.UNBOUNDED: LPStatus.UNBOUNDED,
    gurobipy.GRB.TIME_LIMIT: LPStatus.TIME_LIMIT,
    gurobipy.GRB.INTERRUPTED: LPStatus.INTERRUPTED,
}


def solve(program: LinearProgram, settings: LPSettings) -> LPResult:
    """Solve with Gurobi's barrier method, with crossover if a vertex is wanted."""
    try:
        with gurobipy.Env(params=_parameters(settings)) as env, gurobipy.Model(env=env) as model:
            return _solve(model, program)
    except gurobipy.GurobiError as error:
        raise MissingComponentError(
            f"Gurobi refused a program of {program.size:,} variables: {error}; "
            "check its licence, or leave out solver=gurobi"
        ) from None


def _parameters(settings: LPSettings) -> dict[str, float]:
    parameters = {"OutputFlag": 0, "Method": 2, "Crossover": -1 if settings.vertex else 0}
    tolerance = {"BarConvTol": max(1e-10, settings.tolerance), "OptimalityTol": 1e-9}
    limits: dict[str, float] = {}
    if settings.time_limit is not None:
        limits["TimeLimit"] = settings.time_limit
    if settings.threads is not None:
        limits["Threads"] = settings.threads
    return parameters | tolerance | limits


def _solve(model: "gurobipy.Model", program: LinearProgram) -> LPResult:
    x = model.addMVar(program.size, lb=0.0, obj=program.cost)
    rows = to_scipy(program.matrix).tocsr()
    equal = program.row_lower == program.row_upper
    parts = (
        (equal, "=", program.row_upper),
        (~equal & np.isfinite(program.row_upper), "<", program.row_upper),
        (~equal & np.isfinite(program.row_lower), ">", program.row_lower),
    )
    added = [
        (which, model.addMConstr(rows[which], x, sense, bound[which]))
        for which, sense, bound in parts
        if which.any()
    ]
    model.optimize()
    status = _STATUS.get(model.Status, LPStatus.STOPPED)
    if model.SolCount == 0:
        return LPResult(status, None, None)
    dual = None
    if status is LPStatus.OPTIMAL:
        dual = np.zeros(len(program.row_lower))
        for which, constraints in added:
            dual[which] += constraints.Pi
    return LPResult(status, np.asarray(x.X), dual, int(model.BarIterCount))
