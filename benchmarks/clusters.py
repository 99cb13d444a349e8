"""Several ranks per host under `alltoall wrap`: time, the certified bound, the library.

    python benchmarks/clusters.py [--only hosts torus placed pencils linux fft shared] [--rounds 5]

Hosts are nodes of an emulated fabric of slow links (root on Linux, MPICH), and every pair of hosts
has as many bytes for each number of ranks. `bound` is the share of the certified throughput that a
call reaches, with the first bursts of links accounted for; `library` how many times as long the
library's own call takes on the same fabric, over shortest paths. Medians of several calls; every
link must have sent the bytes of the schedule, and no more than headers besides.

`pencils` has communicators of a process grid, all rows at once, then all columns. `linux` has a TCP
flow per pair over routes that the testbed installs, and over those of the scripts of
`lower --to linux`, which are to be within 2 %. `fft` has a whole program on 27 hosts of two ranks,
in seconds, and its time over that of the library less what the all-to-alls save. `shared` has no
fabric: ranks of two hosts on this machine, ours over the library's own in turns, for both MPIs.
Take the figures while nothing else runs.
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
from alltoall.ir.quantities import bytes_per_second
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.messages import messages_of
from alltoall.lowering.tables.linux import direct_address
from alltoall.runtime.engine.build import build, find_mpicc
from alltoall.runtime.mpiexec import Mpi, find_mpi
from alltoall.runtime.processes import Command, grouped
from alltoall.testbed.launch import burst_credit, on_nodes, temporary_bed
from alltoall.testbed.loads import device_bytes, differences, pair_bytes
from alltoall.testbed.namespaces import Bed, counted
from alltoall.testbed.routed import run_routes

PROGRAM = Path(__file__).with_name("alltoall.c")
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
    "grid": Case("torus:4x4", "20mbit", 2 << 20),
}


class Runner:
    """Runs the timing program on a fabric, or on this machine, for one MPI."""

    def __init__(self, kind: str, folder: Path, rounds: int) -> None:
        self.mpi: Mpi = find_mpi(kind)
        self.mpicc = find_mpicc(launcher=str(self.mpi.mpiexec), kind=kind)
        build(self.mpicc)
        self.folder, self.rounds = folder, rounds
        self.program = folder / f"alltoall-{kind}"
        subprocess.run([self.mpicc, "-O2", "-o", self.program, PROGRAM], check=True)

    def times(
        self,
        way: str,
        nodes: list[int],
        calls: int,
        size: int,
        bed: Bed | None = None,
        width: int | None = None,
    ) -> list[float]:
        """Return the median seconds of a call with shards of so many bytes, ours or the own.

        With a width rows of so many ranks have a communicator each, or columns if it is below 0.
        """
        enter = "" if bed is None else " ".join([*bed.prefix()[:-1], "$node", "--"])
        place = self.folder / "place"
        place.write_text(PLACE.format(nodes=" ".join(map(str, nodes)), enter=enter))
        place.chmod(0o755)
        more = {} if bed is None else on_nodes(bed, way == "ours").environment
        more = more if width is None else {**more, "WIDTH": str(width)}
        mpi = replace(self.mpi, environment={**self.mpi.environment, **more})
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


def scheduled(case: Case, folder: Path, groups: list[str] | None = None) -> Schedule:
    """Save the schedule of a network of named hosts."""
    topology = alltoall.topology(case.spec)
    names = [f"host{node}" for node in range(topology.nodes)]
    found = alltoall.schedule(topology.changed("hosts", names=names), groups=groups)
    found.save(folder / "schedule.json")
    return found


def measured(
    runner: Runner,
    case: Case,
    schedule: Schedule,
    bed: Bed,
    nodes: list[int],
    width: int | None = None,
) -> tuple[float, float]:
    """Return the share of the bound, and the time of the library's own call over ours."""
    each = len(nodes) // bed.plan.topology.nodes
    size = case.bytes // each**2
    pairs = pair_bytes(messages_of(schedule), shards_of(schedule.problem.demand, case.bytes))
    expected = device_bytes(bed.plan, pairs)
    before = counted(bed).sent
    (ours,) = runner.times("ours", nodes, 1, size, bed, width)
    sent = {device: count - before[device] for device, count in counted(bed).sent.items()}
    calls = runner.rounds + 1
    wrong = [*differences(bed.plan, {key: calls * n for key, n in expected.items()}, sent, calls)]
    if wrong:
        sys.exit("\n".join(wrong))
    (own,) = runner.times("own", nodes, 1, size, bed, width)
    seconds = ours + burst_credit(bed, expected)
    return schedule.bound * case.bytes / bytes_per_second(case.rate) / seconds, own / ours


def fabric_rows(runner: Runner, name: str, jobs: list[tuple[int, str]]) -> Iterator[str]:
    """Yield the rows of a fabric: ranks per host, and their order."""
    case = CASES[name]
    schedule = scheduled(case, runner.folder)
    topology = schedule.problem.topology
    with temporary_bed(topology, bytes_per_second(case.rate)) as bed:
        for each, placed in jobs:
            nodes = order(topology.nodes, each, placed)
            share, ratio = measured(runner, case, schedule, bed, nodes)
            yield f"{name:8}{each:6}  {placed:12}{share:8.3f}{ratio:9.2f}"


