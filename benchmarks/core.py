"""CPU time and memory of this installation next to another one, as ratios from one run.

    python benchmarks/core.py --old /path/to/other/venv/bin/python
    python benchmarks/core.py --old PYTHON --only solve --repeats 3

Every row is a whole command, start-up included, in a process of its own. The two installations take
turns, and medians of user plus system time count. A run before the others is not counted: a
compiler at run time would do its work there. Seconds of single runs are worth little on a machine
with other work; ratios are what to read.
"""

import argparse
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

SOLVES = (
    "jellyfish:n=400,d=4,seed=1 --gap 1e-3",
    "genkautz:n=400,d=4 --gap 1e-3 --no-symmetry",
    "jellyfish:n=1000,d=4,seed=1 --gap 1e-3",
    "genkautz:n=1000,d=4 --gap 1e-3 --no-symmetry",
)
"""Networks without symmetry, where nearly all time goes into the core: a goal of their own."""

OTHERS = (
    "solve genkautz:n=1000,d=4 --gap 1e-3",
    "solve genkautz:n=1001,d=4 --gap 1e-3",
    "solve torus:16x16x16",
    "solve hypercube:12",
    "solve torus:32x32x32",
    "schedule torus:8x8x8",
    "schedule genkautz:n=100,d=4",
    "schedule jellyfish:n=64,d=4,seed=1",
    "schedule genkautz:n=64,d=4 --drop-links 2",
    "schedule genkautz:n=101,d=4",
    "schedule jellyfish:n=256,d=4,seed=1",
)
"""The other rows of docs/performance.md that take less than a minute."""

LONG = (
    "solve genkautz:n=4000,d=4 --gap 1e-2",
    "route genkautz:n=1000,d=4 --method single",
    "schedule genkautz:n=1000,d=4",
)
"""Rows of a minute or more, which run with --long only."""

RENAMED = ("--no-symmetry", "--method auto:symmetry=false")
"""An option of the other installation, and its form here."""

MOST = 1.05
"""No row may cost more than this times the other installation's CPU time."""


@dataclass
class Row:
    """A command, and what it costs in both installations."""

    words: str
    goal: float
    costs: list[list[tuple[float, float]]] = field(default_factory=lambda: [[], []])

    def run(self, pythons: list[str], count: bool) -> None:
        """Run the command in both installations, one after the other."""
        now = self.words.replace(*RENAMED)
        for python, words, costs in zip(pythons, (self.words, now), self.costs, strict=True):
            cost = _cost([python, "-m", "alltoall", *words.split()])
            if count:
                costs.append(cost)

    def medians(self, which: int) -> tuple[float, float]:
        """Return the medians of CPU seconds and megabytes."""
        seconds, memory = zip(*self.costs[which], strict=True)
        return statistics.median(seconds), statistics.median(memory)

    @property
    def ratio(self) -> float:
        """The CPU time of this installation over that of the other one."""
        return self.medians(1)[0] / self.medians(0)[0]

    def line(self) -> str:
        """Return the row of the table."""
        (old, before), (new, after) = self.medians(0), self.medians(1)
        return f"{self.words:72}{old:8.2f}{new:8.2f}{self.ratio:7.2f}{before:8.0f}{after:8.0f}"


def _cost(command: list[str]) -> tuple[float, float]:
    """Run a command; return its CPU seconds and its largest memory in megabytes."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    errors = process.stderr.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} failed:\n{errors.decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def installed_megabytes(python: str) -> float:
    """Return the size of an environment's packages and of their programs."""
    query = "import sysconfig; print(sysconfig.get_path('platlib'))"
    run = subprocess.run([python, "-c", query], capture_output=True, text=True, check=True)
    files = (path for path in Path(run.stdout.strip()).rglob("*") if not path.is_symlink())
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6


def main() -> None:
    """Print the table, and what the ratios are in the mean."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--old", required=True, metavar="PYTHON", help="the other installation")
    parser.add_argument("--only", default="", help="rows that contain this text")
    parser.add_argument("--long", action="store_true", help="rows of minutes, too")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--warm", action="store_true", help="nothing has to be compiled any more")
    given = parser.parse_args()
    rows = [Row(f"solve {words}", 0.65) for words in SOLVES]
    rows += [Row(words, 0.9) for words in (*OTHERS, *(LONG if given.long else ()))]
    rows = [row for row in rows if given.only in row.words]
    pythons = [str(Path(given.old).absolute()), sys.executable]
    for repeat in range(given.repeats + (not given.warm)):
        for row in rows:
            row.run(pythons, count=given.warm or repeat > 0)
    print(f"{'command':72}{'old s':>8}{'new s':>8}{'ratio':>7}{'old MB':>8}{'new MB':>8}")
    for row in rows:
        print(row.line())
    for goal in sorted({row.goal for row in rows}):
        ratios = [row.ratio for row in rows if row.goal == goal]
        print(f"mean {statistics.mean(ratios):.2f} of {len(ratios)} rows (goal {goal} at most)")
    for row in rows:
        if row.ratio > MOST:
            print(f"{row.words}: {row.ratio:.2f} is above {MOST}")
    sizes = [installed_megabytes(python) for python in pythons]
    print(f"packages of the environment: {sizes[0]:.0f} MB old, {sizes[1]:.0f} MB new")


if __name__ == "__main__":
    main()
