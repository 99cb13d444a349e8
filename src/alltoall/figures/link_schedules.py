"""Link-based schedules: throughput against buffer size, predicted and on emulated links."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import alltoall
from alltoall.figures.asking import where
from alltoall.figures.fabrics import (
    CUT,
    GIGA,
    HOSTED,
    LATENCY,
    LINK_RATE,
    MEASURED,
    OVERHEAD,
    PREDICTED,
    SMALL,
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

FABRICS = SMALL | HOSTED
(TORUS_NAME,) = HOSTED
PATIENCE = {"sccl": (300.0, 4.0, 2.0), "taccl": (300.0, 2.0, 2.0)}
"""Time limits of baselines in seconds, by the size of the figure."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield our schedule, the baselines' and those of peers, predicted and then measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    ways = ["ours", *PATIENCE, *map(str, asked.peers)]
    yield from ({"fabric": name, "way": way, "kind": PREDICTED} for name in fabrics for way in ways)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4"], ["K4,4"])
        for way in ("ours", *map(str, asked.peers)):
            yield from ({"fabric": name, "way": way, "kind": MEASURED} for name in emulated)


def measure(point: Point, asked: Asked) -> Measured:
    """Return a row for each size, or one without numbers if there is no schedule."""
    name, way = point["fabric"], point["way"]
    try:
        subject, status = _subject(name, way, asked)
    except (alltoall.AlltoallError, TimeoutError) as error:
        return [{"bytes": 0, "status": " ".join(str(error).split()) or CUT}]
    topology = FABRICS[name].topology() if isinstance(subject, Path) else None
    if point["kind"] == MEASURED:
        return _emulated(name, subject, topology, asked)
    found = alltoall.simulate(
        subject,
        link_bandwidth=LINK_RATE,
        bytes=shard_sizes(asked),
        latency=LATENCY,
        overhead=OVERHEAD,
        topology=topology,
    )
    return [{"status": status, **rates(row, PREDICTED)} for row in found.rows]


def _subject(name: str, way: str, asked: Asked) -> tuple[alltoall.Schedule | Path, str]:
    """Return the schedule or the path of a peer's file, and how the search ended."""
    fabric = FABRICS[name]
    if way == "ours":
        return alltoall.schedule(fabric.topology()), "found"
    if way not in PATIENCE:
        alltoall.verify(way, topology=fabric.topology())
        return Path(way), "found"
    limit, begun = asked.pick(*PATIENCE[way]), time.monotonic()
    # Both know no hosts beside their NICs: they are given the links alone.
    schedule = alltoall.schedule(fabric.spec, method=way, time_limit=limit)
    return schedule, CUT if time.monotonic() - begun >= limit else "found"


def _emulated(name: str, subject: Any, topology: Any, asked: Asked) -> Measured:
    """Run on emulated links, beside the library's own all-to-all."""
    fabric = FABRICS[name]
    sizes, iterations = emulated_sizes(asked, name), emulated_times(asked, name)
    rows: Measured = []
    for row in run_emulated(subject, fabric, sizes, iterations, topology).rows:
        rows.append({"status": fabric.rate, **rates(row, MEASURED)})
        if row.native_throughput is not None:
            library = {"way": "library", MEASURED: row.native_throughput / GIGA}
            rows.append({**rows[-1], **library})
    return rows


def _best(rows: Sequence[Row], way: str, fabric: str = TORUS_NAME) -> Row | None:
    """Return the predicted row of the largest size, None if there is no schedule."""
    found = where(rows, fabric=fabric, way=way, kind=PREDICTED)
    found = [row for row in found if row[PREDICTED] is not None]
    return max(found, key=lambda row: row["bytes"], default=None)


def _torus_bound(rows: Sequence[Row]) -> Measurement | None:
    ours = _best(rows, "ours")
    if ours is None:
        return None
    return Measurement(ours["bound"], f"{ours['bound']:.3f} GB/s, certified")


def _without_bottleneck(rows: Sequence[Row]) -> Measurement | None:
    """Return how much the flow gains without hosts; SCCL was given the links alone."""
    ours, alone = _best(rows, "ours"), _best(rows, "sccl")
    if ours is None or alone is None:
        return None
    gain = alone["bound"] / ours["bound"] - 1
    reason = "both flows are as published, and 1/9 over 2/27 is 3/2"
    return Measurement(gain, f"{gain:.0%} higher, both certified", reason)


def _sccl_schedules(rows: Sequence[Row]) -> Measurement | None:
    found = where(rows, fabric=TORUS_NAME, way="sccl")
    if not found:
        return None
    limit, best = PATIENCE["sccl"][0], _best(rows, "sccl")
    if best is None:
        return Measurement(None, str(found[0]["status"]), "the time limit is too short to tell")
    share = f"{best[PREDICTED] / best['bound']:.2f} of the upper bound of these links"
    if best["status"] == CUT:
        return Measurement(0, f"cut off after {limit:g} s; its best schedule so far has {share}")
    return Measurement(1, f"ended with {share}", "with one chunk per shard z3 ends")


def _over_taccl(rows: Sequence[Row], fabric: str) -> Measurement | None:
    """Return the share of its bound that tsMCF has over TACCL's, which knows no hosts."""
    ours, taccl = _best(rows, "ours", fabric), _best(rows, "taccl", fabric)
    if ours is None or taccl is None:
        return None
    ratio = ours[PREDICTED] / ours["bound"] / (taccl[PREDICTED] / taccl["bound"])
    cut = ", its programs cut off" if taccl["status"] == CUT else ""
    words = f"tsMCF has {ratio:.2f} times the share, TACCL {1 - 1 / ratio:.0%} less{cut}"
    reason = "TACCL here has no sketch, and its schedules are timed by our model"
    return Measurement(ratio, words, reason)


QUANTITIES: dict[str, Quantity] = {
    "predicted": partial(share_of_bound, way="ours", kind=PREDICTED),
    "measured": partial(share_of_bound, way="ours", kind=MEASURED),
    "torus-bound": _torus_bound,
    "no-bottleneck": _without_bottleneck,
    "sccl": _sccl_schedules,
    "taccl-cube": partial(_over_taccl, fabric="3-cube"),
    "taccl-torus": partial(_over_taccl, fabric=TORUS_NAME),
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw predictions in the upper row, measurements in the lower one."""
    note = (
        f"Predicted: links of {LINK_RATE}, {LATENCY * 1e6:g} us a hop, {OVERHEAD * 1e6:g} us a "
        "message, dataflow; SCCL and TACCL are given the links without hosts. Measured: real "
        "ranks over emulated links."
    )
    return Picture("Link-based schedules", panels_by_size(rows), columns=2, note=note)


LINK_SCHEDULES = Figure.of("link-schedules", points, measure, QUANTITIES, draw)
