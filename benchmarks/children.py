"""Print how much faster taking paths off is than the child programs, for the same master flow.

Both split the flow of every source into one flow per destination, with as many workers, in the same
run; both are checked, and neither may lose any rate. The ratio is what to read. With one worker it
is free of what starting processes for the programs costs. The master flow is a vertex of the whole
program, without use of symmetry: it has the fewest links, which suits the programs best.

    python benchmarks/children.py --sizes 50 100 200 --family genkautz:n={n},d=4
"""

import argparse
import math
import time
from collections.abc import Callable

from alltoall import Flow, Problem
from alltoall.check.flow import check_flow
from alltoall.flows.decompose import per_commodity, split_by_programs
from alltoall.flows.public import find_flow
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build

Split = Callable[[Flow, SolveSettings], Flow]


def timed(split: Split, master: Flow, workers: int) -> float:
    """Split the flow three times, check what comes out, and return the seconds of the fastest."""
    seconds = math.inf
    for _ in range(3):
        started = time.perf_counter()
        flow = split(master, SolveSettings(workers=workers))
        seconds = min(seconds, time.perf_counter() - started)
        check_flow(flow)
        if abs(flow.time / master.time - 1) > 1e-9:
            raise SystemExit(f"the master takes {master.time}, its split flow {flow.time}")
    return seconds


def main() -> None:
    """Print one line per size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sizes", type=int, nargs="+", default=[50, 100, 200])
    parser.add_argument("--family", default="genkautz:n={n},d=4")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1e-3, help="of the master flow")
    options = parser.parse_args()
    asked = SolveSettings(options.gap, workers=options.workers, symmetry=False)
    small = find_flow(Problem.all_to_all(build("genkautz:n=8,d=2")), "grouped", asked)
    for split in (split_by_programs, per_commodity):  # compile what is compiled on first use
        timed(split, small, options.workers)
    print(f"{'N':>4} {'links used':>10} {'programs s':>10} {'paths s':>9} {'programs/paths':>15}")
    for size in options.sizes:
        problem = Problem.all_to_all(build(options.family.format(n=size)))
        master = find_flow(problem, "grouped", asked)
        programs = timed(split_by_programs, master, options.workers)
        paths = timed(per_commodity, master, options.workers)
        print(
            f"{size:4} {len(master.link):10} {programs:10.3f} {paths:9.4f} "
            f"{programs / paths:15.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
