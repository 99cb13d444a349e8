"""Runtime of algorithms by number of nodes, each up to its time limit."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import alltoall
from alltoall.figures.asking import LOOSE, column, curve, series, where
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Mark, Panel, Picture
from alltoall.flows.decompose import widest_paths
from alltoall.settings import SolveSettings

DONE, LIMIT, MISSING = "done", "limit", "missing"
GAP = 1e-3
"""Gap of methods that only approach the optimum."""

PAPER = {
    "exact": (Mark("paper: MCF-decomp, 40 min", 1000, 2400),),
    "baselines": (
        Mark("paper: ILP-disjoint ends", 44, 1e4, beyond=True),
        Mark("paper: TACCL", 32, 1800, beyond=True),
        Mark("paper: SCCL", 16, 1e4, beyond=True),
    ),
}
"""Points of the paper by accuracy, on its machines."""

LIMIT_SECONDS = {"full": 60.0, "quick": 4.0, "sample": 2.0}
"""Time limit of an algorithm for one size, by the size of the figure."""

PATIENCE = {"link": 300.0, "decomposed-lp": 3600.0, "sccl": 240.0, "taccl": 1800.0}
"""Time limits of algorithms whose reach the paper claims, in full size."""

SURE = 2.0
"""An algorithm is skipped if its growth predicts this multiple of its limit."""


@dataclass(frozen=True)
class Algorithm:
    """A timed call, its label and its accuracy; some end without reaching a requested gap."""

    label: str
    accuracy: str
    call: Callable[..., Any]
    method: str
    asked: dict[str, Any] = field(default_factory=dict)

    def __call__(self, spec: str, limit: float) -> Any:
        """Return the answer for a topology within a time limit."""
        return self.call(spec, method=self.method, time_limit=limit, **self.asked)


def _published(spec: str, method: str, time_limit: float) -> alltoall.Flow:
    """Return the flow of master and child programs, with its widest paths extracted."""
    settings = SolveSettings(time_limit=time_limit)
    flow = alltoall.solve(spec, method=method, time_limit=time_limit)
    widest_paths(flow, settings)
    return flow


EXACT, CLOSE, ROUGH, BASELINE = "exact", "gap 1e-3", "gap 5 %", "baselines"
GAPS = {EXACT: 2 * GAP, CLOSE: 2 * GAP}

solve, route, schedule = alltoall.solve, alltoall.route, alltoall.schedule
ALGORITHMS = {
    "link": Algorithm("MCF-original", EXACT, solve, "link:symmetry=false"),
    "decomposed-lp": Algorithm(
        "MCF-decomp as published: master, children, widest paths",
        EXACT,
        _published,
        "decomposed-lp:symmetry=false",
    ),
    "master": Algorithm("its master alone", EXACT, solve, "grouped:symmetry=false"),
    "decomposed": Algorithm("ours, with symmetry", EXACT, solve, "decomposed"),
    "decomposed, gap 1e-3": Algorithm("ours, with paths", CLOSE, solve, "decomposed", {"gap": GAP}),
    "first-order": Algorithm("ours, per source only", CLOSE, solve, "first-order", {"gap": GAP}),
    "first-order, no symmetry": Algorithm(
        "ours, per source only, no symmetry",
        CLOSE,
        solve,
        "first-order:symmetry=false",
        {"gap": GAP},
    ),
    "fptas 0.05": Algorithm(
        "FPTAS, stops as soon as its certificate allows",
        ROUGH,
        route,
        "fptas:epsilon=0.05,layering=none",
    ),
    "fptas 0.05, published stop": Algorithm(
        "FPTAS, published stop", ROUGH, route, "fptas:epsilon=0.05,published=true,layering=none"
    ),
    "ilp-disjoint": Algorithm(
        "ILP-disjoint", BASELINE, route, "ilp-disjoint:layering=none", {"gap": LOOSE}
    ),
    "single": Algorithm("one route per pair, ours", BASELINE, route, "single:layering=none"),
    "sccl": Algorithm("SCCL", BASELINE, schedule, "sccl", {"chunks": 1}),
    "taccl": Algorithm("TACCL", BASELINE, schedule, "taccl", {"chunks": 1}),
    "schedule from routes": Algorithm(
        "schedule from routes, ours", BASELINE, schedule, "list", {"chunks": 1}
    ),
}
"""The timed algorithms: the paper's, ours, and baselines."""


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
    algorithm, limit = ALGORITHMS[point["algorithm"]], point["limit"]
    run = partial(_outcome, algorithm, limit=limit)
    run("genkautz:n=6,d=2")
    begin = time.perf_counter()
    status, answer = run(f"genkautz:n={point['n']},d=4")
    seconds = time.perf_counter() - begin
    gap = None if answer is None else answer.gap
    late = seconds >= limit or (gap or 0.0) > GAPS.get(algorithm.accuracy, math.inf)
    return [
        {"status": LIMIT if status == DONE and late else status, "gap": gap, "seconds": seconds}
    ]


