"""From weighted paths to `Routes`, the last stage of all routing methods.

`extp` is MCF-extP, the widest paths of a flow per source. For each pair: find the path whose
narrowest link is widest, subtract that width from all its links, and repeat until the demand is
met. The flow conserves exactly, so the widths add up to the demand and no link carries more than
the optimal flow put on it.
"""

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.decompose import widest_paths
from alltoall.flows.methods import solve_sources
from alltoall.flows.workers import require_cluster
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Flow
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.placing.negotiate import NEGOTIATION
from alltoall.settings import RouteSettings, SolveSettings

NEGLIGIBLE_WEIGHT = 1e-9
"""Weights below this share of the pair's demand are noise of the solver."""

TARGETS = 24
"""Number of times tried between no loss and the largest; measured by `benchmarks/routes.py`."""

NO_LOSS = 1e-9
"""Times that differ by less than this share are equal."""


def routes_from_weights(
    problem: Problem,
    paths: Paths,
    weight: Floats,
    certificate: Certificate,
    method: str,
    denominator: int | None = None,
    layered: Routes | None = None,
) -> Routes:
    """Return routes of the paths with weight, scaled so that each pair carries its demand.

    They have the layers of `layered`, if that is given: routes of the same paths.
    """
    demand = problem.demand.of(paths.source, paths.destination)
    weight = np.where(weight > NEGLIGIBLE_WEIGHT * demand, weight, 0.0)
    pair = paths.pair(len(problem.topology.terminals))
    total = np.bincount(pair, weight)[pair]
    kept = np.flatnonzero(weight)
    chosen = paths.select(kept)
    own = None if layered is None else layered.select(kept)
    return Routes(
        problem=problem,
        source=chosen.source,
        destination=chosen.destination,
        start=chosen.start,
        link=chosen.link,
        weight=weight[kept] / total[kept] * demand[kept],
        certificate=certificate,
        method=method,
        layer=None if own is None else own.layer,
        hop_layer=None if own is None else own.hop_layer,
        denominator=denominator,
    )


def tries_for(chunks: int) -> int:
    """Return the number of orders to try, more for few chunks."""
    return min(NEGOTIATION.tries, max(1, sizes.NEGOTIATED_CHUNKS // max(1, chunks)))


def round_up_time(problem: Problem, bound: float, chunks: int) -> float:
    """Return the least time of equal chunks that is no less than a bound."""
    if not problem.demand.uniform:
        return bound
    unit = 1 / (chunks * float(problem.topology.capacity.max()))
    return float(np.ceil(bound / unit * (1 - 1e-9)) * unit)


RAW = "extp:raw"
"""Note on raw paths, which are not replaced by others of equal time."""


def route_extp(problem: Problem, settings: RouteSettings) -> Routes:
    """Solve the master program and extract widest paths.

    The program gets half of the remaining time, its paths the rest; raise TimeoutError if these are
    late, too.
    """
    require_cluster(settings.solve)
    flow = solve_sources(problem, settings.solve.sharing())
    return routes_of_flow(flow, settings.solve, RAW if settings.raw else "extp")


def routes_of_flow(
    flow: Flow, settings: SolveSettings | None = None, method: str = "extp"
) -> Routes:
    """Return the widest paths of a flow as routes; the load of no link grows.

    Raise TimeoutError if the time limit comes first.
    """
    paths, weight = widest_paths(flow, settings or SolveSettings())
    return routes_from_weights(flow.problem, paths, weight, flow.certificate, method)
