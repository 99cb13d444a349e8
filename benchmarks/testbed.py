"""What schedules and routes reach on an emulated fabric, as a share of what is provably possible.

    python benchmarks/testbed.py [--only links routed small] [--cases K44 cube ...] [--csv FILE]

Real ranks, real TCP, links of limited rate; needs root on Linux. Medians of five iterations; those
with much steal are repeated; bursts are accounted for; the bytes of every link are compared with
what the schedule or the routes say, and a run in which they disagree fails. Beside each stands the
MPI library's own all-to-all over shortest and equal-cost paths on the same fabric. The last column
is the goal. Take the figures while nothing else runs.
"""

import argparse
import csv
import tempfile
from dataclasses import dataclass
from pathlib import Path

import a2aflow
from a2aflow.ir.problem import Problem
from a2aflow.ir.topology import Topology
from a2aflow.testbed.report import BedReport
from a2aflow.topologies.operators import drop_links, with_host_bandwidth


@dataclass(frozen=True)
class Case:
    """A fabric, what its links carry, and a size at which bursts no longer matter."""

    topology: Topology
    rate: str
    shard: int
    goal: float
    ratio: float | None


def cases() -> dict[str, Case]:
    """Return the fabrics of the paper's testbeds, and some of ours."""
    build = a2aflow.build
    torus = build("torus:3x3x3")
    return {
        "K44": Case(build("bipartite:4x4"), "40mbit", 4 << 20, 0.97, 3.5),
        "cube": Case(build("hypercube:3"), "40mbit", 4 << 20, 0.97, 3.0),
        "twisted": Case(build("twisted-hypercube:3"), "40mbit", 4 << 20, 0.97, None),
        "genkautz": Case(build("genkautz:n=8,d=2"), "40mbit", 2 << 20, 0.97, None),
        "torus": Case(torus, "10mbit", 1 << 20, 0.95, 4.0),
        "hosted": Case(with_host_bandwidth(torus, 4), "10mbit", 1 << 20, 0.93, None),
        "punctured": Case(drop_links(torus, 3, seed=1), "10mbit", 1 << 20, 0.93, None),
    }


def main() -> None:
    """Print the tables that are asked for."""
    every = cases()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--cases", nargs="*", choices=list(every), default=list(every))
    parser.add_argument("--iterations", type=int, default=5)
    parser.add_argument("--csv", type=Path)
    asked = parser.parse_args()
    rows: list[dict[str, object]] = []
    for part in asked.only:
        for name in asked.cases:
            rows += PARTS[part](name, every[name], asked.iterations)
    if asked.csv:
        with asked.csv.open("w", newline="") as file:
            writer = csv.DictWriter(file, sorted({key for row in rows for key in row}))
            writer.writeheader()
            writer.writerows(rows)


def links(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run the schedule of a fabric at its large size, and the library's own beside it."""
    return _ran(name, case, [case.shard], iterations)


def curve(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run the schedule of a fabric from a kilobyte on."""
    return _ran(name, case, [1 << k for k in range(10, case.shard.bit_length(), 2)], iterations)


def _ran(name: str, case: Case, sizes: list[int], iterations: int) -> list[dict[str, object]]:
    schedule = a2aflow.schedule(Problem.all_to_all(case.topology))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "schedule.npz"
        schedule.save(path)
        report = a2aflow.run(
            path, on="testbed", sizes=sizes, iterations=iterations, rate=case.rate, timeout=900
        )
    assert isinstance(report, BedReport)
    goal = f"{case.goal:.2f}" + ("" if case.ratio is None else f", {case.ratio:g} times")
    for row in report.rows:
        print(
            f"{name:10} {case.rate:>7} {row.bytes:>9,} B  {row.seconds:8.4f} s  "
            f"fraction {row.fraction:.3f}  native {row.native_seconds or 0:8.4f} s  "
            f"ratio {row.ratio or 0:5.2f}  steal {row.steal:5.1%}  resent {row.retransmits:4}  "
            f"dropped {row.drops:3}  goal {goal}",
            flush=True,
        )
    return [{"case": name, "part": "links", **vars(row)} for row in report.rows]


PARTS = {"links": links, "curve": curve}

if __name__ == "__main__":
    main()
