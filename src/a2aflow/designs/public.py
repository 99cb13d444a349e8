"""`a2aflow.design`: which network to build."""

from collections.abc import Callable

from a2aflow.designs.design import Design, Wanted, find_design, wanted_regular
from a2aflow.designs.wiring import require_regular
from a2aflow.errors import UsageError
from a2aflow.ir.demand import Demand
from a2aflow.lp.settings import never, silent
from a2aflow.settings import DESIGN_GAP, DesignSettings, SolveSettings
from a2aflow.topologies.given import GivenDemand, demand_of

MOST_NODES = 4096
"""Nodes of a design, at most: beyond, even one certified time takes minutes."""


def design(
    nodes: int,
    *,
    degree: int,
    bidirectional: bool = False,
    workload: GivenDemand = None,
    objective: str = "alltoall",
    layers: int | None = None,
    failures: int = 0,
    seed: int = 0,
    gap: float = DESIGN_GAP,
    time_limit: float | None = None,
    progress: Callable[[str], None] = silent,
    stop: Callable[[], bool] = never,
) -> Design:
    """Return which network to build, beside every family of that size, each certified.

    The `Design` has the lower `bound` on the time of any such network, its `candidates`, the best
    first, and the `best` by the objective, whose `topology` is a noun like any other.

    Args:
        nodes: how many nodes there are.
        degree: the ports of each node: links out, and as many in.
        bidirectional: cables that go both ways; one-way links if left out.
        workload: who sends how much to whom, as for `solve`; uniform if left out.
        objective: `"alltoall"` by the certified time, `"alltoall+failures"` by that after the worst
            single failure, `"alltoall+diameter"` by the diameter first.
        layers: most virtual layers that the chosen network may need.
        failures: how many single failures to solve for each of the best candidates.
        seed: of the search; equal seeds find equal networks, if no time limit ends it.
        gap: the certified gap of every time.
        time_limit: seconds after which the best so far is returned; the search uses all of them.
        progress: called with a line now and then.
        stop: asked now and then; once it says so, the time limit is over.

    >>> import a2aflow
    >>> found = a2aflow.design(12, degree=2)
    >>> round(found.bound, 6), round(found.best.time, 6), found.best.diameter
    (14.5, 14.5, 3)

    """
    settings = DesignSettings(
        objective=objective,
        layers=layers,
        failures=failures,
        seed=seed,
        solve=SolveSettings(gap=gap, time_limit=time_limit, report=progress, stopped=stop),
    )
    return find_design(wanted_by(nodes, degree, bidirectional, workload), settings)


def wanted_by(nodes: int, degree: int, bidirectional: bool, workload: GivenDemand) -> Wanted:
    """Return what a caller wants; what cannot be is refused before any work."""
    if nodes > MOST_NODES:
        raise UsageError(f"{nodes} nodes; expected at most {MOST_NODES}")
    require_regular(nodes, degree, not bidirectional)
    wanted = wanted_regular(nodes, degree, not bidirectional)
    demand = _demand(wanted, workload)
    return wanted_regular(nodes, degree, not bidirectional, demand)


def _demand(wanted: Wanted, workload: GivenDemand) -> Demand:
    return demand_of(workload, wanted.wiring.topology("workload"))
