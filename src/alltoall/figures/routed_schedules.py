"""Routed schedules: every method on the paper's fabrics, by fluid simulation and measured."""

from collections.abc import Iterator, Sequence
from functools import cache, partial

import alltoall
from alltoall.figures.asking import certified_bound, column, routed, where, within_limit
from alltoall.figures.fabrics import (
    GIGA,
    LATENCY,
    LINK_RATE,
    MEASURED,
    PREDICTED,
    SMALL,
    TORUS,
    emulated_sizes,
    emulated_times,
    panels_by_size,
    rates,
    run_emulated,
    shard_sizes,
    share_of_bound,
)
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Picture

FABRICS = SMALL | TORUS
TORUS_NAME = "3x3x3 torus"
NAMES = (
    *("extp raw", "extp", "pmcf", "single", "ilp-disjoint", "ilp-shortest"),
    *("sssp", "ewsp", "dor", "ecmp", "updown"),
)
UNPACED = ", not paced"
"""Suffix of algorithms without rate control: flows share links equally."""

LIBRARY = "library"
"""The MPI library's own all-to-all over a fabric that forwards by ECMP."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield all methods on all fabrics, predicted and then measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    names = [*NAMES, *(name + UNPACED for name in ("extp raw", "extp"))]
    yield from ({"fabric": f, "way": way, "kind": PREDICTED} for f in fabrics for way in names)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4"], ["K4,4"])
        ways = asked.pick([*NAMES, LIBRARY], ["extp", "sssp", LIBRARY], ["extp"])
        yield from ({"fabric": f, "way": way, "kind": MEASURED} for f in emulated for way in ways)


def measure(point: Point, asked: Asked) -> Measured:
    """Route, then simulate or run; return a row for each size, or one without numbers."""
    name, way = point["fabric"], point["way"]
    limit = asked.pick(60.0, 15.0, 2.0)
    method = "ecmp" if way == LIBRARY else way.removesuffix(UNPACED)
    routes = _routes(name, method, limit)
    if routes is None:
        return [{"bytes": 0}]
    bound = certified_bound(FABRICS[name].spec)
    shared = {"ratio": routes.time / bound}
    if point["kind"] == MEASURED:
        return [{**shared, **row} for row in _emulated(name, way, routes, asked)]
    found = alltoall.simulate(
        routes,
        link_bandwidth=LINK_RATE,
        bytes=shard_sizes(asked),
        latency=LATENCY,
        weights="equal" if way.endswith(UNPACED) else "share",
    )
    return [{**shared, **rates(row, PREDICTED)} for row in found.rows]


@cache
def _routes(name: str, method: str, limit: float) -> alltoall.Routes | None:
    """Return the cached routes of a method."""
    topology = FABRICS[name].topology()
    return within_limit(lambda: routed(topology, method, own_bound=True, time_limit=limit))


def _emulated(name: str, way: str, routes: alltoall.Routes, asked: Asked) -> Measured:
    sizes, iterations = emulated_sizes(asked, name)[-2:], emulated_times(asked, name)
    # The library's own all-to-all is timed beside a schedule.
    subject = alltoall.schedule(routes.problem, "list", chunks=1) if way == LIBRARY else routes
    report = run_emulated(subject, FABRICS[name], sizes, iterations, native=way == LIBRARY)
    if way != LIBRARY:
        return [rates(row, MEASURED) for row in report.rows]
    return [{**rates(row, MEASURED), MEASURED: row.native_throughput / GIGA} for row in report.rows]


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
    """Return the MPI stand-in for NCCL and oneCCL."""
    found = {
        way: column(where(rows, fabric=fabric, way=way, kind=MEASURED), MEASURED)
        for way in ("extp", LIBRARY)
    }
    reason = "the paper's libraries are NCCL and oneCCL on their own fabrics"
    if not all(found.values()):
        return Measurement(None, "no emulated links here", reason)
    ratio = found["extp"][-1] / found[LIBRARY][-1]
    words = f"an MPI library over ECMP takes {ratio:.2f} times the time of MCF-extP"
    return Measurement(None, words, reason)


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


ROUTED_SCHEDULES = Figure.of("routed-schedules", points, measure, QUANTITIES, draw)
