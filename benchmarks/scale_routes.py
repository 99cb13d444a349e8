"""Print what one route per pair and its layers cost at scale, against the certified bound.

`bound` is the time to solve the master program to a gap of 5e-4, `single` that to place the routes,
`layers` that to assign layers (lash-sequential); `time` is the largest link load over the bound.
Routes and layers are checked. Kernels are compiled before the clock starts.

    python benchmarks/scale_routes.py 200 400
    python benchmarks/scale_routes.py --large
"""

import argparse
import resource
import time
from collections.abc import Callable
from typing import TypeVar

from alltoall import Problem
from alltoall.check.routes import check_routes
from alltoall.flows.methods import solve_master
from alltoall.routes.layers.assign import assign_layers
from alltoall.routes.single import COARSE_BOUND_GAP, route_chunks
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build

Result = TypeVar("Result")


def timed(work: Callable[[], Result]) -> tuple[Result, float]:
    """Return a result and the seconds that it took."""
    started = time.perf_counter()
    return work(), time.perf_counter() - started


def line(nodes: int) -> str:
    """Return the line of one size."""
    problem = Problem.all_to_all(build(f"genkautz:n={nodes},d=4"))
    settings = RouteSettings(solve=SolveSettings(gap=COARSE_BOUND_GAP))
    flow, solving = timed(lambda: solve_master(problem, settings.solve))
    routes, routing = timed(lambda: route_chunks(flow, 1, settings, "single"))
    layered, layering = timed(lambda: assign_layers(routes))
    report, checking = timed(lambda: check_routes(layered))
    seconds = f"{solving:9.1f}{routing:9.1f}{layering:9.1f}{checking:9.1f}"
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    result = f"{report.time / flow.bound:9.4f}{report.layers:>8}{memory:8.2f}"
    return f"{nodes:>6}{report.routes:>10}{seconds}{result}"


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("nodes", nargs="*", type=int)
    parser.add_argument("--large", action="store_true", help="1000 nodes as well")
    options = parser.parse_args()
    line(48)
    names = "".join(f"{name:>9}" for name in ("bound", "single", "layers", "check", "time"))
    print(f"{'n':>6}{'routes':>10}{names}{'layers':>8}{'GiB':>8}   (the first four in seconds)")
    for nodes in options.nodes or [200, *([1000] if options.large else [])]:
        print(line(nodes), flush=True)


if __name__ == "__main__":
    main()
