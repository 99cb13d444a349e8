"""Print how near to the optimum each method comes on small problems of badly mixed capacities.

Random digraphs of two to six nodes, every other one with switches, some with uneven demand; the
capacities are drawn from a few powers of ten, or log-uniformly over up to eight orders, every third
time in another unit. The table counts the problems whose certified gap misses 1e-9 and 1e-3, and
gives the worst gap.

    python benchmarks/scaled_fuzz.py --count 500 --seed 1
"""

import argparse
import sys

import numpy as np

from alltoall import Demand, Problem, Topology
from alltoall.check.flow import check_flow
from alltoall.flows import METHODS, solve
from alltoall.settings import SolveSettings

KINDS = ("1, 1e6", "1, 1e3, 1e6, 1e9", "1e-3 to 1e3", "1e-4 to 1e4")
"""How capacities are drawn: from powers of ten, or log-uniformly."""


def random_capacities(kind: str, count: int, random: np.random.Generator) -> list[float]:
    """Draw capacities of one kind."""
    if "," in kind:
        return [float(each) for each in random.choice(kind.split(", "), count)]
    low, high = (np.log10(float(each)) for each in kind.split(" to "))
    return [float(each) for each in 10 ** random.uniform(low, high, count)]


def random_problem(seed: int) -> tuple[str, Problem]:
    """Return a kind of capacities, and a strongly connected problem with such capacities."""
    random = np.random.default_rng(seed)
    kind, nodes = KINDS[seed % len(KINDS)], int(random.integers(2, 7))
    order = random.permutation(nodes)
    pairs = list(zip(order, np.roll(order, 1), strict=True))
    for _ in range(int(random.integers(0, 3 * nodes))):
        tail, head = random.choice(nodes, 2, replace=False)
        pairs.append((tail, head))
    unit = 10.0 ** int(random.integers(-9, 12)) if seed % 3 == 0 else 1.0
    widths = random_capacities(kind, len(pairs), random)
    links = [(int(u), int(v), unit * width) for (u, v), width in zip(pairs, widths, strict=True)]
    some = random.choice(nodes, int(random.integers(2, nodes + 1)), replace=False)
    terminals = sorted(some.tolist()) if seed // len(KINDS) % 2 else None
    topology = Topology.from_links(f"fuzz {seed}", nodes, links, terminals)
    if random.random() < 0.5:
        return kind, Problem.all_to_all(topology)
    count = len(topology.terminals)
    matrix = random.choice([0.0, 1e-6, 0.125, 1.0, 5.0, 1e6], (count, count))
    np.fill_diagonal(matrix, 0.0)
    matrix[0, 1] = 1.0
    return kind, Problem(topology, Demand(count, matrix))


def gaps(method: str, seeds: range, settings: SolveSettings) -> np.ndarray:
    """Return the certified gap of a method on each problem; every flow is checked."""
    found = []
    for seed in seeds:
        flow = solve(random_problem(seed)[1], method, settings)
        found.append(max(0.0, check_flow(flow).gap))
    return np.array(found)


def main() -> None:
    """Print one line per method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--methods", nargs="+", default=["auto", *METHODS])
    parser.add_argument("--gap", type=float, default=1e-9)
    options = parser.parse_args()
    seeds = range(options.seed, options.seed + options.count)
    print(f"{'method':<14}{'problems':>9}{'above 1e-9':>12}{'above 1e-3':>12}{'worst gap':>12}")
    for method in options.methods:
        found = gaps(method, seeds, SolveSettings(gap=options.gap, workers=1))
        fine, coarse = int((found > 1e-9).sum()), int((found > 1e-3).sum())
        print(f"{method:<14}{len(found):9}{fine:12}{coarse:12}{found.max():12.1e}", flush=True)
        worst = [f"{seeds[each]}: {found[each]:.1e}" for each in np.argsort(-found)[:5]]
        if found.max() > options.gap:
            print(f"  the worst by seed: {', '.join(worst)}", file=sys.stderr)


if __name__ == "__main__":
    main()
