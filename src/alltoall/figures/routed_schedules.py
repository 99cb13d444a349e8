"""Routed schedules: every method on the paper's fabrics, by fluid simulation and measured."""

from collections.abc import Iterator, Sequence
from functools import cache, partial

import alltoall
from alltoall.figures.asking import certified_bound, column, routed, where, within_limit
from alltoall.figures.fabrics import (
    LATENCY,
    LINK_RATE,
    MEASURED,
    PREDICTED,
    SMALL,
    TORUS,
    Fabric,
    emulated_sizes,
    emulated_times,
    panels_by_size,
    rates,
    run_emulated,
    shard_sizes,
    share_of_bound,
)
from alltoall.figures.figure import Asked, Figure, Measurement, Point, Quantity, Row, Value
from alltoall.figures.picture import Picture

FABRICS = SMALL | TORUS
TORUS_NAME = "3x3x3 torus"
NAMES = (
    *("extp", "pmcf", "single", "ilp-disjoint", "ilp-shortest"),
    *("sssp", "ewsp", "dor", "native"),
)
UNPACED = "extp, not paced"
"""Our routes without rate control: every flow has the same share of a link."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield all methods on all fabrics, predicted and then measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    names = [*NAMES, UNPACED]
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
    return [{**shared, **rates(row, PREDICTED)} for row in found.rows]


@cache
def _routes(name: str, method: str, limit: float) -> alltoall.Routes | None:
    """Return the routes of a method, found once for both kinds."""
    topology = FABRICS[name].topology()
    return within_limit(lambda: routed(topology, method, own_bound=True, time_limit=limit))


def _emulated(
    fabric: Fabric, name: str, routes: alltoall.Routes, asked: Asked
) -> list[dict[str, Value]]:
    sizes, iterations = emulated_sizes(asked, name)[-2:], emulated_times(asked, name)
    report = run_emulated(routes, fabric, sizes, iterations)
    return [rates(row, MEASURED) for row in report.rows]


def _times(rows: Sequence[Row]) -> dict[tuple[str, str], float]:
    """Return all-to-all times over the certified bound, by fabric and method."""
    return {(row["fabric"], row["way"]): row["ratio"] for row in rows if row["ratio"]}


def _ours_over_bound(rows: Sequence[Row]) -> Measurement:
    ours = {fabric: ratio for (fabric, way), ratio in _times(rows).items() if way == "extp"}
    words = ", ".join(f"{name} {ratio:.4f}" for name, ratio in ours.items())
    return Measurement(max(ours.values()), f"times the bound: {words}")


def _over_ours(rows: Sequence[Row], fabric: str, way: str) -> Measurement | None:
    times = _times(rows)
    if (fabric, way) not in times:
        return None
    ratio = times[fabric, way] / times[fabric, "extp"]
    return Measurement(ratio, f"{ratio:.2f} times the time of MCF-extP")


def _native(rows: Sequence[Row], fabric: str) -> Measurement | None:
    found = _over_ours(rows, fabric, "native")
    reason = "the paper's libraries use their fabric's own routes, which are not published"
    return found and Measurement(None, f"lowest-numbered shortest paths take {found.words}", reason)


def _strong_on_torus(rows: Sequence[Row]) -> Measurement | None:
    times = _times(rows)
    if (TORUS_NAME, "dor") not in times:
        return None
    dor, ilp = (times[TORUS_NAME, way] for way in ("dor", "ilp-disjoint"))
    words = f"{dor:.3f} and {ilp:.3f} times the bound"
    return Measurement(max(dor, ilp), words, "the integer program was at its time limit")


def _sssp_on_torus(rows: Sequence[Row]) -> Measurement | None:
    """Return measured throughputs at the largest size; link loads are another quantity."""
    found = {
        way: column(where(rows, fabric=TORUS_NAME, way=way, kind=MEASURED), MEASURED)
        for way in ("extp", "sssp")
    }
    if not all(found.values()):
        return Measurement(None, "no emulated torus", "measured in full size, as root on Linux")
    ratio = found["extp"][-1] / found["sssp"][-1]
    return Measurement(ratio, f"MCF-extP has {ratio:.2f} times the throughput on emulated links")


QUANTITIES: dict[str, Quantity] = {
    "optimal": _ours_over_bound,
    "measured": partial(share_of_bound, way="extp", kind=MEASURED),
    "ilp-k44": partial(_over_ours, fabric="K4,4", way="ilp-disjoint"),
    "torus-optimal": _strong_on_torus,
    "sssp-torus": _sssp_on_torus,
    "native-k44": partial(_native, fabric="K4,4"),
    "native-torus": partial(_native, fabric=TORUS_NAME),
}


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
    quantities=QUANTITIES,
    draw=draw,
    alone=True,
)
