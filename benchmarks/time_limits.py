"""How late does a time limit end? Every case in a process of its own, with its peak memory.

    python benchmarks/time_limits.py [--only WORD] [--cpu]

A case may end `ALLOWED` seconds plus a tenth of its limit after it, the time that an empty command
takes to start not counted. With --cpu the limits are read from the processor's clock instead of the
wall's, and so are the figures: on a machine that others use too, nothing else is fair.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
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
    (f"route {KAUTZ} --method ecmp", 30),
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
    def outcome(self) -> str:
        """What came of it: the gap and the layers, or the message."""
        if self.code:
            return self.err.strip().splitlines()[-1][:100]
        found = json.loads(self.out)
        layers = f", layers {found['layers']}" if "layers" in found else ""
        return f"gap {found['gap']:.3g}{layers}"


BY_PROCESSOR = """
import time
import alltoall.settings
alltoall.settings.clock = time.process_time
from alltoall.cli import main
main()
"""
"""A command line whose time limits count the seconds of the processor."""


def run(words: list[str], by_processor: bool) -> Run:
    """Run alltoall with words in a process of its own."""
    start = ["-c", BY_PROCESSOR] if by_processor else ["-m", "alltoall"]
    command = [sys.executable, *start, *words]
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.monotonic() - began
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read())
    return Run(
        seconds=seconds,
        cpu=usage.ru_utime + usage.ru_stime,
        gigabytes=usage.ru_maxrss / 2**20,
        code=os.waitstatus_to_exitcode(status),
        out=texts[0],
        err=texts[1],
    )


def row(command: str, limit: float | None, empty: Run, by_processor: bool) -> str:
    """Run a case and return its row of the table."""
    words = [*command.split(), "--json"]
    if limit is not None:
        words += ["--time-limit", str(limit)]
    took = run(words, by_processor)
    seconds = took.cpu - empty.cpu if by_processor else took.seconds - empty.seconds
    cells = (
        f"`{command}`",
        "-" if limit is None else f"{limit:g}",
        f"{seconds:.1f}",
        "-" if limit is None else f"{seconds / (ALLOWED + 1.1 * limit):.2f}",
        f"{took.gigabytes:.2f}",
        took.outcome,
    )
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Print the table of all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases that contain this")
    parser.add_argument("--cpu", action="store_true", help="count seconds of the processor")
    chosen = parser.parse_args()
    empty = run(["topology", "ring:4", "--json"], chosen.cpu)
    print(f"start: {empty.seconds:.1f} s, {empty.cpu:.1f} s of the processor\n")
    print("| command | limit (s) | took (s) | of what is allowed | GiB | outcome |")
    print("|---|---|---|---|---|---|", flush=True)
    for command, limit in CASES:
        if chosen.only in command:
            print(row(command, limit, empty, chosen.cpu), flush=True)


if __name__ == "__main__":
    main()
