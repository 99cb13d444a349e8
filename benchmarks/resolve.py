"""New routes and a new schedule for a new demand on a known topology, in a running process.

For each topology and family of demands: seconds, and loss against the demand's certified bound, of
`alltoall.Solver` at losses of 2 % and 1 %, and in the same run of `alltoall.schedule` by list. All
schedules are checked within the time. The goals are 0.5 s to 2 % and 2 s to 1 %.

    python benchmarks/resolve.py [SPEC ...]
"""

import sys
from time import perf_counter, process_time

import numpy as np

import alltoall
from alltoall.routes.robust import Family

SPECS = ("torus:8x8", "genkautz:n=64,d=4", "jellyfish:n=64,d=4,seed=1")
FAMILIES = ("pairs", "destinations")
DEMANDS = 6
SEED = 6262
"""Of demands that the constants of the solver were not chosen by."""
LOSSES = (0.02, 0.01)


def main() -> None:
    """Print a line per topology, family and demand."""
    print(
        f"{'topology':28} {'demands':13} {'asked':>6}  seconds (CPU)   loss  steps  chunks  ratio"
    )
    for spec in sys.argv[1:] or SPECS:
        topology = alltoall.topology(spec)
        solver = alltoall.Solver(topology)
        problem = alltoall.Problem.all_to_all(topology)
        for family in FAMILIES:
            random = np.random.default_rng(SEED)
            for matrix in Family(problem, (family,)).draw(random, DEMANDS):
                compare(solver, family, matrix)


def compare(solver: alltoall.Solver, family: str, matrix: np.ndarray) -> None:
    """Solve for one demand at each loss, and once without a solver at hand."""
    begin = perf_counter()
    alltoall.schedule(solver.topology, f"list:loss={LOSSES[0]}", demand=matrix, gap=0.001)
    cold = perf_counter() - begin
    for loss in LOSSES:
        begin, worked = perf_counter(), process_time()
        found = solver.schedule(matrix, loss=loss)
        seconds, work = perf_counter() - begin, process_time() - worked
        print(
            f"{solver.topology.name:28} {family:13} {loss:6.1%}  {seconds:6.2f} ({work:5.2f})  "
            f"{found.gap:6.2%}  {found.steps:5}  {found.chunks.total:6}  {cold / seconds:5.1f}"
        )


if __name__ == "__main__":
    main()
