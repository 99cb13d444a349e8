"""What schedules and routes reach on an emulated fabric, as a share of what is provably possible.

    python benchmarks/testbed.py [--only links routed small fft recovery] [--cases K44 cube ...]
    python benchmarks/testbed.py --only curve --cases cube torus --csv curves.csv --plot curves.png

Real ranks, real TCP, links of limited rate; needs root on Linux. Medians of five iterations; those
with much steal are repeated; bursts are accounted for; the bytes of every link are compared with
what the schedule or the routes say, and a run in which they disagree fails. Beside each stands the
MPI library's own all-to-all over shortest and equal-cost paths on the same fabric. The last column
is the goal. Take the figures while nothing else runs.
"""

import argparse
import csv
from dataclasses import dataclass
from pathlib import Path

import alltoall
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import bytes_per_second
from alltoall.ir.topology import Topology
from alltoall.testbed.report import BedReport, BedRow
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from curves import draw


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
    build = alltoall.topology
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
    parser.add_argument("--csv", type=Path, help="write all rows to this file")
    parser.add_argument("--plot", type=Path, help="draw the curves; needs matplotlib")
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
    if asked.plot:
        draw(rows, asked.plot)


def links(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run the schedule of a fabric at its large size, and the library's own if that is no wait."""
    native = case.ratio is not None or len(case.topology.terminals) < MANY_RANKS
    return _ran(name, case, [case.shard], iterations, native)


def curve(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run the schedule of a fabric, and routes, from a kilobyte on."""
    sizes = [1 << k for k in range(10, case.shard.bit_length(), 2)]
    rows = _ran(name, case, sizes, iterations, native=len(case.topology.terminals) < MANY_RANKS)
    rows += _routed(name, case, sizes, iterations, ("single", "extp"))
    return [{**row, "part": "curve"} for row in rows]


def routed(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run routes of several methods at the large size, beside sssp's."""
    return _routed(name, case, [case.shard], iterations, ("sssp", "single", "extp", "ewsp"))


def small(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Run a schedule and routes at a kilobyte, where what counts is how often data is passed on."""
    rows = _ran(name, case, [1024], iterations)
    return rows + _routed(name, case, [1024], iterations, ("single", "extp"))


def fft(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Transform a grid over the fabric, by the library's own, the schedule, and along routes."""
    problem = Problem.all_to_all(case.topology)
    report = alltoall.fft3d(
        GRIDS[len(case.topology.terminals)],
        schedule=alltoall.schedule(problem),
        routes=[alltoall.route(problem, method=method) for method in FFT_ROUTES],
        rate=case.rate,
        iterations=iterations,
        warmup=1,
    )
    names = {f"routes {number + 1}": method for number, method in enumerate(FFT_ROUTES)}
    rows: list[dict[str, object]] = []
    for row in report.rows:
        way = names.get(row.way, row.way)
        bands = (row.fft2d_pack, row.alltoall, row.unpack_fft1d)
        print(
            f"{name:10} fft {report.grid[0]}^3  {way:9} total {row.seconds:7.3f} s  "
            f"2D FFT {bands[0]:6.3f}  all-to-all {bands[1]:7.3f}  1D FFT {bands[2]:6.3f}",
            flush=True,
        )
        rows.append({"case": name, "part": "fft", **vars(row), "way": way})
    return rows


def recovery(name: str, case: Case, iterations: int) -> list[dict[str, object]]:
    """Cut a cable under a schedule and under routes; say when what is left was running."""
    problem = Problem.all_to_all(case.topology)
    ends = f"{case.topology.tail[0]}-{case.topology.head[0]}"
    rows: list[dict[str, object]] = []
    answers: dict[str, alltoall.Schedule | alltoall.Routes]
    answers = {"schedule": alltoall.schedule(problem), "routes": alltoall.route(problem)}
    for kind, answer in answers.items():
        report = alltoall.run(
            answer, on="testbed", bytes=[64 << 10], iterations=1, warmup=0, rate=case.rate, cut=ends
        )
        assert isinstance(report, BedReport)
        assert report.recovery is not None
        found = report.recovery
        print(
            f"{name:10} cut {ends} under {kind:8}  ended {found.ended:5.2f} s  solved "
            f"{found.solved:5.2f} s  installed {found.installed:5.2f} s  complete and checked "
            f"{found.complete:5.2f} s",
            flush=True,
        )
        rows.append({"case": name, "part": "recovery", "way": kind, **vars(found)})
    return rows


def _ran(
    name: str, case: Case, sizes: list[int], iterations: int, native: bool = True
) -> list[dict[str, object]]:
    schedule = alltoall.schedule(Problem.all_to_all(case.topology))
    report = alltoall.run(
        schedule,
        on="testbed",
        bytes=sizes,
        iterations=iterations,
        rate=case.rate,
        timeout=900,
        native=native,
    )
    predicted = alltoall.simulate(
        schedule, link_bandwidth=bytes_per_second(case.rate), bytes=sizes, sharing="fair"
    )
    assert isinstance(report, BedReport)
    goal = f"{case.goal:.2f}" + ("" if case.ratio is None else f", {case.ratio:g} times")
    rows: list[dict[str, object]] = []
    for row, model in zip(report.rows, predicted.rows, strict=True):
        print(
            f"{name:10} {case.rate:>7} {row.bytes:>9,} B  {row.seconds:8.4f} s  predicted "
            f"{model.seconds:8.4f} s  fraction {row.fraction:.3f}  {_beside(row)}  steal "
            f"{row.steal:5.1%}  resent {row.retransmits:4}  dropped {row.drops:3}  goal {goal}",
            flush=True,
        )
        told = {"case": name, "part": "links", "way": "schedule", "predicted": model.seconds}
        rows.append({**told, **vars(row)})
    return rows


def _beside(row: BedRow) -> str:
    if row.native_seconds is None:
        return "native not run"
    return f"native {row.native_seconds:8.4f} s  ratio {row.ratio:5.2f}"


def _routed(
    name: str, case: Case, sizes: list[int], iterations: int, methods: tuple[str, ...]
) -> list[dict[str, object]]:
    rows: list[dict[str, object]] = []
    for method in methods:
        routes = alltoall.route(Problem.all_to_all(case.topology), method=method)
        report = alltoall.run(
            routes, on="testbed", bytes=sizes, iterations=iterations, rate=case.rate, timeout=900
        )
        predicted = alltoall.simulate(
            routes, link_bandwidth=bytes_per_second(case.rate), bytes=sizes, weights="share"
        )
        assert isinstance(report, BedReport)
        for row, model in zip(report.rows, predicted.rows, strict=True):
            print(
                f"{name:10} {case.rate:>7} {row.bytes:>9,} B  {row.seconds:8.4f} s  predicted "
                f"{model.seconds:8.4f} s  {method:7} {routes.count:5} flows  of its load "
                f"{row.load_fraction or 0:.3f}  of the bound {row.fraction:.3f}  steal "
                f"{row.steal:5.1%}  resent {row.retransmits:4}  dropped {row.drops:3}",
                flush=True,
            )
            rows.append({"case": name, "part": "routed", "way": method, **vars(row)})
    return rows


PARTS = {
    "links": links,
    "curve": curve,
    "routed": routed,
    "small": small,
    "fft": fft,
    "recovery": recovery,
}
MANY_RANKS = 16
"""From how many on the library's own is run for a goal only: a large shard takes it minutes."""

FFT_ROUTES = ("sssp", "single", "extp")
GRIDS = {8: 128, 27: 162}
"""The side of a grid by the number of ranks."""

if __name__ == "__main__":
    main()
