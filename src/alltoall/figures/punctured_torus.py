"""The torus without three links or three nodes: ten instances, as an envelope."""

from collections.abc import Iterator, Sequence

import alltoall
from alltoall.figures.asking import (
    certified_bound,
    column,
    each_value,
    envelope,
    known_methods,
    routed,
    where,
)
from alltoall.figures.fabrics import LATENCY, LINK_RATE, shard_sizes
from alltoall.figures.figure import Asked, Figure, Finding, Point, Row, Value
from alltoall.figures.picture import Panel, Picture, Series

NAMES = ("extp", "single", "ilp-disjoint", "sssp")
REMOVED = ("links", "nodes")
COUNT = 3
GIGA = 1e9


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield methods on instances, by what was removed and the seed of it."""
    seeds, limit = asked.pick(10, 3, 1), asked.pick(20.0, 3.0, 2.0)
    for removed in asked.pick(REMOVED, REMOVED, REMOVED[:1]):
        for seed in range(1, seeds + 1):
            for method in known_methods(NAMES):
                yield {"removed": removed, "seed": seed, "method": method, "limit": limit}


def measure(point: Point, asked: Asked) -> list[dict[str, Value]]:
    """Route on what is left of the torus, and simulate every size."""
    seed = int(str(point["seed"]))
    links, nodes = (COUNT, 0) if point["removed"] == "links" else (0, COUNT)
    topology = alltoall.topology("torus:3x3x3", drop_links=links, drop_nodes=nodes, seed=seed)
    limit = float(str(point["limit"]))
    routes = routed(topology, str(point["method"]), time_limit=limit)
    bound = certified_bound(topology)
    found = alltoall.simulate(
        routes,
        link_bandwidth=LINK_RATE,
        sizes=shard_sizes(asked),
        latency=LATENCY,
        weights="share",
    )
    return [
        {
            "bytes": row.bytes,
            "ratio": routes.time / bound,
            "time": routes.time,
            "throughput": row.throughput / GIGA,
        }
        for row in found.rows
    ]


def judge(rows: Sequence[Row]) -> list[Finding]:
    """Return what the paper says of its figure, and what came out."""
    mean = {
        method: sum(found) / len(found)
        for method in each_value(rows, "method")
        if (found := column(where(rows, method=method), "ratio"))
    }
    ours = max(column(where(rows, method="extp"), "ratio"))
    lower = 1 - mean["extp"] / mean["sssp"]
    near = mean["ilp-disjoint"] / mean["extp"]
    return [
        Finding(
            "MCF-extP is optimal on every instance",
            f"at most {ours:.4f} times the certified bound",
            ours < 1.001,
        ),
        Finding(
            "The maximum link load of MCF is about 30 % below that of SSSP",
            f"{lower:.0%} below on average",
            lower > 0.2,
            "" if lower > 0.2 else "our SSSP balances more evenly than the paper's",
        ),
        Finding(
            "ILP-disjoint has about the maximum link load of MCF",
            f"{near:.3f} times that of MCF on average",
            near < 1.1,
        ),
    ]


def draw(rows: Sequence[Row]) -> Picture:
    """Draw the mean over instances, with the least and the largest around it."""
    panels = []
    for removed in each_value(rows, "removed"):
        lines = []
        for method in each_value(rows, "method"):
            found = where(rows, removed=removed, method=method)
            x, mean, low, high = envelope(found, "bytes", "throughput")
            lines.append(Series(method, x, mean, low=low, high=high))
        title = f"{COUNT} {removed} removed"
        panels.append(
            Panel(title, "bytes of a shard", "GB/s per node", lines, x_log=True, from_zero=True)
        )
    count = len(each_value(rows, "seed"))
    note = f"Fluid simulation, links of {LINK_RATE}; mean, least and largest of {count} instances."
    return Picture("Punctured 3x3x3 torus", panels, columns=2, note=note)


PUNCTURED_TORUS = Figure(
    name="punctured-torus",
    title="The torus without three links or nodes",
    source="figure 5 (torus_punctured), section 5.2",
    full="10 minutes",
    columns=("removed", "seed", "method", "limit", "bytes"),
    exact=("ratio", "time", "throughput"),
    timed=(),
    points=points,
    measure=measure,
    judge=judge,
    draw=draw,
)
