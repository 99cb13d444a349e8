"""A generalized Kautz graph of 81 nodes and degree 8 with links disabled at random."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import alltoall
from alltoall.figures.asking import certified_bound, enveloped, routed, worst_ratio
from alltoall.figures.figure import Asked, Figure, Point, Quantity, Row, Value
from alltoall.figures.picture import Panel, Picture

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


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Route on the remaining links and compare with the certified bound."""
    topology = alltoall.topology(f"genkautz:n={point['n']},d=8")
    disabled = int(str(point["disabled"]))
    if disabled:
        topology = alltoall.topology(topology, drop_links=disabled, seed=int(str(point["seed"])))
    method, limit = str(point["method"]), float(str(point["limit"]))
    asking: dict[str, Any] = {"gap": TOLERANCE} if method == "ilp-disjoint" else {}
    routes = routed(topology, method, time_limit=limit, **asking)
    bound = certified_bound(topology, gap=1e-4)
    return [{"time": routes.time, "bound": bound, "ratio": routes.time / bound}]


LIMITED = "it was at its time limit"


QUANTITIES: dict[str, Quantity] = {
    "extp": partial(worst_ratio, method="extp", reason=LIMITED),
    "pmcf": partial(
        worst_ratio, method="pmcf", reason="it has only link-disjoint paths to choose from"
    ),
    "sssp": partial(worst_ratio, method="sssp"),
    "ilp": partial(worst_ratio, method="ilp-disjoint", reason=LIMITED),
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a line for each method, with the spread over seeds."""
    lines = enveloped(rows, "method", "disabled", "ratio")
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
    quantities=QUANTITIES,
    draw=draw,
)
