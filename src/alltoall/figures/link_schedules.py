"""Link-based schedules: throughput against buffer size, predicted and on emulated links."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import alltoall
from alltoall.figures.asking import where
from alltoall.figures.fabrics import (
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
from alltoall.ir.fabric import Fabric

FABRICS = SMALL | HOSTED
PATIENCE = 300.0
"""Time limit of SCCL in seconds."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield our schedule, SCCL's and those of peers, predicted and then measured."""
    fabrics = asked.pick(list(FABRICS), list(FABRICS), ["K4,4"])
    ways = ["ours", "sccl", *map(str, asked.peers)]
    yield from ({"fabric": name, "way": way, "kind": PREDICTED} for name in fabrics for way in ways)
    if asked.testbed:
        emulated = asked.pick(fabrics, ["K4,4", "3-cube"], ["K4,4"])
        for way in ("ours", *map(str, asked.peers)):
            yield from ({"fabric": name, "way": way, "kind": MEASURED} for name in emulated)


def measure(point: Point, asked: Asked) -> Measured:
    """Return a row for each size, or one without numbers if there is no schedule."""
    name, way = point["fabric"], point["way"]
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
        bytes=shard_sizes(asked),
        latency=LATENCY,
        overhead=OVERHEAD,
    )
    return [{"status": "found", **rates(row, PREDICTED)} for row in found.rows]


def _subject(name: str, way: str, asked: Asked) -> Any:
    """Return the schedule, the path of a peer's file, or the reason for neither."""
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


def _peer(name: str, path: Path, asked: Asked) -> Measured:
    """Return the throughput allowed by the link loads of a peer's file."""
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


def _emulated(name: str, subject: Any, asked: Asked) -> Measured:
    """Run on emulated links, beside the library's own all-to-all."""
    fabric = FABRICS[name]
    sizes, iterations = emulated_sizes(asked, name), emulated_times(asked, name)
    topology = fabric.topology() if isinstance(subject, Path) else None
    rows: Measured = []
    for row in run_emulated(subject, fabric, sizes, iterations, topology).rows:
        rows.append({"status": fabric.rate, **rates(row, MEASURED)})
        if row.native_throughput is not None:
            library = {"way": "library", MEASURED: row.native_throughput / GIGA}
            rows.append({**rows[-1], **library})
    return rows


def _torus_bound(rows: Sequence[Row]) -> Measurement | None:
    found = [row for row in where(rows, fabric="3x3x3 torus", kind=PREDICTED) if row["bound"]]
    if not found:
        return None
    return Measurement(found[0]["bound"], f"{found[0]['bound']:.3f} GB/s, certified")


def _sccl_schedules(rows: Sequence[Row]) -> Measurement | None:
    found = where(rows, fabric="3x3x3 torus", way="sccl")
    if not found:
        return None
    if found[0]["predicted"] is not None:
        share = max(row["predicted"] / row["bound"] for row in found)
        words = f"a schedule at {share:.2f} of the upper bound of these links"
        return Measurement(1, words, "with one chunk per shard z3 finds one")
    status = str(found[0]["status"])
    if status != f"nothing within {PATIENCE:g} s":
        return Measurement(None, status, "the time limit is too short to tell")
    return Measurement(0, status)


QUANTITIES: dict[str, Quantity] = {
    "predicted": partial(share_of_bound, way="ours", kind=PREDICTED),
    "measured": partial(share_of_bound, way="ours", kind=MEASURED),
    "torus-bound": _torus_bound,
    "sccl": _sccl_schedules,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw predictions in the upper row, measurements in the lower one."""
    note = (
        f"Predicted: links of {LINK_RATE}, {LATENCY * 1e6:g} us a hop, {OVERHEAD * 1e6:g} us a "
        "message, dataflow. Measured: real ranks over emulated links of the rate in the title."
    )
    panels = panels_by_size(rows, "upper bound (N-1)fb", _rate)
    return Picture("Link-based schedules", panels, columns=4, note=note)


def _rate(kind: str, row: Row) -> str:
    """Return the rate of links for a title."""
    return f" ({LINK_RATE if kind == PREDICTED else row['status']})"


LINK_SCHEDULES = Figure.of("link-schedules", points, measure, QUANTITIES, draw)
