"""Runtime of algorithms by number of nodes, each up to its time limit."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import alltoall
from alltoall.figures.asking import column, curve, each_value, routed, series, where
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Mark, Panel, Picture

DONE, LIMIT, MISSING = "done", "limit", "missing"
GAP = 1e-3
"""Gap of methods that only approach the optimum."""

PAPER = "Basu et al., the paper, section 5.3"
MARKS = (
    Mark("paper's MCF-decomp", 1000, 2400, PAPER),
    Mark("paper's ILP ends", 44, 1e4, PAPER, beyond=1),
    Mark("TACCL", 32, 1800, PAPER, beyond=1),
    Mark("SCCL", 16, 1e4, PAPER, beyond=1),
    Mark("TE-CCL", 128, 2400, "the paper's related work: longer than its own at 1000", beyond=1),
    Mark("PCCL", 512, 11.68 * 60, "Won et al., PCCL, arXiv 2606.07019, abstract"),
)
"""Published points, on other machines; PCCL's is on another topology."""


LIMIT_SECONDS = {"full": 60.0, "quick": 4.0, "sample": 2.0}
"""Time limit of an algorithm for one size, by the size of the figure."""

PATIENCE = {"link": 300.0, "sccl": 240.0}
"""Time limits of algorithms whose reach the paper claims, in full size."""

SURE = 2.0
"""An algorithm is skipped if its growth predicts this multiple of its limit."""


def _scheduled(spec: str, method: str, limit: float) -> Any:
    return alltoall.schedule(spec, method=method, time_limit=limit, chunks=1)


def _solved(spec: str, method: str, limit: float, **asked: Any) -> Any:
    return alltoall.solve(spec, method=method, time_limit=limit, **asked)


ALGORITHMS: dict[str, Callable[[str, float], Any]] = {
    "link": lambda spec, limit: _solved(spec, "link:symmetry=false", limit),
    "decomposed-lp": lambda spec, limit: _solved(spec, "decomposed-lp:symmetry=false", limit),
    "decomposed": lambda spec, limit: _solved(spec, "decomposed", limit),
    "first-order": lambda spec, limit: _solved(spec, "first-order", limit, gap=GAP),
    "first-order, no symmetry": lambda spec, limit: _solved(
        spec, "first-order:symmetry=false", limit, gap=GAP
    ),
    "fptas 0.05": lambda spec, limit: alltoall.route(
        spec, "fptas:epsilon=0.05,layering=none", time_limit=limit
    ),
    "ilp-disjoint": lambda spec, limit: routed(spec, "ilp-disjoint", time_limit=limit),
    "single": lambda spec, limit: routed(spec, "single", time_limit=limit),
    "sccl": lambda spec, limit: _scheduled(spec, "sccl", limit),
    "schedule from routes": lambda spec, limit: _scheduled(spec, "list", limit),
}
"""The timed algorithms: the paper's, ours, and baselines."""

NOT_EXACT = ("fptas 0.05", "ilp-disjoint", "single", "sccl", "schedule from routes")
"""Algorithms that end without reaching a requested gap."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield sizes for each algorithm until it is at its limit."""
    sizes = asked.pick((8, 16, 32, 44, 64, 100, 200, 320, 500, 1000), (8, 16, 32, 64), (8,))
    for n in sizes:
        for name in ALGORITHMS:
            limit = asked.pick(PATIENCE, {}, {}).get(name, LIMIT_SECONDS[asked.size])
            if not _ended(where(rows, algorithm=name, limit=limit), n, limit):
                yield {"n": n, "algorithm": name, "limit": limit}


def _ended(rows: Sequence[Row], n: int, limit: float) -> bool:
    """Return whether an algorithm was at its limit at another size, or will be at this one."""
    if any(row["status"] != DONE and row["n"] != n for row in rows):
        return True
    last = list(curve([row for row in rows if row["n"] < n], "n", "seconds").items())[-2:]
    if len(last) < 2 or last[1][1] < limit / 20:  # What is quick says little of how it grows.
        return False
    (before, shorter), (size, longer) = last
    growth = math.log(longer / shorter) / math.log(size / before)
    return bool(longer * (n / size) ** growth > SURE * limit)


