"""Print every routing method on every fabric, against the certified bound of the same run.

`time` is the largest link load over the certified MCF bound (1 is optimal), `whole` the same over
the bound rounded up to a whole load, which is the best that one route per pair can do on links of
capacity 1. Layers are those of sequential LASH. The methods of the ILP family get `--time-limit`.

    python benchmarks/routes.py --sizes 8 16 27 50 --methods extp single sssp
"""

import argparse
import math
import time
from collections.abc import Iterator

from alltoall import Problem, Topology
from alltoall.check.routes import check_routes
from alltoall.errors import AlltoallError
from alltoall.flows import SolveSettings, solve
from alltoall.routes import ROUTERS, route
from alltoall.routes.layers.assign import assign_layers
from alltoall.settings import RouteSettings
from alltoall.topologies.operators import drop_links, drop_nodes
from alltoall.topologies.spec import build


def fabrics(sizes: list[int]) -> Iterator[tuple[str, Topology]]:
    """Yield the topologies of the evaluation."""
    for spec in ("hypercube:3", "twisted-hypercube:3", "bipartite:4x4", "torus:3x3x3"):
        yield spec, build(spec)
    torus = build("torus:3x3x3")
    yield "torus - 3 links", drop_links(torus, 3, seed=0)
    yield "torus - 3 nodes", drop_nodes(torus, 3, seed=0)
    kautz = build("genkautz:n=81,d=8")
    for count in (0, 16, 64):
        yield f"genkautz:n=81,d=8 - {count}", drop_links(kautz, count, seed=0)
    for size in sizes:
        yield f"genkautz:n={size},d=4", build(f"genkautz:n={size},d=4")


def measure(problem: Problem, method: str, bound: float, limit: float) -> str:
    """Return one line of the table, or why there is none."""
    paths = "columns" if method == "pmcf" else "disjoint"
    started = time.perf_counter()
    try:
        solving = SolveSettings(time_limit=limit) if method.startswith("ilp") else SolveSettings()
        routes = route(problem, method, RouteSettings(paths=paths, solve=solving))
    except AlltoallError as error:
        return f"{method:13} -- {str(error).splitlines()[0][:70]}"
    seconds = time.perf_counter() - started
    report = check_routes(assign_layers(routes))
    return (
        f"{method:13} {report.time / bound:8.4f} {report.time / math.ceil(bound - 1e-6):8.4f} "
        f"{report.routes:8} {report.max_routes_per_pair:5} {report.layers!s:>6} {seconds:9.2f}"
    )


def main() -> None:
    """Print one block per fabric."""
    parser = argparse.ArgumentParser(description="Every routing method on every fabric.")
    parser.add_argument("--sizes", type=int, nargs="*", default=[8, 16, 27, 50, 81, 100, 150, 200])
    parser.add_argument("--methods", nargs="*", default=list(ROUTERS))
    parser.add_argument("--time-limit", type=float, default=20.0)
    options = parser.parse_args()
    head = f"{'method':13} {'time':>8} {'whole':>8} {'routes':>8} {'most':>5} {'layers':>6}"
    for name, topology in fabrics(options.sizes):
        problem = Problem.all_to_all(topology)
        bound = solve(problem, "grouped").bound
        print(f"\n{name}: bound {bound:.6g}\n{head} {'seconds':>9}", flush=True)
        for method in options.methods:
            print(measure(problem, method, bound, options.time_limit), flush=True)


if __name__ == "__main__":
    main()
