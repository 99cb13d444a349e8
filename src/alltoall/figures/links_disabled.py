"""A generalized Kautz graph of 81 nodes and degree 8 with links disabled at random."""

from collections.abc import Iterator, Sequence
from typing import Any

import alltoall
from alltoall.figures.asking import (
    certified_bound,
    column,
    each_value,
    envelope,
    known_methods,
    routed,
    where,
)
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Panel, Picture, Series

NAMES = ("extp", "pmcf", "single", "ilp-disjoint", "sssp", "ewsp")
TOLERANCE = 0.1
"""What the paper allows ILP-disjoint."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield how many links are disabled, the seed of it, and the methods."""
    nodes = asked.pick(81, 40, 20)
    counts = asked.pick((0, 20, 40, 60, 80, 100), (0, 20, 40), (0, 10))
    limit = asked.pick(60.0, 4.0, 2.0)
    for disabled in counts:
        for seed in range(1, 1 + (asked.pick(3, 1, 1) if disabled else 1)):
            for method in known_methods(NAMES):
                yield {
                    "n": nodes,
                    "disabled": disabled,
                    "seed": seed,
                    "method": method,
                    "limit": limit,
                }


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Route on what is left, and hold the largest link load against the certified bound."""
    topology = alltoall.topology(f"genkautz:n={point['n']},d=8")
    disabled = int(str(point["disabled"]))
    if disabled:
        topology = alltoall.topology(topology, drop_links=disabled, seed=int(str(point["seed"])))
    method, limit = str(point["method"]), float(str(point["limit"]))
    asking: dict[str, Any] = {"gap": TOLERANCE} if method == "ilp-disjoint" else {}
    routes = routed(topology, method, time_limit=limit, **asking)
    bound = certified_bound(topology, gap=1e-4)
    return [{"time": routes.time, "bound": bound, "ratio": routes.time / bound}]


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    worst = {name: max(column(where(rows, method=name), "ratio")) for name in _methods(rows)}
    nodes = rows[0]["n"]
    return [
        Finding(
            "MCF schemes are optimal or near-optimal with links disabled",
            f"at N = {nodes} MCF-extP at most {worst['extp']:.4f}, pMCF {worst['pmcf']:.3f} times "
            "the bound",
            worst["extp"] < 1.01 and worst["pmcf"] < 1.1,
            _why_not(worst["extp"], worst["pmcf"]),
        ),
        Finding(
            "SSSP is clearly worse",
            f"at N = {nodes} up to {worst['sssp']:.2f} times",
            worst["sssp"] > 1.15,
        ),
        Finding(
            "ILP-disjoint is close to the optimum within a tolerance of 0.1",
            f"at N = {nodes} at most {worst['ilp-disjoint']:.3f} times",
            worst["ilp-disjoint"] < 1.15,
            "" if worst["ilp-disjoint"] < 1.15 else "the integer program was at its time limit",
        ),
    ]


def _why_not(extp: float, pmcf: float) -> str:
    """Return what keeps the MCF schemes from the bound: time, or the paths to choose from."""
    if extp >= 1.01:
        return "MCF-extP was at its time limit"
    return "" if pmcf < 1.1 else "pMCF has only link-disjoint paths to choose from"


def _methods(rows: Sequence[Row]) -> list[str]:
    return each_value(rows, "method")


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method, with the spread over seeds."""
    lines = []
    for method in _methods(rows):
        x, mean, low, high = envelope(where(rows, method=method), "disabled", "ratio")
        lines.append(Series(method, x, mean, low=low, high=high))
    panel = Panel("", "links disabled", "all-to-all time / certified bound", lines)
    nodes = rows[0]["n"]
    return Picture(f"Generalized Kautz graph, n={nodes}, d=8, links disabled", [panel])


LINKS_DISABLED = Figure(
    name="links-disabled",
    title="genkautz n=81 d=8 with links disabled",
    source="figure 9 (topo_link_disable), section 5.3",
    full="15 minutes",
    columns=("n", "disabled", "seed", "method", "limit"),
    exact=("time", "bound", "ratio"),
    timed=(),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
)
