"""Virtual layers needed by routes, and the throughput of few layers."""

from collections.abc import Iterator, Sequence

import alltoall
from alltoall.figures.asking import (
    NAMES,
    ONE_ROUTE,
    certified_bound,
    column,
    each_value,
    routed,
    where,
)
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture, Series

SPECS = {
    "K4,4": "bipartite:4x4",
    "3-cube": "hypercube:3",
    "twisted": "twisted-hypercube:3",
    "torus 3³": "torus:3x3x3",
    "torus 4²": "torus:4x4",
    "Kautz 16": "genkautz:n=16,d=4",
    "Kautz 32": "genkautz:n=32,d=4",
    "Jellyfish 32": "jellyfish:n=32,d=4,seed=1",
    "Dragonfly": "dragonfly:a=4,h=2",
    "Kautz 64": "genkautz:n=64,d=4",
    "Kautz 100": "genkautz:n=100,d=4",
}
METHODS = ("extp", "pmcf", "single", "sssp", "ewsp", "ilp-disjoint")
NEEDED, FREE = "layers needed", "deadlock-free"
PAPER = 4
"""Layers that suffice in the paper."""

LARGE = ("Kautz 64", "Kautz 100")
"""Fabrics on which the integer program ends at its time limit, without layers."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield methods on topologies, then numbers of layers."""
    fabrics = list(SPECS)[: asked.pick(len(SPECS), 8, 2)]
    for fabric in fabrics:
        for method in METHODS:
            if method != "ilp-disjoint" or fabric not in LARGE:
                yield {"kind": NEEDED, "fabric": fabric, "method": method}
    for fabric in asked.pick(fabrics[3:10], fabrics[3:7], fabrics[1:2]):
        for most in (1, 2, 3, 4)[: asked.pick(4, 3, 1)]:
            yield {"kind": FREE, "fabric": fabric, "method": f"{most} layers"}


def measure(point: Point, asked: Asked) -> Measured:
    """Count the layers of a method's routes, or find the best routes within a number."""
    spec, method = SPECS[point["fabric"]], point["method"]
    limit = asked.pick(40.0, 4.0, 2.0)
    if point["kind"] == NEEDED:
        routes = routed(spec, method, layering="lash-sequential", time_limit=limit)
    else:
        most = int(method.split(maxsplit=1)[0])
        routes = alltoall.route(spec, f"deadlock-free:layers={most}", time_limit=limit)
    bound = certified_bound(spec)
    return [{"layers": routes.layers, "ratio": routes.time / bound}]


def _most_layers(rows: Sequence[Row]) -> Measurement:
    # Routes cut short by a time limit have no layers.
    needed = [row for row in where(rows, kind=NEEDED) if row["layers"] is not None]
    most = max(needed, key=lambda row: row["layers"])
    over = [
        name for name in SPECS if any(row["layers"] > PAPER for row in where(needed, fabric=name))
    ]
    words = f"at most {most['layers']}, for {most['method']} on {most['fabric']}"
    return Measurement(
        most["layers"], words, f"more than {PAPER} are needed on {', '.join(over)} alone"
    )


def _deadlock_free(rows: Sequence[Row]) -> Measurement | None:
    few = [row for row in where(rows, kind=FREE) if (row["layers"] or 9) <= 2]
    least = {
        name: min(column(where(few, fabric=name), "ratio")) for name in each_value(few, "fabric")
    }
    words = ", ".join(f"{name} {ratio:.3f}" for name, ratio in least.items())
    reason = "the paper has no number for it"
    return Measurement(None, f"with at most 2 layers, times the bound: {words}", reason)


QUANTITIES: dict[str, Quantity] = {
    "layers": _most_layers,
    "deadlock-free": _deadlock_free,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw bars of layers, for methods with several routes and with one, and of times."""
    needed, free = where(rows, kind=NEEDED), where(rows, kind=FREE)
    panels = [
        Panel(
            title,
            "",
            "virtual layers",
            _bars(found, "layers"),
            scale=NEEDED,
            names=each_value(needed, "fabric"),
        )
        for title, one in (("several routes per pair", False), ("one route per pair", True))
        if (found := [row for row in needed if (row["method"] in ONE_ROUTE) == one])
    ]
    if free:
        y = "time / unrestricted bound"
        bars = _bars(free, "ratio")
        panels.append(
            Panel("best routes for L layers", "", y, bars, names=each_value(free, "fabric"))
        )
    return Picture("Deadlock freedom", panels)


def _bars(rows: Sequence[Row], value: str) -> list[Series]:
    """Return bars for each method, over the fabrics."""
    names = each_value(rows, "fabric")
    bars = []
    for method in each_value(rows, "method"):
        own = [row for row in where(rows, method=method) if row[value] is not None]
        places = [float(names.index(row["fabric"])) for row in own]
        label = NAMES.get(method, method.replace("1 layers", "1 layer"))
        bars.append(Series(label, places, column(own, value), "bars", style=method))
    return bars


LAYERS = Figure.of("layers", points, measure, QUANTITIES, draw)
