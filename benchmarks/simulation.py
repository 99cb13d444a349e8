"""What simulating routes costs, and what a resolution costs in time and gives away in accuracy.

    python benchmarks/simulation.py [--full]

Prints, for each set of routes, the seconds of the exact fluid and of the coarse one, both measured
in this run, and by how much the coarse time is above the exact one. `--full` adds the all-to-all of
200 nodes over extp routes, and of 1,000 nodes over single ones, which takes minutes to route.
"""

import argparse
import time

import alltoall

SMALL = (("torus:4x4x4", "extp"), ("genkautz:n=64,d=4", "extp"))
LARGE = (("genkautz:n=200,d=4", "extp"), ("genkautz:n=1000,d=4", "ecmp"))
COARSE = 1e-3
ROUTE_SECONDS = 30.0
"""A time limit for the bound of a thousand nodes, of which only the routes matter here."""


def timed(routes: alltoall.Routes, weights: str, resolution: float) -> tuple[float, float]:
    """Return the simulated seconds, and those that it took."""
    began = time.perf_counter()
    found = alltoall.simulate(
        routes, link_bandwidth="8Gbps", bytes=10**6, weights=weights, resolution=resolution
    )
    return found.seconds, time.perf_counter() - began


def main() -> None:
    """Print a line for each set of routes and kind of weights."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="200 and 1,000 nodes too")
    cases = SMALL + (LARGE if parser.parse_args().full else ())
    alltoall.simulate(alltoall.route("ring:4"), link_bandwidth=1.0)  # Compiles the kernel.
    print(f"{'routes':32}{'flows':>9}{'weights':>9}{'exact s':>9}{'coarse s':>9}{'above':>9}")
    for spec, method in cases:
        routes = alltoall.route(spec, f"{method}:layering=none", time_limit=ROUTE_SECONDS)
        for weights in ("equal", "share"):
            exact, took = timed(routes, weights, 0.0)
            coarse, less = timed(routes, weights, COARSE)
            above = f"{coarse / exact - 1:.3%}"
            name = f"{spec} {method}"
            print(f"{name:32}{routes.count:>9}{weights:>9}{took:>9.2f}{less:>9.2f}{above:>9}")


if __name__ == "__main__":
    main()
