"""A generalized Kautz graph of 81 nodes and degree 8 with links disabled at random."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import alltoall
from alltoall.figures.asking import certified_bound, ratio_panels, routed, worst_ratio
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Picture

NAMES = ("extp", "pmcf", "single", "ilp-disjoint", "sssp", "ewsp")
TOLERANCE = 0.1
"""The gap that the paper allows ILP-disjoint."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield numbers of disabled links, seeds and methods."""
    nodes = asked.pick(81, 40, 20)
    counts = asked.pick((0, 20, 40, 60, 80, 100), (0, 20, 40), (0, 10))
    limit = asked.pick(60.0, 4.0, 2.0)
    for disabled in counts:
        for seed in range(1, 1 + (asked.pick(3, 1, 1) if disabled else 1)):
            point = {"n": nodes, "disabled": disabled, "seed": seed, "limit": limit}
            yield from (point | {"method": method} for method in NAMES)


def measure(point: Point, asked: Asked) -> Measured:
    """Route on the remaining links and compare with the certified bound."""
    topology = alltoall.topology(f"genkautz:n={point['n']},d=8")
    if point["disabled"]:
        topology = alltoall.topology(topology, drop_links=point["disabled"], seed=point["seed"])
    asking: dict[str, Any] = {"gap": TOLERANCE} if point["method"] == "ilp-disjoint" else {}
    routes = routed(topology, point["method"], time_limit=point["limit"], **asking)
    bound = certified_bound(topology, gap=1e-4)
    return [{"time": routes.time, "bound": bound, "ratio": routes.time / bound}]


def _disabled(rows: Sequence[Row], method: str, reason: str = "") -> Measurement | None:
    """Return the largest ratio of a method where links are disabled."""
    return worst_ratio([row for row in rows if row["disabled"]], method, reason)


LIMITED = "it was at its time limit"


QUANTITIES: dict[str, Quantity] = {
    "extp": partial(_disabled, method="extp", reason=LIMITED),
    "pmcf": partial(
        _disabled, method="pmcf", reason="it has only link-disjoint paths to choose from"
    ),
    "sssp": partial(_disabled, method="sssp"),
    "ilp": partial(_disabled, method="ilp-disjoint", reason=LIMITED),
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method, with the spread over seeds."""
    panels = ratio_panels(rows, "disabled", "links disabled")
    title = f"Generalized Kautz graph, n={rows[0]['n']}, d=8, links disabled"
    return Picture(title, panels, columns=2)


LINKS_DISABLED = Figure.of("links-disabled", points, measure, QUANTITIES, draw)
