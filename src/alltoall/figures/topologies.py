"""Topologies of one degree: the certified all-to-all time over the bound for any such graph."""

from collections.abc import Iterator, Sequence
from functools import partial

import alltoall
from alltoall.figures.asking import curve, each_value, series, where, within_limit
from alltoall.figures.figure import Asked, Figure, Measured, Measurement, Point, Quantity, Row
from alltoall.figures.picture import Panel, Picture
from alltoall.flows.bounds import regular_bound

LARGE = 200
"""Nodes from which a graph counts as large."""

NEAR = 0.15
"""Sizes are compared that differ by this share at most."""

GAP = 2e-3
"""The certified gap of every time."""

FAMILIES: dict[str, dict[int, list[str]]] = {
    "torus": {
        4: [f"torus:{side}x{side}" for side in (4, 6, 8, 10, 14, 18, 22, 32)],
        8: [f"torus:{side}x{side}x{side}x{side}" for side in (3, 4, 5, 6)],
    },
    "slimfly": {4: [], 8: ["slimfly:q=5"]},
    "spectralfly": {4: ["spectralfly:p=3,q=5", "spectralfly:p=3,q=7"], 8: ["spectralfly:p=7,q=11"]},
    "dragonfly": {4: ["dragonfly:a=3,h=2", "dragonfly:a=4,h=1"], 8: ["dragonfly:a=6,h=3"]},
    "hyperx": {4: ["hyperx:3x3"], 8: ["hyperx:5x5", "hyperx:3x3x3x3"]},
}
"""Families with few sizes, by degree; Slim Fly of q = 5 has degree 7 and the bound of that
degree."""

ANY_SIZE = {
    "genkautz": "genkautz:n={n},d={d}",
    "best": "best:n={n},d={d}",
    "xpander": "xpander:n={n},d={d},seed=1",
    "jellyfish": "jellyfish:n={n},d={d},seed=1",
}
"""Families of nearly any size."""


def points(asked: Asked, rows: Sequence[Row]) -> Iterator[Point]:
    """Yield SPECs by degree and family, small ones first."""
    most = asked.pick(1024, 130, 30)
    sizes = [n for n in (16, 20, 32, 50, 64, 100, 128, 200, 320, 500, 700, 1000) if n <= most]
    for degree in asked.pick((4, 8), (4, 8), (4,)):
        for family, template in ANY_SIZE.items():
            specs = [template.format(n=_fit(family, n, degree), d=degree) for n in sizes]
            for spec in dict.fromkeys(specs):
                yield {"degree": degree, "family": family, "spec": spec}
        for family, by_degree in FAMILIES.items():
            for spec in by_degree[degree]:
                if alltoall.topology(spec).nodes <= most:
                    yield {"degree": degree, "family": family, "spec": spec}


def _fit(family: str, n: int, degree: int) -> int:
    """Return the nearest size of a family."""
    return n - n % (degree + 1) if family == "xpander" else n


def measure(point: Point, asked: Asked) -> Measured:
    """Solve to a small gap and compare with the bound for any graph of that degree."""
    spec, limit = point["spec"], asked.pick(120.0, 20.0, 5.0)
    # A size without a graph has a row without numbers.
    topology = within_limit(lambda: alltoall.topology(spec))
    if topology is None:
        return [{"n": 0}]
    # By default small ones are solved exactly, which takes far longer than to this gap.
    flow = alltoall.solve(topology, method="first-order", gap=GAP, time_limit=limit)
    degree = round(topology.links / topology.nodes) if point["family"] != "genkautz" else None
    least = float(regular_bound(topology.nodes, degree or point["degree"]))
    times = {"time": flow.time, "bound": flow.bound, "ratio": flow.time / least}
    return [{"n": topology.nodes, "least": least, **times}]


