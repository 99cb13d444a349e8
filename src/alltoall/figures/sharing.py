"""Groups on a mesh of eight GPUs, templates under skew, and jobs that share a fabric."""

from collections.abc import Iterator, Sequence
from functools import cache
from statistics import fmean

import numpy as np

import alltoall
from alltoall.figures.asking import column, each_value, lines_by, where
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture, Series
from alltoall.verification import predict

GROUPS: dict[str, list[tuple[int, ...]]] = {
    "one of 2": [(0, 1)],
    "four of 2": [(0, 1), (2, 3), (4, 5), (6, 7)],
    "one of 4": [(0, 1, 2, 3)],
    "two of 4": [(0, 1, 2, 3), (4, 5, 6, 7)],
}
"""Groups on eight fully connected GPUs."""

SOLVED = "solved for the demand"
GROUP, SKEW, JOBS = "groups", "skew", "jobs"
TORUS = "torus:4x4"
GAP = 5e-3


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield groups, then demands by skew and seed, then numbers of jobs."""
    names = list(GROUPS)[: asked.pick(4, 4, 2)]
    for name in names:
        yield {"kind": GROUP, "name": name, "x": 0, "seed": 0}
    for sigma in asked.pick((0.0, 0.25, 0.5, 1.0, 1.5, 2.0), (0.0, 0.5, 1.0, 1.5), (0.0, 1.0)):
        for seed in range(asked.pick(12, 3, 1)):
            yield {"kind": SKEW, "name": TORUS, "x": sigma, "seed": seed}
    for count in asked.pick((1, 2, 3, 4, 6, 8), (1, 2, 4), (2,)):
        yield {"kind": JOBS, "name": TORUS, "x": count, "seed": 1}


def measure(point: Point, asked: Asked) -> Measured:
    """Return rows with and without knowledge of the demand."""
    return {GROUP: _groups, SKEW: _skewed, JOBS: _jobs}[point["kind"]](point)


def _groups(point: Point) -> Measured:
    """Send directly, or by all links."""
    groups = GROUPS[point["name"]]
    flow = alltoall.solve("complete:8", groups=groups)
    return [
        {"way": "direct sends", "time": 1.0, "bound": flow.bound},
        {"way": "ours", "time": flow.time, "bound": flow.bound},
    ]


def _skewed(point: Point) -> Measured:
    """Use uniform routes as a template, robust ones, or solve again."""
    topology = alltoall.topology(point["name"])
    nodes, sigma = topology.nodes, point["x"]
    random = np.random.default_rng(point["seed"])
    demand = random.lognormal(0.0, sigma, (nodes, nodes)) * (1 - np.eye(nodes))
    flow = alltoall.solve(topology, demand=demand, gap=GAP)
    rows: Measured = []
    for name, routes in _templates(point["name"]).items():
        time = predict(routes, demand).template_time
        rows.append({"way": name, "time": time, "bound": flow.bound})
    return [*rows, {"way": SOLVED, "time": flow.time, "bound": flow.bound}]


@cache
def _templates(spec: str) -> dict[str, alltoall.Routes]:
    """Return the cached routes of a uniform demand."""
    return {
        "template, extp": alltoall.route(spec, "extp:layering=none"),
        "template, ewsp": alltoall.route(spec, "ewsp:layering=none"),
        "template, robust": alltoall.route(spec, "robust:demands=pairs,layering=none"),
    }


def _jobs(point: Point) -> Measured:
    """Let jobs of four random nodes share a torus: each by its own routes, or by joint ones."""
    topology = alltoall.topology(point["name"])
    random = np.random.default_rng(point["seed"])
    count = point["x"]
    groups = [random.choice(topology.nodes, 4, replace=False).tolist() for _ in range(count)]
    demands = [alltoall.Demand.of_groups(topology.nodes, [group]) for group in groups]
    own = [alltoall.route(topology, "extp:layering=none", demand=demand) for demand in demands]
    total = sum(demand.table() for demand in demands)
    joint = alltoall.route(topology, "extp:layering=none", demand=np.asarray(total))
    apart = np.sum([routes.load() for routes in own], axis=0) / topology.capacity
    return [
        {"way": "each by its own routes", "time": float(apart.max()), "bound": joint.bound},
        {"way": "joint routes", "time": joint.time, "bound": joint.bound},
    ]


def _loss(rows: Sequence[Row], way: str) -> list[float]:
    """Return the times of a way over the certified bound."""
    return [row["time"] / row["bound"] for row in where(rows, way=way)]


def _group_gain(rows: Sequence[Row]) -> Measurement | None:
    direct = where(rows, kind=GROUP, way="direct sends")
    if not direct:
        return None
    gains = {row["name"]: row["time"] / row["bound"] for row in direct}
    words = ", ".join(f"{name} {gain:.2f}" for name, gain in gains.items())
    return Measurement(min(gains.values()), f"times as fast as direct sends: {words}")


def _template_loss(rows: Sequence[Row]) -> Measurement | None:
    skewed = where(rows, kind=SKEW, x=1)
    if not skewed:
        return None
    ways = {"extp": "template, extp", "robust": "template, robust", SOLVED: SOLVED}
    loss = {name: fmean(_loss(skewed, way)) for name, way in ways.items()}
    words = ", ".join(f"{name} {value:.3g}" for name, value in loss.items())
    return Measurement(loss["extp"], f"at sigma 1, times the bound: {words}")


def _job_loss(rows: Sequence[Row]) -> Measurement | None:
    jobs = where(rows, kind=JOBS)
    if not jobs:
        return None
    apart, joint = (max(_loss(jobs, way)) for way in ("each by its own routes", "joint routes"))
    words = f"uncoordinated routes take up to {apart:.2f} times the joint bound, joint {joint:.4f}"
    return Measurement(None, words, "the paper makes no claim")


QUANTITIES: dict[str, Quantity] = {
    "groups": _group_gain,
    "skew": _template_loss,
    "jobs": _job_loss,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a panel for each of the three."""
    panels = []
    groups = where(rows, kind=GROUP)
    if groups:
        names = each_value(groups, "name")
        bars = [
            Series(way, places, column(where(groups, way=way), "time"), "bars")
            for way in each_value(groups, "way")
            if (places := list(map(float, range(len(names)))))
        ]
        panels.append(Panel("groups on 8 linked GPUs", "", "time in shards", bars, names=names))
    for kind, title, x in (
        (SKEW, f"skewed demands on {TORUS}", "sigma of lognormal amounts"),
        (JOBS, f"jobs of 4 nodes on {TORUS}", "jobs"),
    ):
        found = [{**row, "ratio": row["time"] / row["bound"]} for row in where(rows, kind=kind)]
        lines = lines_by(found, "way", "x", "ratio")
        y = "time / certified bound"
        panels.append(Panel(title, x, y, lines, scale=y))
    return Picture("Groups, skew and jobs", panels, columns=3)


SHARING = Figure.of("sharing", points, measure, QUANTITIES, draw)
