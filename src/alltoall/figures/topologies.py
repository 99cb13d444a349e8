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

PAPER_NODES = 500
"""Nodes up to which ratios are judged; the paper names none, and that of tori grows for ever."""

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

NAMES = {
    "genkautz": "GenKautz",
    "best": "our catalogue",
    "xpander": "Xpander",
    "jellyfish": "Jellyfish",
    "slimfly": "Slim Fly",
    "spectralfly": "SpectralFly",
    "dragonfly": "Dragonfly",
    "hyperx": "HyperX",
}

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


def _at_largest(rows: Sequence[Row], family: str) -> Measurement | None:
    """Return the time over that of GenKautz at the largest size up to `PAPER_NODES`."""
    ratios = _over_kautz(rows, family)
    if not ratios:
        return None
    at = max((n for n in ratios if n <= PAPER_NODES), default=0)
    words = ", ".join(f"{ratios[n]:.2f} at N = {n:.0f}" for n in ratios if n >= min(at, 100))
    if at < LARGE:
        return Measurement(None, words, f"all graphs of this size have less than {LARGE} nodes")
    return Measurement(ratios[at], words, "its ratio to GenKautz varies with N")


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
    "torus": partial(_at_largest, family="torus"),
    "xpander": partial(_at_largest, family="xpander"),
    "random": partial(_at_largest, family="jellyfish"),
    "expanders": partial(_best_expander, degree=4),
    "degree-8": partial(_best_expander, degree=8),
    "catalogue": _catalogue,
}


def draw(rows: Sequence[Row]) -> Picture:
    """Draw GenKautz alone, then families of any size, then the others, by degree."""
    degrees = each_value(rows, "degree")
    kautz, any_size, others = ("genkautz",), (*ANY_SIZE, "torus"), ("genkautz", *FAMILIES)
    panels = [_panel(rows, degrees[0], kautz, "GenKautz alone")]
    panels += [_panel(rows, degree, any_size, "expanders and tori") for degree in degrees]
    panels += [
        _panel(rows, degree, [name for name in others if name != "torus"], "families of few sizes")
        for degree in degrees
    ]
    note = f"Times are certified to {GAP:.1%}."
    return Picture("Topologies against the bound of their degree", panels, columns=3, note=note)


def _panel(rows: Sequence[Row], degree: int, families: Sequence[str], title: str) -> Panel:
    lines = [
        series(found, "n", "ratio", NAMES.get(family, family), style=family, kind=kind)
        for family in families
        if (found := [r for r in where(rows, degree=degree, family=family) if r["ratio"]])
        if (kind := "dots" if family in FAMILIES and family != "torus" else "line")
    ]
    y, scale = "time / bound for any such graph", "" if len(families) == 1 else str(degree)
    return Panel(f"{title}, degree {degree}", "nodes N", y, lines, x_log=True, scale=scale)


TOPOLOGIES = Figure.of("topologies", points, measure, QUANTITIES, draw)
