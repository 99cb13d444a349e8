"""How long algorithms take against the number of nodes, each up to its limit."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import alltoall
from alltoall.figures.asking import by_x, column, each_value, routed, where
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Mark, Panel, Picture, Series

DONE, LIMIT, MISSING = "done", "limit", "missing"
GAP = 1e-3
"""What is asked of methods that approach the optimum; the others end at it."""

PAPER = "Basu et al., the paper, section 5.3"
MARKS = (
    Mark("paper's MCF-decomp", 1000, 2400, PAPER),
    Mark("paper's ILP ends", 44, 1e4, PAPER, beyond=1),
    Mark("TACCL", 32, 1800, PAPER, beyond=1),
    Mark("SCCL", 16, 1e4, PAPER, beyond=1),
    Mark("TE-CCL", 128, 2400, "the paper's related work: longer than its own at 1000", beyond=1),
    Mark("PCCL", 512, 11.68 * 60, "Won et al., PCCL, arXiv 2606.07019, abstract"),
)
"""Published points; those of others are on other machines, and PCCL's on another topology.

TONS designs networks, and what we could read of it tells no time of an all-to-all.
"""


LIMIT_SECONDS = {"full": 60.0, "quick": 4.0, "sample": 2.0}
"""Seconds of an algorithm for one size, by how much of the figure is asked for."""

PATIENCE = {"link": 300.0, "sccl": 240.0}
"""The same for those of which the paper says how far they get, in full: less would say little."""

SURE = 2.0
"""An algorithm that would take so many times its limit, as its time grew so far, is not run."""


def _scheduled(spec: str, method: str, limit: float) -> Any:
    return alltoall.schedule(spec, method=method, time_limit=limit, chunks=1)


def _solved(spec: str, method: str, limit: float, **asked: Any) -> Any:
    return alltoall.solve(spec, method=method, time_limit=limit, **asked)


ALGORITHMS: dict[str, Callable[[str, float], Any]] = {
    "link": lambda spec, limit: _solved(spec, "link", limit, symmetry=False),
    "decomposed-lp": lambda spec, limit: _solved(spec, "decomposed-lp", limit, symmetry=False),
    "decomposed": lambda spec, limit: _solved(spec, "decomposed", limit),
    "first-order": lambda spec, limit: _solved(spec, "first-order", limit, gap=GAP),
    "first-order, no symmetry": lambda spec, limit: _solved(
        spec, "first-order", limit, gap=GAP, symmetry=False
    ),
    "fptas 0.05": lambda spec, limit: alltoall.route(
        spec, "fptas:epsilon=0.05,layering=none", time_limit=limit
    ),
    "ilp-disjoint": lambda spec, limit: routed(spec, "ilp-disjoint", time_limit=limit),
    "single": lambda spec, limit: routed(spec, "single", time_limit=limit),
    "sccl": lambda spec, limit: _scheduled(spec, "sccl", limit),
    "schedule from routes": lambda spec, limit: _scheduled(spec, "list", limit),
}
"""What is timed: the paper's methods, ours, and baselines."""

NOT_EXACT = ("fptas 0.05", "ilp-disjoint", "single", "sccl", "schedule from routes")
"""Those that end by themselves, whatever their gap."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield sizes for each algorithm until it is at its limit."""
    sizes = asked.pick((8, 16, 32, 44, 64, 100, 200, 320, 500, 1000), (8, 16, 32, 64), (8,))
    for n in sizes:
        for name in ALGORITHMS:
            limit = asked.pick(PATIENCE, {}, {}).get(name, LIMIT_SECONDS[asked.size])
            if not _ended(where(rows, algorithm=name, limit=limit), n, limit):
                yield {"n": n, "algorithm": name, "limit": limit}


