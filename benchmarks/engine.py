"""What the exchange costs in C and in Python, beside the MPI library's own all-to-all.

    python benchmarks/engine.py [--mpi mpich] [--specs complete:8 hypercube:3]

All ranks are on this machine, where no topology is a bottleneck: the schedule of the complete graph
sends what the library does, others send more messages one after another. Times are the least of
several rounds, each the mean of many calls on the slowest rank, and taken in turns.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import a2aflow
from a2aflow.runtime.engine.build import build, find_mpicc
from a2aflow.runtime.mpiexec import find_mpi
from a2aflow.runtime.processes import Command, grouped

SPECS = ["complete:8", "hypercube:3", "bipartite:4x4", "genkautz:n=8,d=2"]
SIZES = [64, 1024, 16 * 1024, 256 * 1024]
ROUNDS, CALLS = 7, 50

RANK = """
import json, os, sys, time
import numpy as np
from mpi4py import MPI
from a2aflow.runtime.mpi import Alltoall
path, sizes, rounds, calls = json.loads(sys.argv[1])
comm = MPI.COMM_WORLD
ways = {}
for name in ("c", "python"):
    os.environ["A2AFLOW_EXCHANGE"] = name
    ways[name] = Alltoall(path, comm)
ways["library"] = comm.Alltoall
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


def measure(spec: str, kind: str | None, mpicc: str | None, folder: Path) -> None:
    """Print the rows of one topology."""
    mpi = find_mpi(kind)
    build(find_mpicc(mpicc, str(mpi.mpiexec)))
    schedule = a2aflow.schedule(spec)
    schedule.save(folder / "schedule.json")
    ranks = len(schedule.problem.topology.terminals)
    job = json.dumps([str(folder / "schedule.json"), SIZES, ROUNDS, CALLS])
    command = mpi.command(ranks, [sys.executable, "-c", RANK, job])
    with grouped() as group:
        group.run([Command(command, mpi.variables(ranks), folder / "log")], 600, spec)
    for line in (folder / "log").read_text().splitlines():
        if line.startswith("["):
            size, times = json.loads(line)
            cells = "".join(f"{times[each] * 1e6:10.1f}" for each in ("c", "python", "library"))
            ratios = "".join(f"{times[each] / times['library']:10.2f}" for each in ("c", "python"))
            print(f"{spec:20}{size:10}{cells}{ratios}")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", nargs="*", default=SPECS)
    parser.add_argument("--mpi", default=None)
    parser.add_argument("--mpicc", default=None)
    asked = parser.parse_args()
    print(f"{'topology':20}{'shard B':>10}{'C us':>10}{'Python us':>10}{'MPI us':>10}", end="")
    print(f"{'C/MPI':>10}{'Py/MPI':>10}")
    for spec in asked.specs:
        with tempfile.TemporaryDirectory() as folder:
            measure(spec, asked.mpi, asked.mpicc, Path(folder))


if __name__ == "__main__":
    main()
