"""Routed schedules: every method on the paper's fabrics, by fluid simulation and measured."""

from collections.abc import Iterator, Sequence
from functools import cache, partial
from typing import Any

import alltoall
from alltoall.figures.asking import certified_bound, each_value, routed, where, within_limit
from alltoall.figures.fabrics import (
    GIGA,
    HOSTED,
    LATENCY,
    LINK_RATE,
    MEASURED,
    OVERHEAD,
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
MEGABYTE = 1 << 20
UNPACED = ", not paced"
"""Suffix of algorithms without rate control: flows share links equally."""

LIBRARY, STEPPED, PER_CHUNK = "library", "tsmcf", "extp raw, flow per chunk"
"""The MPI library's own all-to-all over a fabric that forwards by ECMP; the schedule on hosts that
forward; and a flow for each chunk, whose source port picks the route."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield all methods on all fabrics, predicted and then measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    names = [*NAMES, *(name + UNPACED for name in ("extp raw", "extp")), STEPPED]
    yield from ({"fabric": f, "way": way, "kind": PREDICTED} for f in fabrics for way in names)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4"], ["K4,4"])
        ways = asked.pick(
            [*NAMES, STEPPED, PER_CHUNK, LIBRARY], ["extp", "sssp", LIBRARY], ["extp"]
        )
        yield from ({"fabric": f, "way": way, "kind": MEASURED} for f in emulated for way in ways)


def measure(point: Point, asked: Asked) -> Measured:
    """Route, then simulate or run; return a row for each size, or one without numbers."""
    name, way = point["fabric"], point["way"]
    limit = asked.pick(60.0, 15.0, 2.0)
    subject = _subject(name, way, limit)
    if subject is None:
        return [{"bytes": 0}]
    shared = {"ratio": subject.time / certified_bound(FABRICS[name].spec)}
    if point["kind"] == MEASURED:
        return [{**shared, **row} for row in _emulated(name, way, subject, asked)]
    found = alltoall.simulate(
        subject,
        link_bandwidth=LINK_RATE,
        bytes=shard_sizes(asked),
        latency=LATENCY,
        overhead=OVERHEAD if way == STEPPED else 0.0,
        weights="equal" if way == STEPPED or way.endswith(UNPACED) else "share",
    )
    return [{**shared, **rates(row, PREDICTED)} for row in found.rows]


@cache
def _subject(name: str, way: str, limit: float) -> Any:
    """Return the cached routes, or the schedule of hosts that forward."""
    if way == STEPPED:
        return alltoall.schedule((SMALL | HOSTED)[name].topology())
    topology = FABRICS[name].topology()
    method = {LIBRARY: "ecmp", PER_CHUNK: "extp raw"}.get(way, way.removesuffix(UNPACED))
    return within_limit(lambda: routed(topology, method, own_bound=True, time_limit=limit))


def _emulated(name: str, way: str, subject: Any, asked: Asked) -> Measured:
    """Run at the two largest sizes, and at the paper's buffer of 1 MB."""
    fabric, iterations = FABRICS[name], emulated_times(asked, name)
    sizes = [MEGABYTE // fabric.hosts, *emulated_sizes(asked, name)[-2:]]
    if way == LIBRARY:  # It is timed beside a schedule.
        subject = alltoall.schedule(subject.problem, "list", chunks=1)
    steering = "ports" if way == PER_CHUNK else "plain"
    report = run_emulated(
        subject, fabric, sizes, iterations, native=way == LIBRARY, steering=steering
    )
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


def _measured_ratio(
    rows: Sequence[Row], fabric: str, one: str, other: str, size: int | None = None
) -> float | None:
    """Return a measured throughput over another, at a size or else at the largest of both."""
    found = [
        {row["bytes"]: row[MEASURED] for row in where(rows, fabric=fabric, way=way, kind=MEASURED)}
        for way in (one, other)
    ]
    sizes = [each for each in found[0].keys() & found[1].keys() if each and size in (None, each)]
    return found[0][max(sizes)] / found[1][max(sizes)] if sizes else None


UNMEASURED = Measurement(None, "not measured", "measured in full size, as root on Linux")


def _torus_ratio(
    rows: Sequence[Row], one: str, other: str, reason: str = "", size: int | None = None
) -> Measurement:
    """Return a ratio of measured throughputs; link loads are another quantity."""
    ratio = _measured_ratio(rows, TORUS_NAME, one, other, size)
    if ratio is None:
        return UNMEASURED
    words = f"{ratio:.2f} times the throughput on emulated links"
    return Measurement(ratio, words, reason)


def _native(rows: Sequence[Row], fabric: str) -> Measurement:
    """Return the MPI stand-in for NCCL and oneCCL."""
    ratio = _measured_ratio(rows, fabric, "extp", LIBRARY)
    reason = "the paper's libraries are NCCL and Open MPI on the card's own routes"
    if ratio is None:
        return Measurement(None, "not measured", reason)
    words = f"an MPI library over ECMP takes {ratio:.2f} times the time of MCF-extP"
    return Measurement(None, words, reason)


def _strong_on_torus(rows: Sequence[Row]) -> Measurement | None:
    times = _times(rows)
    if (TORUS_NAME, "dor") not in times:
        return None
    dor, ilp = (times[TORUS_NAME, way] for way in ("dor", "ilp-disjoint"))
    words = f"{dor:.3f} and {ilp:.3f} times the bound"
    return Measurement(max(dor, ilp), words, "the integer program was at its time limit")


IDEAL = "emulated links carry what MCF-extP plans, which the paper's fabric did not"

DATAFLOW = "tsMCF runs in dataflow here, without the paper's synchronisation of every step"

QUANTITIES: dict[str, Quantity] = {
    "optimal": _ours_over_bound,
    "measured": partial(share_of_bound, way="extp", kind=MEASURED),
    "ilp-k44": partial(_over_ours, fabric="K4,4", way="ilp-disjoint"),
    "torus-optimal": _strong_on_torus,
    "sssp-torus": partial(_torus_ratio, one="extp", other="sssp"),
    "native-k44": partial(_native, fabric="K4,4"),
    "native-torus": partial(_native, fabric=TORUS_NAME),
    "tsmcf-1mb": partial(
        _torus_ratio, one="extp", other=STEPPED, size=MEGABYTE // 27, reason=DATAFLOW
    ),
    "tsmcf-large": partial(_torus_ratio, one="extp", other=STEPPED, reason=IDEAL),
    "below-ilp": partial(_torus_ratio, one="extp raw", other="ilp-disjoint", reason=IDEAL),
    "more-flows": partial(_torus_ratio, one=PER_CHUNK, other="extp raw", reason=IDEAL),
}


LEFT_OUT = (
    *("ilp-shortest", "ecmp", "updown", "extp raw, not paced", "extp, not paced"),
    *(STEPPED, PER_CHUNK, LIBRARY),
)
"""Curves of the second picture, so that no panel has too many."""


def draw(rows: Sequence[Row]) -> Picture:
    """Draw predictions and measurements: ours beside the paper's baselines, then the others."""
    note = (
        f"Predicted: max-min fair fluid, links of {LINK_RATE}, each route paced at its weight "
        "unless said otherwise. Measured: a TCP flow for each route over emulated links. MCF-extP "
        "has whole chunks, raw is as published. Below: tsMCF, native routes, other flows."
    )
    kept = {"extp", *LEFT_OUT}
    others = [way for way in each_value(rows, "way") if way not in kept]
    panels = [*panels_by_size(rows, LEFT_OUT), *panels_by_size(rows, others)]
    return Picture("Routed schedules", panels, columns=2, note=note)


ROUTED_SCHEDULES = Figure.of("routed-schedules", points, measure, QUANTITIES, draw)
