"""A 3D FFT over the torus and the punctured torus: its three bands, by every schedule."""

from collections.abc import Iterator, Sequence

import alltoall
from alltoall.figures.asking import column, each_value, routed, where
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Panel, Picture, Series

FABRICS = {
    "torus": ("torus:3x3x3", 0),
    "torus without 3 links": ("torus:3x3x3", 3),
    "3-cube": ("hypercube:3", 0),
}
"""Topologies, and how many links are removed; the last is for samples."""

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
    """Yield fabrics; all ways of one are measured in turns."""
    side = asked.pick(162, 81, 27)
    kind = EMULATED if asked.testbed and asked.size != "sample" else PREDICTED
    torus, punctured, cube = FABRICS
    for fabric in asked.pick((torus, punctured), (torus, punctured), (cube,)):
        yield {"fabric": fabric, "side": side, "kind": kind}


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Transform over emulated links, or here with the exchange predicted."""
    spec, removed = FABRICS[str(point["fabric"])]
    topology = alltoall.topology(spec)
    if removed:
        topology = alltoall.topology(topology, drop_links=removed, seed=1)
    routes = {name: routed(topology, name, own_bound=True) for name in ROUTES}
    schedule, side = alltoall.schedule(topology), int(str(point["side"]))
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


def _predicted(
    side: int, ways: dict[str, alltoall.Schedule | alltoall.Routes]
) -> list[dict[str, Value]]:
    """Return what the transforms take here, and what each exchange would over the links."""
    ranks = len(ways["schedule"].problem.topology.terminals)
    (here,) = alltoall.fft3d(side, ranks=ranks, iterations=1, warmup=0).rows
    shard = COMPLEX_BYTES * side**3 // ranks**2
    rows: list[dict[str, Value]] = []
    for name, subject in ways.items():
        weights = "equal" if name == "schedule" else "share"
        found = alltoall.simulate(subject, link_bandwidth=10e6 / 8, sizes=shard, weights=weights)
        bands: dict[str, Value] = {"fft2d": here.fft2d_pack, "fft1d": here.unpack_fft1d}
        rows.append({"way": name, "alltoall": found.seconds, **bands})
    return rows


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return the paper's speedups, and ours."""
    findings = []
    for fabric, paper in zip(FABRICS, (0.20, 0.149, 0.20), strict=True):
        found = where(rows, fabric=fabric)
        if not found:
            continue
        total = {row["way"]: row["fft2d"] + row["alltoall"] + row["fft1d"] for row in found}
        saved = {way: 1 - total[way] / total["sssp"] for way in ("extp", "schedule")}
        findings.append(
            Finding(
                f"On the {fabric} a 3D FFT takes up to {paper:.1%} less than by SSSP",
                f"{saved['extp']:.1%} less by MCF-extP, {saved['schedule']:.1%} by the schedule "
                f"({found[0]['kind']})",
                max(saved.values()) > 0.5 * paper,
                "" if max(saved.values()) > 0.5 * paper else "the machine was busy",
            )
        )
    return findings


def draw(rows: Sequence[Row]) -> Picture:
    """Draw stacked bars, a panel for each fabric."""
    panels = []
    for fabric in each_value(rows, "fabric"):
        found = where(rows, fabric=fabric)
        base = [0.0] * len(found)
        bands = []
        for name, label in BANDS.items():
            height = column(found, name)
            places = list(map(float, range(len(found))))
            bands.append(Series(label, places, height, "bars", base=base))
            base = [low + high for low, high in zip(base, height, strict=True)]
        names = [str(row["way"]) for row in found]
        title = f"{fabric}, {found[0]['side']}³ points, {found[0]['kind']}"
        panels.append(Panel(title, "", "seconds", bands, names=names, from_zero=True))
    note = f"A rank on every node, links of {RATE}; medians of the slowest rank."
    return Picture("3D FFT", panels, columns=2, note=note)


FFT = Figure(
    name="fft",
    title="A 3D FFT in its three bands",
    source="figure 6 (fft_time), section 5.2",
    full="6 minutes",
    columns=("fabric", "side", "kind", "way"),
    exact=(),
    timed=("fft2d", "alltoall", "fft1d"),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    alone=True,
)
