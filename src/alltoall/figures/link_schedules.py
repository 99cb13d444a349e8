"""Link-based schedules: throughput against buffer size, predicted and on emulated links."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import alltoall
from alltoall.figures.asking import where
from alltoall.figures.fabrics import (
    HOSTED,
    LATENCY,
    LINK_RATE,
    MEASURED,
    OVERHEAD,
    PREDICTED,
    SMALL,
    WHOLE_RUN,
    emulated_sizes,
    emulated_times,
    near_bound,
    panels_by_size,
    shard_sizes,
)
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Picture
from alltoall.ir.fabric import Fabric

FABRICS = SMALL | HOSTED
GIGA = 1e9
PATIENCE = 300.0
"""Seconds after which we say that SCCL finds nothing; less says little."""

PAPER_BOUND = 26 * (2 / 27) * 3.125
"""GB/s that the paper computes for the torus: (N-1) f b with f = 2/27."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield our schedule, that of SCCL, and those of peers; then what is measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    ways = ["ours", "sccl", *map(str, asked.peers)]
    yield from ({"fabric": name, "way": way, "kind": PREDICTED} for name in fabrics for way in ways)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4", "3-cube"], ["K4,4"])
        yield from ({"fabric": name, "way": "ours", "kind": MEASURED} for name in emulated)
        for name in emulated:
            for way in map(str, asked.peers):
                yield {"fabric": name, "way": way, "kind": MEASURED}


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Return a row for each size; one without numbers if there is no such schedule."""
    name, way = str(point["fabric"]), str(point["way"])
    subject = _subject(name, way, asked)
    if isinstance(subject, str):
        return [{"bytes": 0, "status": subject}]
    if point["kind"] == MEASURED:
        return _emulated(name, subject, asked)
    if isinstance(subject, Path):
        return _peer(name, subject, asked)
    found = alltoall.simulate(
        subject,
        link_bandwidth=LINK_RATE,
        sizes=shard_sizes(asked),
        latency=LATENCY,
        overhead=OVERHEAD,
    )
    return [
        {
            "bytes": row.bytes,
            "status": "found",
            "bound": row.bound_throughput / GIGA,
            "predicted": row.throughput / GIGA,
        }
        for row in found.rows
    ]


def _subject(name: str, way: str, asked: Asked) -> Any:
    """Return the schedule of a way, the path of a peer's file, or why there is none."""
    topology = FABRICS[name].topology()
    if way == "ours":
        return alltoall.schedule(topology)
    if way != "sccl":
        ranks = alltoall.verify(way).facts.get("ranks")
        return Path(way) if ranks == len(topology.terminals) else f"{ranks} ranks do not fit"
    try:
        limit = asked.pick(PATIENCE, 8.0, 2.0)
        # SCCL knows no hosts beside their NICs: it is given the links alone.
        return alltoall.schedule(FABRICS[name].spec, method="sccl", time_limit=limit)
    except alltoall.MissingComponentError:
        return "z3 is not installed"
    except alltoall.InputError as error:
        return str(error)
    except alltoall.AlltoallError:
        return f"nothing within {limit:g} s"


def _peer(name: str, path: Path, asked: Asked) -> list[dict[str, Value]]:
    """Return what the loads of a peer's file allow; its messages have no prices here."""
    topology = FABRICS[name].topology()
    facts = alltoall.verify(path, topology=topology).facts
    most = (len(topology.terminals) - 1) * Fabric(topology, 25e9 / 8).bytes_per_second
    return [
        {
            "bytes": size,
            "status": "by link loads",
            "bound": most / facts["bound"] / GIGA,
            "predicted": most / facts["time"] / GIGA,
        }
        for size in shard_sizes(asked)
    ]


def _emulated(name: str, subject: Any, asked: Asked) -> list[dict[str, Value]]:
    """Run on emulated links, beside the library's own all-to-all."""
    fabric = FABRICS[name]
    report: Any = alltoall.run(
        subject,
        on="testbed",
        sizes=emulated_sizes(asked, name),
        iterations=emulated_times(asked, name),
        timeout=WHOLE_RUN,
        rate=fabric.rate,
        topology=fabric.topology() if isinstance(subject, Path) else None,
    )
    rows: list[dict[str, Value]] = []
    for row in report.rows:
        shared: dict[str, Value] = {
            "bytes": row.bytes,
            "bound": row.bound_throughput / GIGA,
            "status": fabric.rate,
        }
        rows.append({**shared, "measured": row.throughput / GIGA})
        if row.native_throughput is not None:
            rows.append({**shared, "way": "library", "measured": row.native_throughput / GIGA})
    return rows


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    claim = "Time-stepped schedules are near-optimal at large sizes on all topologies, "
    return [
        near_bound(rows, "ours", PREDICTED, claim + PREDICTED, 0.95),
        near_bound(rows, "ours", MEASURED, claim + MEASURED, 0.8),
        _torus_bound(rows),
        _no_sccl(rows),
    ]


def _torus_bound(rows: Sequence[Row]) -> Finding:
    claim = f"On the torus with host bandwidth 4 the upper bound is {PAPER_BOUND:.2f} GB/s"
    found = [row for row in where(rows, fabric="3x3x3 torus", kind=PREDICTED) if row["bound"]]
    if not found:
        return Finding(claim, "not part of this size", None)
    bound = found[0]["bound"]
    return Finding(claim, f"{bound:.3f} GB/s, certified", abs(bound / PAPER_BOUND - 1) < 1e-3)


def _no_sccl(rows: Sequence[Row]) -> Finding:
    claim = "SCCL fails to terminate at 27 nodes"
    found = where(rows, fabric="3x3x3 torus", way="sccl")
    if not found:
        return Finding(claim, "not part of this size", None)
    status = str(found[0]["status"])
    if found[0]["predicted"] is not None:
        share = max(row["predicted"] / row["bound"] for row in found)
        measured = f"a schedule at {share:.2f} of the upper bound of these links"
        return Finding(claim, measured, False, "one chunk for each shard is enough for z3")
    patient = status == f"nothing within {PATIENCE:g} s"
    reason = "" if patient else "too short a time to tell"
    return Finding(claim, status, True if patient else None, reason)


def draw(rows: Sequence[Row]) -> Picture:
    """Draw predictions in the upper row, measurements in the lower one."""
    note = (
        f"Predicted: links of {LINK_RATE}, {LATENCY * 1e6:g} us a hop, {OVERHEAD * 1e6:g} us a "
        "message, dataflow. Measured: real ranks over emulated links of the rate in the title."
    )
    panels = panels_by_size(rows, "upper bound (N-1)fb", _rate)
    return Picture("Link-based schedules", panels, columns=4, note=note)


def _rate(kind: str, row: Row) -> str:
    """Return what links carry, as a title ends."""
    return f" ({LINK_RATE if kind == PREDICTED else row['status']})"


LINK_SCHEDULES = Figure(
    name="link-schedules",
    title="Link-based schedules against buffer size",
    source="figure 3 (linkbasedxml), section 5.2",
    full="20 minutes",
    columns=("fabric", "way", "kind", "bytes"),
    exact=("status", "bound", "predicted"),
    timed=("measured",),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
    alone=True,
)
