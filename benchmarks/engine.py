"""What the exchange costs from C and from Python, beside the MPI library's own all-to-all.

    python benchmarks/engine.py [--mpi mpich openmpi] [--specs complete:8 hypercube:3]

All ranks are on this machine, where no topology is a bottleneck: the schedule of the complete graph
sends what the library does, others send more messages one after another. Times are the least of
several rounds, each the mean of many calls on the slowest rank, and taken in turns: of a program in
C under `alltoall wrap`, with the library's own call in the same run, and of mpi4py.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import alltoall
from alltoall.runtime.engine.build import build, find_mpicc
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.processes import Command, grouped

SPECS = ["complete:8", "hypercube:3", "bipartite:4x4", "genkautz:n=8,d=2"]
SIZES = [64, 1024, 16 * 1024, 256 * 1024]
ROUNDS, CALLS = 7, 50

RANK = """
import json, sys, time
import numpy as np
from mpi4py import MPI
from alltoall.runtime.mpi import Alltoall
path, sizes, rounds, calls = json.loads(sys.argv[1])
comm = MPI.COMM_WORLD
ways = {"python": Alltoall(path, comm), "library": comm.Alltoall}
for size in sizes:
    send = np.arange(comm.size * size, dtype=np.uint8)
    recv = np.empty_like(send)
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, call in ways.items():
            comm.Barrier()
            began = time.perf_counter()
            for _ in range(calls):
                call(send, recv)
            took = comm.allreduce(time.perf_counter() - began, MPI.MAX) / calls
            least[name] = min(least[name], took)
    if comm.rank == 0:
        print(json.dumps([size, least]), flush=True)
"""


PROGRAM = Path(__file__).with_name("alltoall.c")
KINDS = ["mpich", "openmpi"]

COLUMNS = {
    "from C us": "wrapped",
    "MPI us": "own",
    "from Python us": "python",
    "mpi4py us": "library",
}
RATIOS = {"C/MPI": ("wrapped", "own"), "Py/MPI": ("python", "library")}


def in_c(mpi: Mpi, mpicc: Path, ranks: int, folder: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the seconds of a call for each size, from a program in C."""
    program = folder / "alltoall"
    subprocess.run([mpicc, "-O2", "-o", program, PROGRAM], check=True)
    job = [str(program), "both", str(ROUNDS), str(CALLS), *map(str, SIZES)]
    wrap = [sys.executable, "-m", "alltoall", "wrap", str(folder / "schedule.json"), "--mpicc"]
    for line in said([*wrap, str(mpicc), "--", *mpi.command(ranks, job)], mpi, ranks, folder):
        if line[:1].isdigit():
            size, wrapped, _, own, _ = line.split()
            yield int(size), {"wrapped": float(wrapped) / 1e6, "own": float(own) / 1e6}


def in_python(mpi: Mpi, ranks: int, folder: Path) -> Iterator[tuple[int, dict[str, float]]]:
    """Yield the seconds of a call for each size, from mpi4py."""
    job = json.dumps([str(folder / "schedule.json"), SIZES, ROUNDS, CALLS])
    command = mpi.command(ranks, [sys.executable, "-c", RANK, job])
    for line in said(command, mpi, ranks, folder):
        if line.startswith("["):
            yield json.loads(line)


def said(command: list[str], mpi: Mpi, ranks: int, folder: Path) -> list[str]:
    """Run ranks to their end, and return what they said."""
    with grouped() as group:
        group.run([Command(command, mpi.variables(ranks), folder / "log")], 600, "the ranks")
    return (folder / "log").read_text().splitlines()


def measure(spec: str, kind: str, folder: Path) -> None:
    """Print the rows of one topology under one MPI."""
    mpi = find_mpi(kind)
    mpicc = find_mpicc(launcher=str(mpi.mpiexec), kind=kind)
    build(mpicc)
    schedule = alltoall.schedule(spec)
    schedule.save(folder / "schedule.json")
    ranks = len(schedule.problem.topology.terminals)
    found = dict(in_c(mpi, mpicc, ranks, folder))
    for size, times in in_python(mpi, ranks, folder):
        found[size].update(times)
    for size, times in found.items():
        cells = "".join(f"{times[key] * 1e6:16.1f}" for key in COLUMNS.values())
        ratios = "".join(f"{times[one] / times[other]:10.2f}" for one, other in RATIOS.values())
        print(f"{kind:9}{spec:20}{size:8}{cells}{ratios}", flush=True)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", nargs="*", default=SPECS)
    parser.add_argument("--mpi", nargs="*", default=KINDS, choices=KINDS)
    asked = parser.parse_args()
    heads = "".join(f"{each:>16}" for each in COLUMNS) + "".join(f"{each:>10}" for each in RATIOS)
    print(f"{'MPI':9}{'topology':20}{'shard B':>8}{heads}")
    for kind in asked.mpi:
        for spec in asked.specs:
            with tempfile.TemporaryDirectory() as folder:
                measure(spec, kind, Path(folder))


if __name__ == "__main__":
    main()
