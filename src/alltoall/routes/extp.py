"""MCF-extP: the widest paths of a flow per source.

For each pair: find the path whose narrowest link is widest, subtract that width from all its links,
and repeat until the demand is met. The flow conserves exactly, so the widths add up to the demand
and no link carries more than the optimal flow put on it.
"""

from alltoall.flows.decompose import widest_paths
from alltoall.flows.methods import solve_sources
from alltoall.flows.workers import require_cluster
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.weights import routes_from_weights
from alltoall.settings import RouteSettings, SolveSettings

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
