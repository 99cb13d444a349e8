"""A 3D FFT over the torus and the punctured torus: its three bands, by every schedule."""

from collections.abc import Iterator, Sequence
from functools import partial

import alltoall
from alltoall.figures.asking import NAMES, column, each_value, routed, where
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture, Series

FABRICS = {
    "torus": ("torus:3x3x3", 0),
    "torus without 3 links": ("torus:3x3x3", 3),
    "3-cube": ("hypercube:3", 0),
}
"""SPECs and numbers of removed links; the last is for samples."""

ROUTES = ("sssp", "single", "extp")
RATE = "10mbit"
COMPLEX_BYTES = 16
BANDS = {
    "fft2d": "2D FFT and pack",
    "alltoall": "all-to-all",
    "fft1d": "unpack and 1D FFT",
}
EMULATED, PREDICTED = "emulated links", "predicted exchange"


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield fabrics; all schedules of one are measured in turns."""
    side = asked.pick(162, 81, 27)
    kind = EMULATED if asked.testbed and asked.size != "sample" else PREDICTED
    torus, punctured, cube = FABRICS
    for fabric in asked.pick((torus, punctured), (torus,), (cube,)):
        yield {"fabric": fabric, "side": side, "kind": kind}


def measure(point: Point, asked: Asked) -> Measured:
    """Transform over emulated links, or here with the exchange predicted."""
    spec, removed = FABRICS[point["fabric"]]
    topology = alltoall.topology(spec)
    if removed:
        topology = alltoall.topology(topology, drop_links=removed, seed=1)
    routes = {name: routed(topology, name, own_bound=True) for name in ROUTES}
    schedule, side = alltoall.schedule(topology), point["side"]
    if point["kind"] == PREDICTED:
        return _predicted(side, {"schedule": schedule, **routes})
    report = alltoall.fft3d(
        side,
        schedule=schedule,
        routes=list(routes.values()),
        rate=RATE,
        iterations=asked.pick(5, 2, 1),
        warmup=1,
    )
    names = {f"routes {number + 1}": name for number, name in enumerate(ROUTES)}
    return [
        {
            "way": names.get(row.way, row.way),
            "fft2d": row.fft2d_pack,
            "alltoall": row.alltoall,
            "fft1d": row.unpack_fft1d,
        }
        for row in report.rows
    ]


def _predicted(side: int, ways: dict[str, alltoall.Schedule | alltoall.Routes]) -> Measured:
    """Time the transforms here and predict each exchange over the links."""
    ranks = len(ways["schedule"].problem.topology.terminals)
    (here,) = alltoall.fft3d(side, ranks=ranks, iterations=1, warmup=0).rows
    shard = COMPLEX_BYTES * side**3 // ranks**2
    rows: Measured = []
    for name, subject in ways.items():
        weights = "equal" if name == "schedule" else "share"
        found = alltoall.simulate(subject, link_bandwidth=10e6 / 8, bytes=shard, weights=weights)
        bands = {"fft2d": here.fft2d_pack, "fft1d": here.unpack_fft1d}
        rows.append({"way": name, "alltoall": found.seconds, **bands})
    return rows


def _saved(rows: Sequence[Row], fabric: str) -> Measurement | None:
    """Return the time that MCF-extP saves in a transform, as a share."""
    kinds = each_value(where(rows, fabric=fabric), "kind")
    if not kinds:
        return None
    kind = EMULATED if EMULATED in kinds else PREDICTED
    total = {
        row["way"]: row["fft2d"] + row["alltoall"] + row["fft1d"]
        for row in where(rows, fabric=fabric, kind=kind)
    }
    saved = {way: 1 - total[way] / total["sssp"] for way in ("extp", "schedule")}
    words = f"{saved['extp']:.1%} less by MCF-extP, {saved['schedule']:.1%} by a schedule ({kind})"
    if kind != EMULATED:
        return Measurement(None, words, "the exchange is only predicted")
    return Measurement(
        saved["extp"],
        words,
        "computing takes a tenth of the time here, so the exchange weighs more",
    )


QUANTITIES: dict[str, Quantity] = {
    "torus": partial(_saved, fabric="torus"),
    "punctured": partial(_saved, fabric="torus without 3 links"),
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw stacked bars, a panel for each fabric."""
    panels = []
    for fabric, kind in dict.fromkeys((row["fabric"], row["kind"]) for row in rows):
        found = where(rows, fabric=fabric, kind=kind)
        base = [0.0] * len(found)
        bands = []
        for name, label in BANDS.items():
            height = column(found, name)
            places = list(map(float, range(len(found))))
            bands.append(Series(label, places, height, "bars", base=base))
            base = [low + high for low, high in zip(base, height, strict=True)]
        names = [NAMES.get(way, way) for way in map(str, each_value(found, "way"))]
        title = f"{fabric}, {found[0]['side']}³ points, {kind}"
        panels.append(Panel(title, "", "seconds", bands, names=names, scale=kind))
    note = f"A rank on every node, links of {RATE}; medians of the slowest rank."
    return Picture("3D FFT", panels, columns=2, note=note)


FFT = Figure.of("fft", points, measure, QUANTITIES, draw)