def measure(point: Point, asked: Asked) -> Measured:
    """Time one algorithm on one size, after a run on a small one."""
    name, limit = point["algorithm"], point["limit"]
    run = partial(_outcome, ALGORITHMS[name], limit=limit)
    run("genkautz:n=6,d=2")
    begin = time.perf_counter()
    status, answer = run(f"genkautz:n={point['n']},d=4")
    seconds = time.perf_counter() - begin
    if status == DONE and name not in NOT_EXACT and answer.gap > 2 * GAP:
        status = LIMIT
    if status == DONE and seconds >= limit:
        status = LIMIT
    gap = None if answer is None else answer.gap
    return [{"status": status, "gap": gap, "seconds": seconds}]


def _outcome(algorithm: Callable[[str, float], Any], spec: str, limit: float) -> tuple[str, Any]:
    try:
        return DONE, algorithm(spec, limit)
    except alltoall.MissingComponentError:
        return MISSING, None
    except (alltoall.AlltoallError, TimeoutError):
        return LIMIT, None


def _seconds(rows: Sequence[Row], name: str) -> dict[int, float]:
    """Return the time of an algorithm for each size that it finished."""
    return {row["n"]: row["seconds"] for row in where(rows, algorithm=name, status=DONE)}


def _decomposition(rows: Sequence[Row]) -> Measurement:
    """Return the speedup of the child programs from N = 50 to 100."""
    link, decomposed = _seconds(rows, "link"), _seconds(rows, "decomposed-lp")
    times = {n: link[n] / decomposed[n] for n in sorted(link.keys() & decomposed.keys())}
    words = ", ".join(f"{times[n]:.0f} times at N = {n}" for n in list(times)[-2:]) or "no size"
    there = [times[n] for n in times if 50 <= n <= 100]
    if not there:
        return Measurement(None, words, "link-based MCF is at its limit before N = 50")
    return Measurement(max(there), words)


def _at_1000(rows: Sequence[Row]) -> Measurement:
    largest = max(_seconds(rows, "decomposed-lp"), default=0)
    words = f"child programs end at N = {largest} here"
    for row in where(rows, algorithm="first-order", status=DONE, n=1000):
        words += f"; first-order takes {row['seconds']:.1f} s to a gap of {row['gap']:.1e}"
    return Measurement(None, words, "the paper's time is on 1,000 cores, and of another method")


def _sccl_reaches(rows: Sequence[Row]) -> Measurement | None:
    """Return the largest size that SCCL solves, given enough patience."""
    found = where(rows, algorithm="sccl")
    if not found:
        return None
    limit, reached = max(column(found, "limit")), max(_seconds(found, "sccl"), default=0)
    words = f"N = {reached} is the largest within {limit:g} s"
    if reached < 16 and where(found, status=MISSING):
        return Measurement(None, words, "z3 is not installed")
    if reached < 16 and limit < PATIENCE["sccl"]:
        return Measurement(None, words, "the time limit is too short to tell")
    return Measurement(reached, words, "with one chunk per shard z3 finds schedules")


def _fptas(rows: Sequence[Row]) -> Measurement | None:
    one, two = (_seconds(rows, name) for name in ("fptas 0.05", "decomposed-lp"))
    if not one.keys() & two.keys():
        return None
    n = max(one.keys() & two.keys())
    words = f"{one[n]:.2f} s against {two[n]:.2f} s at N = {n}"
    return Measurement(
        one[n] / two[n], words, "the FPTAS here is compiled, and the children share few cores"
    )


QUANTITIES: dict[str, Quantity] = {
    "decomposition": _decomposition,
    "at-1000": _at_1000,
    "sccl": _sccl_reaches,
    "fptas": _fptas,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw seconds against N, both by powers, with the published points."""
    lines = []
    for name in each_value(rows, "algorithm"):
        lines.append(series(where(rows, algorithm=name, status=DONE), "n", "seconds", name))
    panel = Panel("", "nodes N", "seconds", lines, MARKS, x_log=True, y_log=True)
    sources = "; ".join(
        f"{', '.join(mark.label for mark in MARKS if mark.source == source)}: {source}"
        for source in dict.fromkeys(mark.source for mark in MARKS)
    )
    note = f"A line ends at its algorithm's limit. Published, on other machines: {sources}."
    return Picture("Runtime on generalized Kautz graphs, degree 4", [panel], note=note)


RUNTIME = Figure.of("runtime", points, measure, QUANTITIES, draw)
