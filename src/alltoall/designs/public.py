"""`alltoall.design`: which network to build."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from alltoall.designs.constraints import read_constraints
from alltoall.designs.design import Design, Wanted, find_design
from alltoall.designs.wiring import MOST_NODES, Wiring, regular_wiring
from alltoall.errors import UsageError
from alltoall.lp.settings import never, silent
from alltoall.settings import DESIGN_GAP, DesignSettings, search_settings
from alltoall.topologies.given import GivenDemand, demand_of


def design(
    nodes: int | None = None,
    *,
    degree: int | None = None,
    bidirectional: bool = False,
    constraints: str | PathLike[str] | Wiring | None = None,
    workload: GivenDemand = None,
    objective: str = "alltoall",
    layers: int | None = None,
    failures: int = 0,
    seed: int = 0,
    gap: float = DESIGN_GAP,
    time_limit: str | float | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Design:
    """Find the network to build: every family of that size beside the best of a search.

    Each of the `candidates` has its certified all-to-all time, best first. No network with so many
    nodes and ports beats the `bound`. Ctrl-C and a time limit end with the best so far. Equal
    seeds find equal networks, unless a time limit ends the search. Constraints take the place of
    nodes, degree and direction; docs/design.md describes their file.

    >>> import alltoall
    >>> found = alltoall.design(10, degree=3, bidirectional=True)
    >>> round(found.bound, 6), round(found.best.time, 6), found.best.diameter
    (5.0, 5.0, 2)

    """
    settings = DesignSettings(
        objective=objective,
        layers=layers,
        failures=failures,
        seed=seed,
        solve=search_settings({}, gap, time_limit, None, progress, stop),
    )
    if constraints is not None:
        if nodes is not None or degree is not None or bidirectional:
            raise UsageError(
                "constraints with a number of nodes, a degree or a direction; the constraints say "
                "all of them, leave these out"
            )
        wiring, degree = constraints, None
        if not isinstance(wiring, Wiring):
            wiring = read_constraints(Path(wiring), seed)
    elif nodes is None or degree is None:
        raise UsageError("expected a number of nodes and a degree, or constraints")
    elif nodes > MOST_NODES:
        raise UsageError(f"{nodes} nodes; expected at most {MOST_NODES}")
    else:
        wiring = regular_wiring(nodes, degree, not bidirectional)
    demand = demand_of(workload, wiring.topology("workload"))
    return find_design(Wanted(wiring, degree, demand), settings)
