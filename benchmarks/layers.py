"""Print how many virtual layers the routes of each method need, by each layer assignment.

`shortest` is one shortest path per pair, ties broken by the order of the links; `mcf` are the
routes of the maximum concurrent flow (`decomposed`), peeled greedily. All layers are checked.

    python benchmarks/layers.py torus:4x4 genkautz:n=32,d=4
"""

import argparse
import time
from collections.abc import Callable

import numpy as np

from alltoall import Problem
from alltoall.check.routes import check_routes
from alltoall.flows import solve
from alltoall.ir.answer import Certificate
from alltoall.ir.routes import Routes
from alltoall.paths.shortest import tree_paths
from alltoall.routes.layers.assign import LAYERINGS, assign_layers
from alltoall.routes.weights import routes_of_flow
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build

SPECS = (
    "ring:8",
    "mesh:4x4",
    "torus:4x4",
    "torus:3x3x3",
    "hypercube:3",
    "twisted-hypercube:3",
    "bipartite:4x4",
    "genkautz:n=32,d=4",
    "genkautz:n=64,d=4",
    "jellyfish:n=32,d=4,seed=1",
    "dragonfly:a=4,h=2",
    "slimfly:q=5",
    "fattree:k=4",
)


def shortest_routes(problem: Problem) -> Routes:
    """Return one shortest path per pair, from one tree per source."""
    topology = problem.topology
    lengths = np.ones(topology.links)
    source, destination = problem.demand.pairs()
    ends = topology.terminals[source], topology.terminals[destination]
    start, link = tree_paths(topology, lengths, *ends)
    return Routes(
        problem=problem,
        source=source,
        destination=destination,
        start=start,
        link=link,
        weight=problem.demand.rows(np.arange(len(topology.terminals)))[source, destination],
        certificate=Certificate(lengths, 0.0),
        method="shortest",
    )


def flow_routes(problem: Problem) -> Routes:
    """Return the routes of the maximum concurrent flow."""
    return routes_of_flow(solve(problem, "decomposed", SolveSettings(workers=1)))


METHODS: dict[str, Callable[[Problem], Routes]] = {"shortest": shortest_routes, "mcf": flow_routes}


def line(spec: str, method: str) -> str:
    """Return the line of one topology and method."""
    routes = METHODS[method](Problem.all_to_all(build(spec)))
    cells = []
    for algorithm in LAYERINGS:
        started = time.perf_counter()
        layered = assign_layers(routes, algorithm)
        seconds = time.perf_counter() - started
        cells.append(f"{check_routes(layered).layers:>8} {seconds:8.2f}")
    return f"{spec:28}{method:10}{routes.count:>8}" + "".join(cells)


def main() -> None:
    """Print one line per topology and method: layers and seconds of each algorithm."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("specs", nargs="*", default=SPECS)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS)
    options = parser.parse_args()
    heads = "".join(f"{name:>17}" for name in LAYERINGS)
    print(f"{'topology':28}{'routes of':10}{'routes':>8}{heads}   (layers, seconds)")
    for spec in options.specs:
        for method in options.methods:
            print(line(spec, method), flush=True)


if __name__ == "__main__":
    main()
