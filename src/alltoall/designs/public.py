"""`alltoall.design`: which network to build."""

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from alltoall.designs.constraints import read_constraints
from alltoall.designs.design import Design, Wanted, find_design
from alltoall.designs.wiring import MOST_NODES, Wiring, regular_wiring
from alltoall.errors import UsageError
from alltoall.lp.settings import never, silent
from alltoall.settings import DESIGN_GAP, DesignSettings, SolveSettings
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
        constraints: in place of all three, what stays and what may be placed: the path of a file,
            which docs/design.md describes, or a `Wiring`.
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
        solve=SolveSettings(gap=gap, time_limit=time_limit, report=progress, stopped=stop),
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