def _outcome(algorithm: Algorithm, spec: str, limit: float) -> tuple[str, Any]:
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
    words = f"the published method ends at N = {largest} here"
    for name in ("decomposed, gap 1e-3", "first-order"):
        for row in where(rows, algorithm=name, status=DONE, n=1000):
            label = ALGORITHMS[name].label
            words += f"; {label} takes {row['seconds']:.1f} s to a gap of {row['gap']:.1e}"
    return Measurement(None, words, "the paper's time is on 1,000 cores, and of another method")


def _master(rows: Sequence[Row]) -> Measurement | None:
    """Return the share of the master in the runtime if the rest is spread over N cores."""
    master, whole = _seconds(rows, "master"), _seconds(rows, "decomposed-lp")
    both = master.keys() & whole.keys()
    if not both:
        return None
    n = max(both)
    share = master[n] / (master[n] + max(whole[n] - master[n], 0.0) / n)
    words = f"{master[n]:.2f} of {whole[n]:.2f} s at N = {n}, {share:.0%} if the rest is spread"
    return Measurement(share, f"{words} over {n} cores")


def _reach(
    rows: Sequence[Row], name: str, reason: str, at: Callable[[int, float], float] | None = None
) -> Measurement | None:
    """Return the largest size that an algorithm ends on, or what `at` says of it."""
    found = where(rows, algorithm=name)
    if not found:
        return None
    limit, reached = max(column(found, "limit")), max(_seconds(found, name), default=0)
    words = f"N = {reached} is the largest within {limit:g} s"
    if where(found, status=MISSING):
        return Measurement(None, words, "z3 is not installed")
    if where(found, status=LIMIT) and limit < PATIENCE.get(name, LIMIT_SECONDS["full"]):
        return Measurement(None, words, "the time limit is too short to tell")
    return Measurement(at(reached, limit) if at else reached, words, reason)


def _fptas(rows: Sequence[Row]) -> Measurement | None:
    names = ("fptas 0.05", "decomposed-lp", "fptas 0.05, published stop")
    certified, children, published = (_seconds(rows, name) for name in names)
    both = certified.keys() & children.keys()
    if not both:
        return None
    n = max(both)
    shares = [certified[m] / children[m] for m in sorted(both)]
    words = f"{certified[n]:.2f} s against {children[n]:.2f} s at N = {n}"
    if n in published:
        words += f", and {published[n]:.2f} s with the published stop"
    reason = (
        f"it takes {min(shares):.2f} to {max(shares):.2f} of the time at N = {min(both)} to {n}; "
        "a likely reason is that it stops as soon as its certificate allows"
    )
    return Measurement(shares[-1], words, reason)


QUANTITIES: dict[str, Quantity] = {
    "decomposition": _decomposition,
    "at-1000": _at_1000,
    "master": _master,
    "sccl": partial(_reach, name="sccl", reason="with one chunk per shard z3 finds schedules"),
    "taccl": partial(
        _reach,
        name="taccl",
        reason="HiGHS solves these programs without a sketch",
        at=lambda n, limit: limit / 60 if n < 32 else 0.0,
    ),
    "ilp": partial(
        _reach, name="ilp-disjoint", reason="HiGHS ends on larger programs than the paper's solver"
    ),
    "fptas": _fptas,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw seconds against N, both by powers, a panel for each accuracy."""
    panels = []
    for accuracy in (EXACT, CLOSE, ROUGH, BASELINE):
        lines = [
            series(found, "n", "seconds", algorithm.label, style=name)
            for name, algorithm in ALGORITHMS.items()
            if algorithm.accuracy == accuracy
            if (found := where(rows, algorithm=name, status=DONE))
        ]
        marks = PAPER.get(accuracy, ())
        panels.append(
            Panel(accuracy, "nodes N", "seconds", lines, marks, x_log=True, y_log=True, scale="all")
        )
    note = (
        "A line ends at its algorithm's limit. Stars and arrows (more than): the paper's machines."
    )
    return Picture("Runtime on generalized Kautz graphs, degree 4", panels, columns=2, note=note)


RUNTIME = Figure.of("runtime", points, measure, QUANTITIES, draw)
