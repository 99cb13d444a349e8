"""What it costs to start: CPU time as a multiple of `python -c pass` in the same run, and memory.

    python benchmarks/startup.py

Each command runs several times, and the least counts: what else the machine does only adds. A rank
is a process of `alltoall run --on mpi` that has imported all it needs and joined MPI, but not yet
moved a byte; its memory is the largest that it ever had resident.
"""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPEATS = 7
ALLTOALL = str(Path(sys.executable).with_name("alltoall"))

COMMANDS: dict[str, tuple[list[str], float]] = {
    "import alltoall": ([sys.executable, "-c", "import alltoall"], 3),
    "alltoall --help": ([ALLTOALL, "--help"], 8),
    "alltoall --version": ([ALLTOALL, "--version"], 8),
    "alltoall topology --list": ([ALLTOALL, "topology", "--list"], 8),
    "alltoall sovle torus:3x3": ([ALLTOALL, "sovle", "torus:3x3"], 8),
    "alltoall solve trous:3x3": ([ALLTOALL, "solve", "trous:3x3"], 8),
}
"""What is run, and the most that it may cost."""

RANK = "import alltoall.runtime.worker, alltoall.runtime.mpi"
RANK_SECONDS, RANK_MEGABYTES = 0.3, 40.0


@dataclass(frozen=True)
class Cost:
    """What a process took."""

    seconds: float
    megabytes: float


def cost(command: list[str]) -> Cost:
    """Return the least CPU time and memory of a command over several runs."""
    found = [_once(command) for _ in range(REPEATS)]
    return Cost(min(each.seconds for each in found), min(each.megabytes for each in found))


def _once(command: list[str]) -> Cost:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Print the table."""
    unit = cost([sys.executable, "-c", "pass"])
    print(f"python -c pass: {unit.seconds * 1e3:.0f} ms, {unit.megabytes:.0f} MB\n")
    print(f"{'command':36}{'times':>7}{'goal':>6}{'MB':>6}")
    for name, (command, goal) in COMMANDS.items():
        found = cost(command)
        times = found.seconds / unit.seconds
        print(f"{name:36}{times:7.1f}{goal:6.0f}{found.megabytes:6.0f}")
    rank, bare = cost([sys.executable, "-c", RANK]), cost([sys.executable, "-c", BARE])
    print(f"\na rank: {rank.seconds:.2f} s, {rank.megabytes:.0f} MB; ", end="")
    print(f"goal {RANK_SECONDS:g} s, {RANK_MEGABYTES:g} MB")
    print(f"numpy and mpi4py alone: {bare.seconds:.2f} s, {bare.megabytes:.0f} MB")


BARE = "import numpy; from mpi4py import MPI"

if __name__ == "__main__":
    main()
