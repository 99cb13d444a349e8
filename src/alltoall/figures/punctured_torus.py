"""The torus without three links or three nodes: ten instances, as an envelope."""

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean

import alltoall
from alltoall.figures.asking import (
    certified_bound,
    column,
    each_value,
    lines_by,
    routed,
    where,
    worst_ratio,
)
from alltoall.figures.fabrics import LATENCY, LINK_RATE, shard_sizes
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture

NAMES = ("extp", "single", "ilp-disjoint", "sssp")
REMOVED = ("links", "nodes")
COUNT, NODES = 3, 27
GIGA = 1e9


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield methods on instances by kind and seed."""
    seeds, limit = asked.pick(10, 3, 1), asked.pick(20.0, 3.0, 2.0)
    for removed in asked.pick(REMOVED, REMOVED, REMOVED[:1]):
        for seed in range(1, seeds + 1):
            for method in NAMES:
                yield {"removed": removed, "seed": seed, "method": method, "limit": limit}


def measure(point: Point, asked: Asked) -> Measured:
    """Route on the punctured torus, and simulate every size."""
    drop = {f"drop_{point['removed']}": COUNT, "seed": point["seed"]}
    topology = alltoall.topology("torus:3x3x3", **drop)
    routes = routed(topology, point["method"], time_limit=point["limit"])
    bound = certified_bound(topology)
    found = alltoall.simulate(
        routes,
        link_bandwidth=LINK_RATE,
        bytes=shard_sizes(asked),
        latency=LATENCY,
        weights="share",
    )
    times = {"ratio": routes.time / bound, "time": routes.time}
    return [
        {**times, "bytes": row.bytes, "throughput": row.throughput / GIGA} for row in found.rows
    ]


def _mean_load(rows: Sequence[Row], method: str) -> float:
    return fmean(column(where(rows, method=method), "ratio"))


def _below_sssp(rows: Sequence[Row]) -> Measurement:
    share = 1 - _mean_load(rows, "extp") / _mean_load(rows, "sssp")
    reason = "SSSP here balances differently from the paper's"
    return Measurement(share, f"{share:.0%} below on average", reason)


def _ilp_load(rows: Sequence[Row]) -> Measurement:
    ratio = _mean_load(rows, "ilp-disjoint") / _mean_load(rows, "extp")
    return Measurement(ratio, f"{ratio:.3f} times that of MCF on average")


QUANTITIES: dict[str, Quantity] = {
    "optimal": partial(worst_ratio, method="extp"),
    "below-sssp": _below_sssp,
    "ilp": _ilp_load,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw the mean of all instances within their envelope."""
    panels = []
    for removed in each_value(rows, "removed"):
        nodes = NODES - COUNT * (removed == "nodes")
        found = [{**row, "buffer": nodes * row["bytes"]} for row in where(rows, removed=removed)]
        lines = lines_by(found, "method", "buffer", "throughput")
        y = "GB/s per node"
        panels.append(
            Panel(
                f"{COUNT} {removed} removed",
                "buffer in bytes",
                y,
                lines,
                x_log=True,
                scale=y,
                from_zero=True,
            )
        )
    count = len(each_value(rows, "seed"))
    note = f"Fluid simulation, links of {LINK_RATE}; mean, least and largest of {count} instances."
    return Picture("Punctured 3x3x3 torus", panels, columns=2, note=note)


PUNCTURED_TORUS = Figure.of("punctured-torus", points, measure, QUANTITIES, draw)
