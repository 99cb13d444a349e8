"""What it costs to start: CPU time as a multiple of `python -c "import numpy"`, and memory.

    python benchmarks/startup.py
    python benchmarks/startup.py --against ../other/.venv/bin/python --cache NAME

Commands run in turn, each in a process of its own, and the medians of user plus system time and of
the largest memory count. The last row is the first answer of an installation that has compiled
nothing: no bytecode, and nothing in the folder that the variable NAME gives a compiler at run time.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

REPEATS = 5
"""Runs of each command."""

UNIT = "import numpy"
"""The command that all others are compared with."""

COMMANDS: dict[str, tuple[str, ...]] = {
    UNIT: ("-c", "import numpy"),
    "import alltoall": ("-c", "import alltoall"),
    "alltoall --help": ("-m", "alltoall", "--help"),
    "alltoall topology": ("-m", "alltoall", "topology"),
    "alltoall solve trous:3x3": ("-m", "alltoall", "solve", "trous:3x3"),
    "a rank of MPI": ("-c", "import alltoall.runtime.worker, alltoall.runtime.mpi"),
    "solve torus:3x3x3 --json": ("-m", "alltoall", "solve", "torus:3x3x3", "--json"),
    "solve genkautz:n=64,d=4": ("-m", "alltoall", "solve", "genkautz:n=64,d=4"),
}
"""The words after `python` of each command."""

FIRST = "solve genkautz:n=64,d=4"
"""The command that is also measured with empty caches."""


@dataclass(frozen=True)
class Cost:
    """CPU seconds and megabytes of a process."""

    seconds: float
    megabytes: float


@dataclass
class Installation:
    """An interpreter that has alltoall, and the costs of each command there."""

    python: str
    cache: str | None
    costs: dict[str, list[Cost]] = field(default_factory=dict)

    def run(self, name: str) -> None:
        """Run a command once."""
        self.costs.setdefault(name, []).append(_cost([self.python, *COMMANDS[name]], {}))

    def run_first(self) -> None:
        """Run the first command of a new installation."""
        with tempfile.TemporaryDirectory() as folder:
            names = ("PYTHONPYCACHEPREFIX", *([self.cache] if self.cache else []))
            cost = _cost([self.python, *COMMANDS[FIRST]], dict.fromkeys(names, folder))
        self.costs.setdefault("the same, empty caches", []).append(cost)

    def lines(self) -> list[str]:
        """Return the table."""
        unit = _median(self.costs[UNIT], lambda cost: cost.seconds)
        rows = [self.python, f"{'command':28}{'CPU s':>8}{'times':>8}{'MB':>8}"]
        for name, costs in self.costs.items():
            seconds = _median(costs, lambda cost: cost.seconds)
            memory = _median(costs, lambda cost: cost.megabytes)
            rows.append(f"{name:28}{seconds:8.2f}{seconds / unit:8.1f}{memory:8.0f}")
        return rows


def _median(costs: list[Cost], of: Callable[[Cost], float]) -> float:
    return statistics.median(map(of, costs))


def _cost(command: list[str], variables: dict[str, str]) -> Cost:
    """Run a command and return its cost; its output is thrown away."""
    process = subprocess.Popen(
        command,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return Cost(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def main() -> None:
    """Print the tables of this installation and of another one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--against", metavar="PYTHON", help="interpreter of another installation")
    parser.add_argument("--cache", metavar="NAME", help="variable that names its compiler's cache")
    given = parser.parse_args()
    installations = [Installation(sys.executable, None)]
    if given.against is not None:
        installations.append(Installation(str(Path(given.against).absolute()), given.cache))
    for _ in range(REPEATS):
        for name in COMMANDS:
            for each in installations:
                each.run(name)
    for each in installations:
        each.run_first()
    print("\n\n".join("\n".join(each.lines()) for each in installations))


if __name__ == "__main__":
    main()
