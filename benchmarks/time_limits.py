"""How late does a time limit end? Every case in a process of its own, with its peak memory.

    python benchmarks/time_limits.py [--only WORD]

A case may end `ALLOWED` seconds plus a tenth of its limit after it. What counts is the whole
process, from its start to its exit; `start` is what an empty command takes, imports included. On a
machine that is shared, compare the seconds of the verb (`inside`), and the ratios.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from dataclasses import dataclass

ALLOWED = 2.0
"""Seconds that a call may take beyond its limit, plus a tenth of it."""

EXPANDER = "jellyfish:n=150,d=4,seed=1"
TORUS = "torus:10x10x10"
KAUTZ = "genkautz:n=1000,d=4"

CASES: tuple[tuple[str, float | None], ...] = (
    (f"solve {EXPANDER} --method link", 5),
    (f"solve {EXPANDER} --method grouped", 5),
    (f"solve {EXPANDER} --method decomposed-lp", 5),
    (f"route {EXPANDER} --method few", 5),
    (f"route {EXPANDER} --method pmcf --paths columns", 5),
    *((f"route {TORUS} --method {name}", 30) for name in ("sssp", "ewsp", "pmcf", "extp", "fptas")),
    (f"route {KAUTZ} --method native", 30),
    ("schedule genkautz:n=100,d=4", 20),
    ("solve complete:2237", None),
    ("solve complete:500", None),
)
"""Commands with their time limits; the last two have none and are judged by what they cost."""


@dataclass(frozen=True)
class Run:
    """What one process took: seconds of the clock, of the processor, and memory at its peak."""

    seconds: float
    cpu: float
    gigabytes: float
    code: int
    out: str
    err: str

    @property
    def inside(self) -> float:
        """The seconds that the verb itself reports; those of the process if it reports none."""
        return float(json.loads(self.out)["seconds"]) if self.code == 0 else self.seconds

    @property
    def outcome(self) -> str:
        """What came of it: the gap and the layers, or the message."""
        if self.code:
            return self.err.strip().splitlines()[-1][:100]
        found = json.loads(self.out)
        layers = f", layers {found['layers']}" if "layers" in found else ""
        return f"gap {found['gap']:.3g}{layers}"


def run(words: list[str]) -> Run:
    """Run a2aflow with words in a process of its own."""
    command = [sys.executable, "-m", "a2aflow", *words]
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = child.stdout.read(), child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    return Run(
        seconds=time.monotonic() - began,
        cpu=usage.ru_utime + usage.ru_stime,
        gigabytes=usage.ru_maxrss / 2**20,
        code=os.waitstatus_to_exitcode(status),
        out=out,
        err=err,
    )


def row(command: str, limit: float | None) -> str:
    """Run a case and return its row of the table."""
    words = [*command.split(), "--json"]
    if limit is not None:
        words += ["--time-limit", str(limit)]
    took = run(words)
    allowed = ALLOWED + 1.1 * limit if limit is not None else None
    ratio = f"{took.inside / allowed:.2f}" if allowed else "-"
    cells = (
        f"`{command}`",
        "-" if limit is None else f"{limit:g}",
        f"{took.inside:.1f}",
        f"{took.cpu:.1f}",
        f"{took.gigabytes:.2f}",
        ratio,
        took.outcome,
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that contain this")
    chosen = parser.parse_args().only
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    start = run(["topology", "ring:4", "--json"])
    print(f"start: {start.seconds:.1f} s, {start.cpu:.1f} s of a processor\n")
    print("| command | limit (s) | inside (s) | CPU (s) | GiB | of what is allowed | outcome |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for command, limit in CASES:
        if chosen in command:
            print(row(command, limit), flush=True)


if __name__ == "__main__":
    main()
