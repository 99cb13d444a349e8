"""What sharing a fabric costs: static answers under background load, and jobs without a plan.

    python benchmarks/jobs.py [SPEC ...]

First table: others use of every link a random share, uniform from 0 to `most` of it. Routes and a
schedule that were made for the empty fabric are simulated on what is left, and held against the
certified bound of what is left: `loss` is how much longer they take than an answer made for it at
least has to, the median over the draws and the worst. `blind` is what the load costs even the best:
the bound of what is left over that of the empty fabric.

On a topology that is so symmetric that all links are full all the time, the slowest link is what
all wait for, whatever the answer.

Second table: two jobs on random halves of the terminals, each by its own optimal routes, both at
once, against joint routes: medians over the draws. `alone` is the slower job without the other,
over the joint time; `of bound` the share of the bound that the joint routes reach.
"""

import sys
from typing import Any

import numpy as np

import alltoall
from alltoall.ir.arrays import Floats

SPECS = ("torus:3x3x3", "mesh:5x5", "jellyfish:n=24,d=3,seed=1")
MOST = (0.1, 0.3, 0.5)
DRAWS = 15
PAIRS = 7
ASKED: dict[str, Any] = {"link_bandwidth": 1e9, "bytes": 10**6}


def loads(topology: alltoall.Topology, most: float) -> list[Floats]:
    """Return draws of what others use of each link."""
    return [
        np.random.default_rng(seed).uniform(0, most, topology.links) * topology.capacity
        for seed in range(DRAWS)
    ]


def losses(spec: str) -> None:
    """Print what static routes and a static schedule lose, for each strength of the load."""
    routes = alltoall.route(spec, "extp:layering=none")
    schedule = alltoall.schedule(spec)
    topology = routes.problem.topology
    static: dict[str, tuple[Any, dict[str, Any]]] = {
        "routes, paced": (routes, {"weights": "share"}),
        "routes, fair": (routes, {"weights": "equal"}),
        "schedule, dataflow": (schedule, {"sync": "dataflow"}),
        "schedule, barriers": (schedule, {"sync": "step"}),
    }
    for most in MOST:
        draws = loads(topology, most)
        bounds = [alltoall.solve(topology, background=load).bound for load in draws]
        blind = float(np.median(bounds)) / routes.bound
        for name, (subject, options) in static.items():
            found = [
                alltoall.simulate(subject, background=load, **ASKED, **options).seconds
                * 1e3
                / bound
                for load, bound in zip(draws, bounds, strict=True)
            ]
            median, worst = float(np.median(found)) - 1, max(found) - 1
            print(f"{spec:28}{most:>6}{name:>22}{median:>10.1%}{worst:>10.1%}{blind:>8.2f}")


def two_jobs(spec: str) -> None:
    """Print what two jobs take uncoordinated, over what they take by joint routes."""
    terminals = alltoall.topology(spec).terminals
    found: dict[str, list[tuple[float, float, float]]] = {"share": [], "equal": []}
    for seed in range(PAIRS):
        mixed = np.random.default_rng(seed).permutation(terminals)
        groups = [half.tolist() for half in np.array_split(mixed, 2)]
        jobs = [alltoall.route(spec, "extp:layering=none", groups=[each]) for each in groups]
        joint = alltoall.route(spec, "extp:layering=none", groups=groups)
        for weights, rows in found.items():
            both = alltoall.simulate(joint, jobs=jobs, weights=weights, **ASKED)
            alone = max(row.alone for row in both.jobs)
            together = both.together[0].seconds
            rows.append((together / both.seconds, alone / both.seconds, both.fraction))
    for weights, rows in found.items():
        ratio, alone, reached = np.median(rows, axis=0)
        print(f"{spec:28}{weights:>10}{ratio:>16.3f}{alone:>10.3f}{reached:>10.3f}")


def main() -> None:
    """Print both tables."""
    specs = sys.argv[1:] or SPECS
    print(f"{'topology':28}{'most':>6}{'static':>22}{'loss':>10}{'worst':>10}{'blind':>8}")
    for spec in specs:
        losses(spec)
    print(f"\n{'two jobs':28}{'weights':>10}{'uncoordinated':>16}{'alone':>10}{'of bound':>10}")
    for spec in specs:
        two_jobs(spec)


if __name__ == "__main__":
    main()
