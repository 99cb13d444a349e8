"""Print how much faster `decomposed` is than `link` as N grows.

Both solve the same all-to-all on the same topology to the same certified gap in the same run; the
ratio of their times is what to read, since seconds depend on the machine.

    python benchmarks/link_vs_decomposed.py --sizes 8 12 16 24 32 --family genkautz:n={n},d=4
"""

import argparse
import time

from alltoall import Flow, Problem
from alltoall.check.flow import check_flow
from alltoall.flows.public import find_flow
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build


def timed(problem: Problem, method: str, workers: int) -> tuple[Flow, float]:
    """Solve once and return the checked flow with the seconds that it took."""
    started = time.perf_counter()
    flow = find_flow(problem, method, SolveSettings(workers=workers))
    seconds = time.perf_counter() - started
    check_flow(flow)
    return flow, seconds


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[8, 12, 16, 24, 32])
    parser.add_argument("--family", default="genkautz:n={n},d=4")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    for method in ("link", "decomposed"):  # compile what is compiled on first use
        timed(Problem.all_to_all(build("ring:4")), method, options.workers)
    print(f"{'N':>4} {'time':>10} {'gap':>8} {'link s':>9} {'decomp. s':>9} {'link/decomp.':>13}")
    for size in options.sizes:
        problem = Problem.all_to_all(build(options.family.format(n=size)))
        link, link_seconds = timed(problem, "link", options.workers)
        decomposed, seconds = timed(problem, "decomposed", options.workers)
        disagreement = abs(link.time / decomposed.time - 1)
        if disagreement > 2e-6:
            raise SystemExit(f"N={size}: link {link.time} and decomposed {decomposed.time} differ")
        gap = max(link.gap, decomposed.gap)
        print(
            f"{size:4} {decomposed.time:10.6f} {gap:8.1e} {link_seconds:9.3f} {seconds:9.3f} "
            f"{link_seconds / seconds:13.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
