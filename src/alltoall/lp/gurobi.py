"""Gurobi (optional): needs `pip install '.[gurobi]'` and a licence for the size."""

import gurobipy
import numpy as np

from alltoall.errors import MissingComponentError
from alltoall.lp.program import LinearProgram, LPResult, to_scipy
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
    limits = {"TimeLimit": settings.time_limit, "Threads": settings.threads}
    return {
        "OutputFlag": 0,
        "Method": 2,
        "Crossover": -1 if settings.vertex else 0,
        "BarConvTol": max(1e-10, settings.tolerance),
        "OptimalityTol": 1e-9,
    } | {key: limit for key, limit in limits.items() if limit is not None}


def _solve(model: "gurobipy.Model", program: LinearProgram) -> LPResult:
    x = model.addMVar(program.size, lb=0.0, obj=program.cost)
    rows = to_scipy(program.matrix).tocsr()
    equal = program.row_lower == program.row_upper
    parts = (
        (equal, "=", program.row_upper),
        (~equal & np.isfinite(program.row_upper), "<", program.row_upper),
        (~equal & np.isfinite(program.row_lower), ">", program.row_lower),
    )
    used = (part for part in parts if part[0].any())
    added = [(i, model.addMConstr(rows[i], x, sense, bound[i])) for i, sense, bound in used]
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
