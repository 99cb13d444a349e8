"""Every routing method on generalized Kautz graphs of degree 4, over the certified optimum."""

from collections.abc import Iterator, Sequence
from functools import partial

from alltoall.figures.asking import (
    certified_bound,
    column,
    ratio_panels,
    routed,
    where,
    worst_ratio,
)
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Picture

NAMES = ("extp", "pmcf", "pmcf shortest", "single", "ilp-disjoint", "sssp", "ewsp")
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
    "extp": partial(worst_ratio, method="extp", reason="it was at its time limit"),
    "pmcf": partial(worst_ratio, method="pmcf", reason="small graphs have few disjoint paths"),
    "pmcf-shortest": partial(worst_ratio, method="pmcf shortest"),
    "sssp": partial(worst_ratio, method="sssp"),
    "ewsp": _ewsp_beside_sssp,
    "bound": _least,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method."""
    panels = ratio_panels(rows, "n", "nodes N")
    title = "Routing methods on generalized Kautz graphs, degree 4"
    return Picture(title, panels, columns=2)


METHODS = Figure.of("methods", points, measure, QUANTITIES, draw)
