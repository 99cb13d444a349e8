"""Every routing method on generalized Kautz graphs of degree 4, over the certified optimum."""

from collections.abc import Iterator, Sequence

from alltoall.figures.asking import certified_bound, column, lines_by, routed, where, worst_ratio
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture

NAMES = ("extp", "pmcf", "pmcf shortest", "single", "ilp-disjoint", "sssp", "ewsp")
SHOWN = {
    "extp": "MCF-extP",
    "pmcf": "pMCF, disjoint paths",
    "pmcf shortest": "pMCF, shortest paths",
}
ILP_NODES = 44
"""Largest size of ILP-disjoint in the paper."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield sizes and methods, the integer program up to its size in the paper."""
    sizes = asked.pick((8, 12, 16, 24, 32, 44, 64, 81, 100, 150, 200), (8, 16, 32, 44, 64), (8, 12))
    limit = asked.pick(60.0, 5.0, 2.0)
    for n in sizes:
        for method in NAMES:
            if method != "ilp-disjoint" or n <= ILP_NODES:
                yield {"n": n, "method": method, "limit": limit}


def measure(point: Point, asked: Asked) -> Measured:
    """Route and compare with the certified bound."""
    problem = f"genkautz:n={point['n']},d=4"
    routes = routed(problem, point["method"], time_limit=point["limit"])
    bound = certified_bound(problem)
    return [{"time": routes.time, "bound": bound, "ratio": routes.time / bound}]


def _ewsp_beside_sssp(rows: Sequence[Row]) -> Measurement:
    ewsp, sssp = (max(column(where(rows, method=name), "ratio")) for name in ("ewsp", "sssp"))
    return Measurement(ewsp / sssp, f"up to {ewsp:.2f} times the bound, SSSP {sssp:.2f}")


def _least(rows: Sequence[Row]) -> Measurement:
    least = min(column(rows, "ratio"))
    return Measurement(least, f"the least ratio is {least:.6f}")


QUANTITIES: dict[str, Quantity] = {
    "extp": worst_ratio("extp", "it was at its time limit"),
    "pmcf": worst_ratio("pmcf", "small graphs have few disjoint paths"),
    "pmcf-shortest": worst_ratio("pmcf shortest"),
    "sssp": worst_ratio("sssp"),
    "ewsp": _ewsp_beside_sssp,
    "bound": _least,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method."""
    lines = lines_by(rows, "method", "n", "ratio", SHOWN)
    panel = Panel("", "nodes N", "all-to-all time / certified bound", lines)
    return Picture("Routing methods on generalized Kautz graphs, degree 4", [panel])


METHODS = Figure.of("methods", points, measure, QUANTITIES, draw)
