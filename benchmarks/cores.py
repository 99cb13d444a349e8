"""What more cores would bring: sweeps by the number of parts, and the work that stays in order.

    python benchmarks/cores.py
    python benchmarks/cores.py --only n=1000 --parts 1 2 16

Machines here have two cores, so what is beyond them is counted. The first table has the sweeps to a
gap by the number of parts that respond at the same prices; with a plus, sweeps ended before it. The
second has one solve to a gap of 1e-3 on one thread: the share of its CPU time outside of parallel
loops, and its CPU time over the longest chain of work that a number of cores leaves, from the
pieces into which each call of the core falls. Beside it, the time of one thread over that of two,
which needs a quiet machine.
"""

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest.mock import patch

import numpy as np

import alltoall
from alltoall import Problem, core
from alltoall.flows import sweeps
from alltoall.flows.exact import by_source
from alltoall.flows.program import whole_program
from alltoall.ir.flow import Status
from alltoall.settings import SolveSettings

NETWORKS = (
    "jellyfish:n=400,d=4,seed=1",
    "jellyfish:n=1000,d=4,seed=1",
    "jellyfish:n=2000,d=4,seed=1",
    "genkautz:n=1000,d=4",
    "mesh:20x20",
)
"""Networks whose symmetry, if any, is not used."""

UNEVEN = "jellyfish:n=400,d=4,seed=2"
"""The network of the uneven demand."""

WARM = "jellyfish:n=200,d=4,seed=1"
"""The network of a first solve, which is not counted."""

PARTS = (1, 2, 4, 8, 16, 32, 64)
"""Numbers of parts that respond at the same prices."""

GAPS = (1e-3, 1e-4)
"""Gaps to which sweeps are counted."""

MOST_SWEEPS = 150
"""The sweep after which a count ends."""

CORES = (2, 16, 64)
"""Numbers of cores whose gain is predicted."""

STARTS, GROUPS = 64, 8
"""Starts and groups of a piece: `block_starts` and `block_groups` of the core."""


class Counted(sweeps.Sweeps):
    """Sweeps that end where steps would take over, or after very many."""

    def _step_on(self) -> Status:
        return Status.GAP_NOT_REACHED

    def _sweep(self) -> tuple[float, bool]:
        length, late = super()._sweep()
        return length, late or self.steps >= MOST_SWEEPS


def sweeps_to(problem: Problem, gap: float, parts: int) -> str:
    """Return the number of sweeps to a gap, with a plus if they stop before it."""
    program = whole_program(problem, by_source(problem))
    search = Counted(program, SolveSettings(gap=gap), None)
    search.params = replace(search.params, parts=parts, shared_groups=1)
    done = search.run() is Status.WITHIN_GAP
    return f"{search.steps}{'' if done else '+'}"


@dataclass
class Work:
    """CPU seconds of the calls that fall into pieces, by number of pieces."""

    seconds: dict[int, float] = field(default_factory=dict)

    def counted(self, kernel: Callable[..., Any], pieces: Callable[..., int]) -> Callable[..., Any]:
        """Return a kernel that notes its pieces and its time."""

        def call(*given: Any) -> Any:
            begun = time.process_time()
            try:
                return kernel(*given)
            finally:
                count = max(1, pieces(*given))
                spent = time.process_time() - begun
                self.seconds[count] = self.seconds.get(count, 0.0) + spent

        return call

    def chain(self, total: float, cores: int) -> float:
        """Return the seconds of the longest chain of work on so many cores."""
        waves = ((-(-count // cores) / count, spent) for count, spent in self.seconds.items())
        return total - sum((1 - share) * spent for share, spent in waves)


def _blocks(rows: int, size: int) -> int:
    return -(-rows // size)


PIECES: dict[str, Callable[..., int]] = {
    "distances": lambda graph, lengths, starts, *_: _blocks(len(starts), STARTS),
    "add_tree_flows": lambda graph, lengths, starts, *_: _blocks(len(starts), STARTS),
    "make_exact": lambda graph, lengths, source, *_: _blocks(len(source), GROUPS),
    "update_batch": lambda *given: len(given[10]) - 1,
}
"""How many pieces each parallel call has, by its arguments."""


@contextmanager
def watched() -> Iterator[Work]:
    """Note the work of all parallel calls."""
    work = Work()
    with ExitStack() as stack:
        for name, pieces in PIECES.items():
            kernel = work.counted(getattr(core, name), pieces)
            stack.enter_context(patch.object(core, name, kernel))
            if name == "update_batch":
                stack.enter_context(patch.object(sweeps, name, kernel))
        yield work


def solved(problem: Problem, threads: int) -> float:
    """Return the seconds of a solve to the first gap."""
    begun = time.perf_counter()
    alltoall.solve(problem, "auto:symmetry=false", gap=GAPS[0], threads=threads)
    return time.perf_counter() - begun


def problems(only: str) -> Iterator[tuple[str, Problem]]:
    """Yield the problems whose names have some text."""
    for spec in NETWORKS:
        if only in spec:
            yield spec, alltoall.problem(spec)
    name = f"{UNEVEN}, uneven"
    if only in name:
        nodes = alltoall.problem(UNEVEN).topology.nodes
        demand = np.random.default_rng(1).pareto(2.0, (nodes, nodes)) + 0.1
        np.fill_diagonal(demand, 0.0)
        yield name, alltoall.problem(UNEVEN, demand=demand)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", help="problems whose names have this text")
    parser.add_argument("--parts", type=int, nargs="+", default=PARTS)
    given = parser.parse_args()
    chosen = list(problems(given.only))
    solved(alltoall.problem(WARM), 1)  # loads what is imported when used
    print(f"{'sweeps':36}{'gap':>8}" + "".join(f"{parts:>7}" for parts in given.parts))
    for name, problem in chosen:
        for gap in GAPS:
            counts = (sweeps_to(problem, gap, parts) for parts in given.parts)
            print(f"{name:36}{gap:>8g}", end="", flush=True)
            for count in counts:
                print(f"{count:>7}", end="", flush=True)
            print()
    cores = "".join(f"{f'{each} cores':>10}" for each in CORES)
    print(f"\n{'solve, gap 1e-3':36}{'CPU s':>8}{'serial':>8}{cores}{'measured at 2':>15}")
    for name, problem in chosen:
        begun = time.process_time()
        with watched() as work:
            alone = solved(problem, 1)
        total = time.process_time() - begun
        serial = 1 - sum(work.seconds.values()) / total
        gains = "".join(f"{total / work.chain(total, each):>10.1f}" for each in CORES)
        measured = alone / solved(problem, 2)
        print(f"{name:36}{total:>8.2f}{serial:>8.1%}{gains}{measured:>15.2f}", flush=True)


if __name__ == "__main__":
    main()
