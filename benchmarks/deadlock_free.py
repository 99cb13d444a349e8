"""Print the throughput under deadlock freedom against the number of virtual layers.

Each line is one topology: the time of the best deadlock-free routes found with 1, 2, ... layers
over the certified bound of the unrestricted maximum concurrent flow, and beside it the layers that
lash-sequential needs for the routes of the unrestricted optimum. All routes are checked.

    python benchmarks/deadlock_free.py --layers 4 torus:4x4 jellyfish:n=32,d=4,seed=1

With `--large`, two layers at hundreds of nodes, with and without a change of layer on the way:
time, ratio to the bound, and seconds, each of a search of at most `--seconds`.
"""

import argparse
import time
from collections.abc import Sequence

from alltoall import Problem
from alltoall.check.routes import check_routes
from alltoall.errors import InputError
from alltoall.flows import solve
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.layers.assign import assign_layers
from alltoall.routes.weights import routes_of_flow
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build

SPECS = (
    "torus:4x4",
    "torus:3x3x3",
    "genkautz:n=32,d=4",
    "jellyfish:n=32,d=4,seed=1",
    "dragonfly:a=4,h=2",
    "slimfly:q=3",
    "slimfly:q=5",
)


LARGE = (
    "tpuv4:4x4x8,twisted=true",
    "genkautz:n=128,d=4",
    "jellyfish:n=200,d=4,seed=1",
    "torus:8x8x8",
)


def large_line(spec: str, layers: int, seed: int, seconds: float) -> str:
    """Return the line of one large topology: with a change of layer on the way, and without."""
    problem = Problem.all_to_all(build(spec))
    cells = []
    for change in (True, False):
        started = time.perf_counter()
        solving = SolveSettings(time_limit=seconds)
        settings = RouteSettings(seed=seed, layer_change=change, solve=solving)
        found = check_routes(solve_deadlock_free(problem, layers, settings))
        spent = time.perf_counter() - started
        cells.append(f"{found.time:10.2f}{found.time / found.bound:9.4f}{spent:9.1f}")
    return f"{spec:28}{found.bound:10.2f}{''.join(cells)}"


def ratios(problem: Problem, layers: int, settings: RouteSettings) -> list[str]:
    """Return time over bound for each number of layers, of checked routes."""
    cells = []
    for count in range(1, layers + 1):
        try:
            report = check_routes(solve_deadlock_free(problem, count, settings))
            cells.append(f"{report.time / report.bound:.4f}")
        except InputError:
            cells.append("none")
    return cells


def line(spec: str, layers: int, seed: int) -> str:
    """Return the line of one topology."""
    problem = Problem.all_to_all(build(spec))
    optimum = solve(problem, "decomposed", SolveSettings(workers=1))
    needed = assign_layers(routes_of_flow(optimum)).layers
    started = time.perf_counter()
    settings = RouteSettings(seed=seed, solve=SolveSettings(workers=1))
    found = "".join(f"{each:>9}" for each in ratios(problem, layers, settings))
    return f"{spec:28}{found}{needed:>10}{time.perf_counter() - started:9.1f}"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("specs", nargs="*")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args(arguments)


def print_large(options: argparse.Namespace) -> None:
    """Print one line per large topology."""
    heads = f"{'time':>10}{'ratio':>9}{'seconds':>9}"
    print(f"{'two layers':38}{'with change':>28}{'without':>28}")
    print(f"{'topology':28}{'bound':>10}{heads}{heads}")
    for spec in options.specs or LARGE:
        print(large_line(spec, 2, options.seed, options.seconds), flush=True)


def main() -> None:
    """Print one line per topology."""
    options = parse()
    if options.large:
        print_large(options)
        return
    heads = "".join(f"{f'L={count}':>9}" for count in range(1, options.layers + 1))
    print(f"{'topology':28}{heads}{'LASH-seq':>10}{'seconds':>9}")
    for spec in options.specs or SPECS:
        print(line(spec, options.layers, options.seed), flush=True)


if __name__ == "__main__":
    main()
