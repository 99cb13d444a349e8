"""Every routing method on generalized Kautz graphs of degree 4, over the certified optimum."""

from collections.abc import Iterator, Sequence

from alltoall.figures.asking import (
    by_x,
    certified_bound,
    each_value,
    known_methods,
    largest,
    routed,
    where,
)
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Panel, Picture, Series

NAMES = ("extp", "pmcf", "pmcf shortest", "single", "ilp-disjoint", "sssp", "ewsp")
SHOWN = {
    "extp": "MCF-extP",
    "pmcf": "pMCF, disjoint paths",
    "pmcf shortest": "pMCF, shortest paths",
}
ILP_NODES = 44
"""Up to where the paper has ILP-disjoint."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield sizes and methods; the integer program up to the size where the paper has it."""
    sizes = asked.pick((8, 12, 16, 24, 32, 44, 64, 81, 100, 150, 200), (8, 16, 32, 44, 64), (8, 12))
    limit = asked.pick(60.0, 5.0, 2.0)
    for n in sizes:
        for method in known_methods(NAMES):
            if method != "ilp-disjoint" or n <= ILP_NODES:
                yield {"n": n, "method": method, "limit": limit}


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Route, and hold the largest link load against the certified bound."""
    problem = f"genkautz:n={point['n']},d=4"
    routes = routed(problem, str(point["method"]), time_limit=float(str(point["limit"])))
    bound = certified_bound(problem)
    return [{"time": routes.time, "bound": bound, "ratio": routes.time / bound}]


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    worst = {
        name: largest(where(rows, method=name), "ratio") for name in each_value(rows, "method")
    }
    least = min(row["ratio"] for row in rows)
    return [
        Finding(
            "Link-based MCF with extracted paths is optimal",
            f"at most {worst['extp']:.4f} times the certified bound",
            worst["extp"] < 1.001,
            "" if worst["extp"] < 1.001 else "it was at its time limit",
        ),
        Finding(
            "pMCF over link-disjoint paths almost matches the optimum",
            f"at most {worst['pmcf']:.3f} times",
            worst["pmcf"] < 1.1,
            "" if worst["pmcf"] < 1.1 else "on small graphs few disjoint paths are left to choose",
        ),
        Finding(
            "pMCF over shortest paths is suboptimal on expanders",
            f"up to {worst['pmcf shortest']:.3f} times",
            worst["pmcf shortest"] > 1.01,
        ),
        Finding(
            "SSSP is up to 1.6 times worse than the optimum",
            f"up to {worst['sssp']:.2f} times",
            1.2 < worst["sssp"] < 2.0,
        ),
        Finding(
            "Equal weights on all shortest paths do about as badly as SSSP",
            f"up to {worst['ewsp']:.2f} times, SSSP {worst['sssp']:.2f}",
            abs(worst["ewsp"] / worst["sssp"] - 1) < 0.25,
        ),
        Finding(
            "Nothing is below the certified bound",
            f"the least ratio is {least:.6f}",
            least > 1 - 1e-6,
        ),
    ]


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method."""
    lines = []
    for name in each_value(rows, "method"):
        x, y = by_x(where(rows, method=name), "n", "ratio")
        lines.append(Series(SHOWN.get(name, name), x, y, style=name))
    panel = Panel("", "nodes N", "all-to-all time / certified bound", lines)
    return Picture("Routing methods on generalized Kautz graphs, degree 4", [panel])


METHODS = Figure(
    name="methods",
    title="All methods on generalized Kautz graphs, normalised by the optimum",
    source="figure 8 (compare_algos), section 5.3",
    full="10 minutes",
    columns=("n", "method", "limit"),
    exact=("time", "bound", "ratio"),
    timed=(),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
)
