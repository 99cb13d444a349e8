"""Several ranks per host under `alltoall wrap`: time, the certified bound, the library.

    python benchmarks/clusters.py [--only hosts torus placed shared] [--ranks 1 2 4] [--rounds 5]

Hosts are nodes of an emulated fabric of slow links (root on Linux, MPICH), and every pair of hosts
has as many bytes for each number of ranks. `bound` is the share of the certified throughput that a
call reaches, with the first bursts of links accounted for; `library` how many times as long the
library's own call takes on the same fabric, over shortest paths. Medians of several calls. `shared`
has no fabric: eight ranks as two hosts on this machine, ours over the library's own in turns, for
both MPIs. Take the figures while nothing else runs.
"""

import argparse
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import alltoall
from alltoall.ir.chunks import shards_of
from alltoall.ir.demand import Demand
from alltoall.ir.quantities import bytes_per_second
from alltoall.lowering.programs.messages import messages_of
from alltoall.runtime.engine.build import build, find_mpicc
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.processes import Command, grouped
from alltoall.testbed.launch import burst_credit, device_variables, temporary_bed
from alltoall.testbed.loads import device_bytes, pair_bytes
from alltoall.testbed.namespaces import Bed

PROGRAM = Path(__file__).with_name("alltoall.c")
PREFIX = Path(sys.executable).parent.parent / "mpi"
SECONDS = 1800
PLACE = """#!/bin/sh
node=$(echo {nodes} | cut -d ' ' -f $((${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} + 1)))
ALLTOALL_HOST=host$node exec {enter} "$@"
"""


@dataclass(frozen=True)
class Case:
    """A network of hosts, the rate of its links, and the bytes between two hosts in a call."""

    spec: str
    rate: str
    bytes: int


CASES = {
    "cube": Case("hypercube:3", "40mbit", 4 << 20),
    "K44": Case("bipartite:4x4", "40mbit", 4 << 20),
    "torus": Case("torus:3x3x3", "10mbit", 1 << 20),
}


class Runner:
    """Runs the timing program on a fabric, or on this machine, for one MPI."""

    def __init__(self, kind: str, folder: Path, rounds: int) -> None:
        own = PREFIX / kind / "bin" / "mpiexec"
        self.mpi: Mpi = find_mpi(str(own) if own.exists() else kind)
        self.mpicc = find_mpicc(launcher=str(self.mpi.mpiexec), kind=kind)
        build(self.mpicc)
        self.folder, self.rounds = folder, rounds
        self.program = folder / f"alltoall-{kind}"
        subprocess.run([self.mpicc, "-O2", "-o", self.program, PROGRAM], check=True)

    def times(
        self, way: str, nodes: list[int], calls: int, size: int, bed: Bed | None = None
    ) -> list[float]:
        """Return the median seconds of a call with shards of so many bytes, ours or the own."""
        enter = "" if bed is None else " ".join([*bed.prefix()[:-1], "$node", "--"])
        place = self.folder / "place"
        place.write_text(PLACE.format(nodes=" ".join(map(str, nodes)), enter=enter))
        place.chmod(0o755)
        mpi = self.mpi
        if bed is not None:
            variables = device_variables(way == "ours")
            mpi = replace(mpi, environment={**mpi.environment, **variables})
        job = [str(place), str(self.program), way, str(self.rounds), str(calls), str(size)]
        command = mpi.command(len(nodes), job)
        if way != "own":
            wrap = [sys.executable, "-m", "alltoall", "wrap", str(self.folder / "schedule.json")]
            command = [*wrap, "--mpicc", str(self.mpicc), "--", *command]
        log = self.folder / "log"
        with grouped() as group:
            run = Command(command, mpi.variables(len(nodes)), log)
            group.run([run], SECONDS, " ".join(command))
        said = log.read_text()
        if "used the schedule" in said:
            sys.exit(said)
        line = next(line for line in said.splitlines() if line.startswith(f"{size} "))
        return [float(each) / 1e6 for each in line.split()[2::2]]


def order(hosts: int, each: int, name: str) -> list[int]:
    """Return the host of every rank."""
    nodes = [host for host in range(hosts) for _ in range(each)]
    if name == "round-robin":
        nodes = [rank % hosts for rank in range(hosts * each)]
    elif name == "random":
        random.Random(1).shuffle(nodes)
    return nodes


def on_fabric(
    runner: Runner, case: Case, jobs: list[tuple[int, str]]
) -> Iterator[tuple[int, str, float, float]]:
    """Yield ranks per host, their order, the share of the bound, and their time over ours."""
    topology = alltoall.topology(case.spec)
    hosts = len(topology.terminals)
    names = [f"host{node}" for node in range(topology.nodes)]
    schedule = alltoall.schedule(topology.changed("hosts", names=names))
    schedule.save(runner.folder / "schedule.json")
    bound = alltoall.solve(topology).time
    rate = bytes_per_second(case.rate)
    with temporary_bed(topology, rate) as bed:
        pairs = pair_bytes(messages_of(schedule), shards_of(Demand(hosts), case.bytes))
        credit = burst_credit(bed, device_bytes(bed.plan, pairs, frozenset()))
        for each, name in jobs:
            nodes = order(hosts, each, name)
            (ours,) = runner.times("ours", nodes, 1, case.bytes // each**2, bed)
            (own,) = runner.times("own", nodes, 1, case.bytes // each**2, bed)
            yield each, name, bound * case.bytes / rate / (ours + credit), own / ours


def show(runner: Runner, name: str, jobs: list[tuple[int, str]]) -> None:
    """Print the rows of a fabric."""
    for each, placed, share, ratio in on_fabric(runner, CASES[name], jobs):
        print(f"{name:8}{each:6}  {placed:12}{share:8.3f}{ratio:9.2f}", flush=True)


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ["hosts", "torus", "placed", "shared"]
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--ranks", nargs="*", type=int, default=[1, 2, 4], help="per host")
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if {*asked.only} - {"shared"}:
            runner = Runner("mpich", folder, asked.rounds)
            print(f"{'fabric':8}{'ranks':>6}  {'placed':12}{'bound':>8}{'library':>9}")
        if "hosts" in asked.only:
            for case in ("cube", "K44"):
                show(runner, case, [(each, "in order") for each in asked.ranks])
        if "torus" in asked.only:
            show(runner, "torus", [(2, "in order")])
        if "placed" in asked.only:
            show(runner, "cube", [(2, "round-robin"), (2, "random")])
        if "shared" in asked.only:
            print(f"{'MPI':10}{'bytes':>10}{'ours/own':>10}")
            hosts = alltoall.topology("complete:2").changed("hosts", names=["host0", "host1"])
            alltoall.schedule(hosts).save(folder / "schedule.json")
            for kind in ("mpich", "openmpi"):
                runner = Runner(kind, folder, asked.rounds)
                for size in (4 << 10, 64 << 10, 1 << 20):
                    ours, own = runner.times("both", order(2, 4, "in order"), 20, size)
                    print(f"{kind:10}{size:10}{ours / own:10.2f}", flush=True)


if __name__ == "__main__":
    main()
