"""Linear programs and the solvers behind one interface; knows nothing of networks.

`SOLVERS` are always installed, `EXTRAS` are optional; each is imported when it is asked for. `auto`
picks by size.
"""

from alltoall.errors import UsageError

SOLVERS: dict[str, str] = {
    "simplex": "alltoall.lp.highs:simplex",
    "ipm": "alltoall.lp.highs:ipm",
    "hipo": "alltoall.lp.highs:hipo",
    "pdlp": "alltoall.lp.highs:pdlp",
}
"""The solvers that are always installed, and their functions."""

EXTRAS = {"gurobi": "gurobipy", "clarabel": "clarabel"}
"""Optional solvers, each in the file of its name, and the distribution that it needs."""

AUTO = ((2_000, "simplex"), (400_000, "ipm"))
"""Largest number of variables for which `auto` takes a solver; above the last, `hipo`."""

SMALL_SIZE = AUTO[0][0]
"""Most variables for which several solvers are tried."""


def solver_names() -> list[str]:
    """Return every name that `solve_program` takes."""
    return ["auto", *SOLVERS, *EXTRAS]


def require_solver(name: str) -> None:
    """Raise unless a solver of this name exists."""
    if name not in solver_names():
        raise UsageError(f"unknown solver {name!r}; expected one of {', '.join(solver_names())}")