def _ended(rows: Sequence[Row], n: int, limit: float) -> bool:
    """Whether an algorithm was at its limit at another size, or is sure to be at this one."""
    if any(row["status"] != DONE and row["n"] != n for row in rows):
        return True
    sizes, seconds = by_x([row for row in rows if row["n"] < n], "n", "seconds")
    if len(sizes) < 2 or seconds[-1] < limit / 20:  # What is quick says little of how it grows.
        return False
    growth = math.log(seconds[-1] / seconds[-2]) / math.log(sizes[-1] / sizes[-2])
    return bool(seconds[-1] * (n / sizes[-1]) ** growth > SURE * limit)


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Time one algorithm on one size, once its kernels are compiled."""
    name, limit = str(point["algorithm"]), float(str(point["limit"]))
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


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    largest = {
        name: max((row["n"] for row in where(rows, algorithm=name, status=DONE)), default=0)
        for name in each_value(rows, "algorithm")
    }
    ours = where(rows, algorithm="first-order", status=DONE)
    at_1000 = [row for row in ours if row["n"] == 1000]
    return [
        _two_orders(rows),
        Finding(
            "Decomposed MCF takes 40 minutes at N = 1000 on N cores",
            f"{at_1000[0]['seconds']:.1f} s to a certified gap of {at_1000[0]['gap']:.1e}"
            if at_1000
            else f"N = {largest['first-order']} is the largest here",
            at_1000[0]["seconds"] < 2400 if at_1000 else None,
        ),
        _sccl_ends(where(rows, algorithm="sccl")),
        Finding(
            "FPTAS at 0.05 is slower than decomposed MCF",
            _words(rows, "fptas 0.05", "decomposed"),
            _slower(rows, "fptas 0.05", "decomposed"),
        ),
    ]


def _sccl_ends(rows: Sequence[Row]) -> Finding:
    """Say how far SCCL gets; that it does not get far takes patience to say."""
    claim, limit = "SCCL does not reach N = 16", max(column(rows, "limit"))
    reached = max((row["n"] for row in where(rows, status=DONE)), default=0)
    measured = f"N = {reached} is the largest within {limit:g} s"
    if reached >= 16:
        return Finding(claim, measured, False, "one chunk for each shard is enough for z3")
    if where(rows, status=MISSING):
        return Finding(claim, measured, None, "z3 is not installed")
    if limit < PATIENCE["sccl"]:
        return Finding(claim, measured, None, "too short a time to tell")
    return Finding(claim, measured, True)


def _two_orders(rows: Sequence[Row]) -> Finding:
    """Say how many times faster decomposition is, by size; at its limit, at least so many."""
    claim = "Decomposition is two orders of magnitude faster than link-based MCF at N = 50 to 100"
    others = {row["n"]: row["seconds"] for row in where(rows, algorithm="decomposed", status=DONE)}
    link = [row for row in where(rows, algorithm="link") if row["n"] in others]
    times = {row["n"]: row["seconds"] / others[row["n"]] for row in link}
    late = {row["n"] for row in link if row["status"] == LIMIT}
    words = [
        f"{'more than ' if n in late else ''}{times[n]:.0f} times at N = {n}"
        for n in sorted(times)[-2:]
    ]
    there = [times[n] for n in times if 50 <= n <= 100]
    reason = "" if there else "within this limit link-based MCF ends before N = 50"
    return Finding(claim, ", ".join(words), max(there) > 100 if there else None, reason)


def _at_largest(rows: Sequence[Row], name: str, other: str) -> tuple[int, float, float]:
    found, others = (
        {row["n"]: row["seconds"] for row in where(rows, algorithm=each)} for each in (name, other)
    )
    n = max(set(found) & set(others))
    return n, found[n], others[n]


def _words(rows: Sequence[Row], name: str, other: str) -> str:
    n, one, two = _at_largest(rows, name, other)
    return f"{one:.2f} s against {two:.2f} s at N = {n}"


def _slower(rows: Sequence[Row], name: str, other: str) -> bool:
    _, one, two = _at_largest(rows, name, other)
    return one > two


def draw(rows: Sequence[Row]) -> Picture:
    """Draw seconds against N, both by powers, with the published points."""
    lines = []
    for name in each_value(rows, "algorithm"):
        x, y = by_x(where(rows, algorithm=name, status=DONE), "n", "seconds")
        lines.append(Series(name, x, y, style=name.partition(" ")[0] if "ilp" in name else name))
    panel = Panel("", "nodes N", "seconds", lines, MARKS, x_log=True, y_log=True)
    sources = "; ".join(
        f"{', '.join(mark.label for mark in MARKS if mark.source == source)}: {source}"
        for source in dict.fromkeys(mark.source for mark in MARKS)
    )
    note = f"A line ends at its algorithm's limit. Published, on other machines: {sources}."
    return Picture("Runtime on generalized Kautz graphs, degree 4", [panel], note=note)


RUNTIME = Figure(
    name="runtime",
    title="Algorithm runtime against N",
    source="figure 7 (comptime_genkautz), section 5.3",
    full="15 minutes",
    columns=("n", "algorithm", "limit"),
    exact=("status", "gap"),
    timed=("seconds",),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    alone=True,
)