def _curve(rows: Sequence[Row], degree: int, family: str) -> dict[float, float]:
    """Return the times of a family over the bound of its degree, by size."""
    return curve(where(rows, degree=degree, family=family), "n", "ratio")


def _over_kautz(rows: Sequence[Row], family: str, degree: int = 4) -> dict[float, float]:
    """Return the ratios of a family's times to those of GenKautz of similar size."""
    kautz, curve = (_curve(rows, degree, name) for name in ("genkautz", family))
    nearest = {n: min(kautz, key=lambda m: abs(m - n)) for n in curve} if kautz else {}
    return {n: curve[n] / kautz[m] for n, m in nearest.items() if abs(m - n) <= NEAR * n}


def _kautz(rows: Sequence[Row]) -> Measurement:
    kautz = _curve(rows, 4, "genkautz")
    n = max(kautz)
    words = f"{kautz[n]:.3f} times the bound at N = {n:.0f}, at most {max(kautz.values()):.3f}"
    if n < LARGE:
        return Measurement(None, words, f"the ratio falls with N, and N is below {LARGE} here")
    return Measurement(kautz[n], words)


def _at_largest(rows: Sequence[Row], family: str, paper: float) -> Measurement | None:
    """Return the time over that of GenKautz at the largest size."""
    ratios = _over_kautz(rows, family)
    if not ratios:
        return None
    n, near = max(ratios), min(ratios, key=lambda n: abs(ratios[n] - paper))
    words = f"{ratios[n]:.2f} times at N = {n:.0f}"
    if n < LARGE:
        return Measurement(None, words, f"all graphs of this size have less than {LARGE} nodes")
    return Measurement(
        ratios[n], words, f"nearest to the paper at N = {near:.0f}, with {ratios[near]:.2f}"
    )


def _best_expander(rows: Sequence[Row], degree: int) -> Measurement | None:
    """Return the ratio of the paper's best other expander to GenKautz."""
    ratios = {
        (family, n): ratio
        for family in ("xpander", "jellyfish")
        for n, ratio in _over_kautz(rows, family, degree).items()
    }
    if not ratios:
        return None
    family, n = best = min(ratios, key=ratios.__getitem__)
    words = f"at least {ratios[best]:.3f} times, {family} at N = {n:.0f}"
    return Measurement(ratios[best], words, f"{family} is better there")


def _catalogue(rows: Sequence[Row]) -> Measurement | None:
    ratios = _over_kautz(rows, "best")
    if not ratios:
        return None
    best = min(ratios.values())
    return Measurement(best, f"{best:.3f} times the time of GenKautz at best")


QUANTITIES: dict[str, Quantity] = {
    "genkautz": _kautz,
    "torus": partial(_at_largest, family="torus", paper=2.4),
    "xpander": partial(_at_largest, family="xpander", paper=1.1),
    "random": partial(_at_largest, family="jellyfish", paper=1.1),
    "expanders": partial(_best_expander, degree=4),
    "degree-8": partial(_best_expander, degree=8),
    "catalogue": _catalogue,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw a panel for each degree."""
    panels = []
    for degree in each_value(rows, "degree"):
        lines = []
        for family in each_value(where(rows, degree=degree), "family"):
            kind = "line" if family in ANY_SIZE or family == "torus" else "dots"
            found = where(rows, degree=degree, family=family)
            if any(row["ratio"] is not None for row in found):
                lines.append(series(found, "n", "ratio", family, kind=kind))
        title, y = f"degree {degree}", "time / bound for any d-regular graph"
        panels.append(Panel(title, "nodes N", y, lines, x_log=True))
    note = (
        f"Times are certified to {GAP:.1%}. TONS (arXiv 2605.27963) reports 1.6 times the "
        "all-to-all throughput of the best TPU tori; it says nothing of this bound."
    )
    return Picture("Topologies against the bound of their degree", panels, columns=2, note=note)


TOPOLOGIES = Figure.of("topologies", points, measure, QUANTITIES, draw)
