"""Routed schedules: every method on the paper's fabrics, by fluid simulation and measured."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import alltoall
from alltoall.figures.asking import certified_bound, known_methods, routed, within_limit
from alltoall.figures.fabrics import (
    LATENCY,
    LINK_RATE,
    MEASURED,
    PREDICTED,
    SMALL,
    TORUS,
    WHOLE_RUN,
    Fabric,
    emulated_sizes,
    emulated_times,
    near_bound,
    panels_by_size,
    shard_sizes,
)
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Picture

FABRICS = SMALL | TORUS
TORUS_NAME = "3x3x3 torus"
NAMES = (
    *("extp", "pmcf", "single", "ilp-disjoint", "ilp-shortest"),
    *("sssp", "ewsp", "dor", "native"),
)
UNPACED = "extp, not paced"
"""Our routes where every flow has the same share of a link, for want of rate control."""

GIGA = 1e9
NEAR_BOUND = "MCF-extP comes near the upper bound at large sizes, measured"


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield all methods on all fabrics; then what is measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    names = [*known_methods(NAMES), UNPACED]
    yield from ({"fabric": f, "way": way, "kind": PREDICTED} for f in fabrics for way in names)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4"], ["K4,4"])
        ways = asked.pick(names[:-1], ["extp", "sssp"], ["extp"])
        yield from ({"fabric": f, "way": way, "kind": MEASURED} for f in emulated for way in ways)


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Route, then simulate or run; a row for each size, one without numbers if nothing fits."""
    name, way = str(point["fabric"]), str(point["way"])
    method, limit = way.partition(",")[0], asked.pick(60.0, 15.0, 2.0)
    routes = _routes(name, method, limit)
    if routes is None:
        return [{"bytes": 0}]
    bound = certified_bound(FABRICS[name].spec)
    shared: dict[str, Value] = {"ratio": routes.time / bound}
    if point["kind"] == MEASURED:
        return [{**shared, **row} for row in _emulated(FABRICS[name], name, routes, asked)]
    found = alltoall.simulate(
        routes,
        link_bandwidth=LINK_RATE,
        sizes=shard_sizes(asked),
        latency=LATENCY,
        weights="equal" if way == UNPACED else "share",
    )
    return [
        {
            **shared,
            "bytes": row.bytes,
            "bound": row.bound_throughput / GIGA,
            "predicted": row.throughput / GIGA,
        }
        for row in found.rows
    ]


@cache
def _routes(name: str, method: str, limit: float) -> alltoall.Routes | None:
    """Return the routes of a method, found once for what is predicted and what is measured."""
    topology = FABRICS[name].topology()
    return within_limit(lambda: routed(topology, method, own_bound=True, time_limit=limit))


def _emulated(
    fabric: Fabric, name: str, routes: alltoall.Routes, asked: Asked
) -> list[dict[str, Value]]:
    report: Any = alltoall.run(
        routes,
        on="testbed",
        sizes=emulated_sizes(asked, name)[-2:],
        iterations=emulated_times(asked, name),
        timeout=WHOLE_RUN,
        rate=fabric.rate,
    )
    return [
        {
            "bytes": row.bytes,
            "bound": row.bound_throughput / GIGA,
            "measured": row.throughput / GIGA,
        }
        for row in report.rows
    ]


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    ratios = {(row["fabric"], row["way"]): row["ratio"] for row in rows if row["ratio"]}
    findings = [
        _optimal(ratios),
        near_bound(rows, "extp", MEASURED, NEAR_BOUND, 0.9),
        _faster(ratios, "K4,4", "ilp-disjoint", 1.05),
    ]
    if (TORUS_NAME, "extp") not in ratios:
        return findings
    strong = [ratios[TORUS_NAME, way] for way in ("dor", "ilp-disjoint")]
    return [
        *findings,
        Finding(
            "DOR and ILP-disjoint are optimal on the torus",
            f"{strong[0]:.3f} and {strong[1]:.3f} times the bound",
            max(strong) < 1.001,
            "" if max(strong) < 1.001 else "the integer program was at its time limit",
        ),
        _faster(ratios, TORUS_NAME, "sssp", 1.5, "SSSP is more than 50 % worse on the torus"),
        _faster(ratios, "K4,4", "native", 2.3, "Native routes are up to 2.3 times slower on K4,4"),
        _faster(ratios, TORUS_NAME, "native", 1.55, "Native routes are 55 % slower on the torus"),
    ]


def _optimal(ratios: dict[tuple[str, str], float]) -> Finding:
    ours = {fabric: ratio for (fabric, way), ratio in ratios.items() if way == "extp"}
    words = ", ".join(f"{name} {ratio:.4f}" for name, ratio in ours.items())
    claim = "MCF-extP is bandwidth-optimal on all four topologies"
    return Finding(claim, f"times the bound: {words}", max(ours.values()) < 1.001)


def _faster(
    ratios: dict[tuple[str, str], float], fabric: str, way: str, least: float, claim: str = ""
) -> Finding:
    """Say by how much our routes beat others; four fifths of what the paper measured is enough."""
    claim = claim or f"MCF-extP outperforms {way} on {fabric}"
    found = ratios[fabric, way] / ratios[fabric, "extp"]
    enough = 1 + 0.8 * (least - 1)
    reason = "" if found >= enough else "by loads of links alone; the paper's fabric lost more"
    return Finding(claim, f"{found:.2f} times as slow as MCF-extP", found >= enough, reason)


def draw(rows: Sequence[Row]) -> Picture:
    """Draw predictions in the upper row, measurements in the lower one."""
    note = (
        f"Predicted: max-min fair fluid, links of {LINK_RATE}, each route paced at its weight "
        "unless said otherwise. Measured: a TCP flow for each route over emulated links."
    )
    panels = panels_by_size(rows, "upper bound", lambda _kind, _row: "")
    return Picture("Routed schedules", panels, columns=4, note=note, beside=True)


ROUTED_SCHEDULES = Figure(
    name="routed-schedules",
    title="Routed schedules by every method",
    source="figure 4 (routebased), section 5.2",
    full="30 minutes",
    columns=("fabric", "way", "kind", "bytes"),
    exact=("ratio", "bound", "predicted"),
    timed=("measured",),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    alone=True,
)