def pencil_rows(runner: Runner) -> Iterator[str]:
    """Yield the rows of communicators of a process grid, all rows at once, then all columns."""
    case = CASES["grid"]
    with temporary_bed(alltoall.topology(case.spec), bytes_per_second(case.rate)) as bed:
        for group, width in (("rows", 4), ("columns", -4)):
            schedule = scheduled(case, runner.folder, [f"{group}:shape=4x4"])
            share, ratio = measured(runner, case, schedule, bed, order(16, 1, ""), width)
            yield f"{'grid':8}{1:6}  {group:12}{share:8.3f}{ratio:9.2f}"


def linux_rows(rounds: int) -> Iterator[str]:
    """Yield the seconds of flows over routes of the testbed, and over those of scripts."""
    for name in ("cube", "torus"):
        case = CASES[name]
        routes = alltoall.route(case.spec, "single:layering=none")
        files = alltoall.lower(routes, "linux").files
        nodes = range(routes.problem.topology.nodes)
        with temporary_bed(routes.problem.topology, bytes_per_second(case.rate)) as bed:
            (own,) = run_routes(bed, routes, (case.bytes,), rounds)
            for node in nodes:
                inside = [*bed.prefix()[:-1], str(node), "--", "sh", "-s"]
                subprocess.run(inside, input=files[f"{node}.sh"], check=True)
            hosts = [f"::ffff:{direct_address(node)}" for node in nodes]
            (ours,) = run_routes(bed, routes, (case.bytes,), rounds, hosts=hosts)
        if not own.counters_ok or not ours.counters_ok:
            sys.exit("\n".join((*own.disagreements, *ours.disagreements)))
        yield f"{name:8}{own.seconds:9.3f}{ours.seconds:9.3f}{ours.seconds / own.seconds:8.3f}"


def fft_rows(side: int, rounds: int) -> Iterator[str]:
    """Yield the seconds of transforms by the library and by schedules, for slabs and pencils."""
    case = CASES["torus"]
    schedule = alltoall.schedule(case.spec)
    for pencils in (None, "9x6"):
        report = alltoall.fft3d(
            side, schedule=schedule, rate=case.rate, ranks_per_host=2, pencils=pencils,
            iterations=rounds,
        )  # fmt: skip
        ways = {row.way: row for row in report.rows}
        own, ours = ways["library"], ways["schedule"]
        predicted = own.seconds - own.alltoall + ours.alltoall
        name = pencils or "slabs"
        yield (
            f"{name:8}{own.alltoall:9.3f}{ours.alltoall:9.3f}{own.seconds:9.3f}{ours.seconds:9.3f}"
            f"{ours.seconds / predicted:10.3f}"
        )


def shared_rows(folder: Path, rounds: int) -> Iterator[str]:
    """Yield the time of our call over the library's own in shared memory."""
    scheduled(Case("complete:2", "", 0), folder)
    for kind in ("mpich", "openmpi"):
        runner = Runner(kind, folder, rounds)
        for each, size in ((4, 4 << 10), (4, 64 << 10), (4, 1 << 20), (8, 64 << 10)):
            ours, own = runner.times("both", order(2, each, "in order"), 20, size)
            yield f"{kind:10}{each:6}{size:10}{ours / own:10.2f}"


def main() -> None:
    """Print the tables that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = ["hosts", "torus", "placed", "pencils", "linux", "fft", "shared"]
    parser.add_argument("--only", nargs="*", choices=parts, default=parts)
    parser.add_argument("--ranks", nargs="*", type=int, default=[1, 2, 4], help="per host")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--side", type=int, default=108, help="of the grid of fft")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows: list[Iterator[str]] = []
        if {*asked.only} - {"linux", "fft", "shared"}:
            runner = Runner("mpich", folder, asked.rounds)
            print(f"{'fabric':8}{'ranks':>6}  {'placed':12}{'bound':>8}{'library':>9}")
        if "hosts" in asked.only:
            in_order = [(each, "in order") for each in asked.ranks]
            rows += [fabric_rows(runner, case, in_order) for case in ("cube", "K44")]
        if "torus" in asked.only:
            rows += [fabric_rows(runner, "torus", [(2, "in order")])]
        if "placed" in asked.only:
            rows += [fabric_rows(runner, "cube", [(2, "round-robin"), (2, "random")])]
        if "pencils" in asked.only:
            rows += [pencil_rows(runner)]
        if "linux" in asked.only:
            rows += [iter([f"{'linux':8}{'testbed':>9}{'scripts':>9}{'ratio':>8}"])]
            rows += [linux_rows(asked.rounds)]
        if "fft" in asked.only:
            columns = "".join(f"{each:>9}" for each in ("alltoall", "ours", "total", "ours"))
            rows += [iter([f"{'fft':8}{columns}  by share"]), fft_rows(asked.side, asked.rounds)]
        if "shared" in asked.only:
            rows += [iter([f"{'MPI':10}{'ranks':>6}{'bytes':>10}{'ours/own':>10}"])]
            rows += [shared_rows(folder, asked.rounds)]
        for table in rows:
            for row in table:
                print(row, flush=True)


if __name__ == "__main__":
    main()
