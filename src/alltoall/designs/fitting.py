"""Find the families with a member of a size and degree, by arithmetic alone.

Every row of `FITTING` yields the SPECs of n nodes of degree d without building anything, so the
nearest sizes of a family are found by trying all.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count

from alltoall.ir.topology import Topology
from alltoall.topologies.expanders import catalogued
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.parts import shape_name
from alltoall.topologies.spec import build

Specs = Iterator[str]

FARTHEST = 4
"""Nearest sizes are searched up to this many times the requested size."""

MOST_SHAPES = 2
"""Shapes of a family to compare: the most cubic ones."""


def fitting_specs(family: str, nodes: int, degree: int) -> list[str]:
    """Return the SPECs of a family with this number of nodes and degree, the best known first."""
    return list(FITTING[family](nodes, degree))[:MOST_SHAPES] if family in FITTING else []


def nearest_sizes(family: str, nodes: int, degree: int) -> tuple[int, ...]:
    """Return the next smaller and the next larger size of a family with this degree."""
    sizes = (range(nodes - 1, 1, -1), range(nodes + 1, FARTHEST * nodes))
    nearest = (next((n for n in each if fitting_specs(family, n, degree)), None) for each in sizes)
    return tuple(size for size in nearest if size is not None)


def build_without_unit(spec: str) -> Topology:
    """Build a family without link rates, which are the designer's choice."""
    return replace(build(spec), bytes_per_second=None)


def families_that_do_not_fit(nodes: int, degree: int) -> dict[str, tuple[int, ...]]:
    """Return the families without a member of this size, each with its nearest sizes."""
    return {
        name: nearest_sizes(name, nodes, degree)
        for name in FAMILIES
        if name in FITTING and not fitting_specs(name, nodes, degree)
    }


def _sides(nodes: int, least: int = 2) -> Iterator[tuple[int, ...]]:
    """Yield the factorisations of a number, factors ascending, the most cubic first."""
    found: list[tuple[int, ...]] = [(nodes,)] if nodes >= least else []
    for side in range(least, math.isqrt(nodes) + 1):
        if nodes % side == 0:
            found += [(side, *rest) for rest in _sides(nodes // side, side)]
    yield from sorted(found, key=lambda sides: (max(sides) - min(sides), sides))


def _grids(name: str, ports: Callable[[int], int]) -> Callable[[int, int], Specs]:
    """Return a function that yields grids, given the number of ports by side."""

    def fitting(n: int, d: int) -> Specs:
        for sides in _sides(n):
            if sum(map(ports, sides)) == d:
                yield f"{name}:{shape_name(sides)}"

    return fitting


def _one(fits: bool, spec: str) -> Specs:
    """Yield a SPEC if it fits."""
    return iter((spec,) if fits else ())


def _circulant(n: int, d: int) -> Specs:
    """Yield the circulant of least mean distance (Boesch and Wang, 1985)."""
    if d == 4 and n >= 6:
        jump = math.ceil((math.sqrt(2 * n - 1) - 1) / 2)
        yield f"circulant:n={n},jumps={jump}x{jump + 1}"


def _debruijn(n: int, d: int) -> Specs:
    k = round(math.log(n, d)) if d >= 2 else 0
    if k >= 1 and d**k == n:
        yield f"debruijn:d={d},k={k}"


def _kautz(n: int, d: int) -> Specs:
    for k in range(1, n.bit_length() + 1):
        if d >= 2 and d**k + d ** (k - 1) == n:
            yield f"kautz:d={d},k={k}"


def _slimfly(n: int, d: int) -> Specs:
    q = math.isqrt(n // 2)
    delta = (q + 1) % 4 - 1
    if q in PRIME_POWERS[1:] and 2 * q * q == n and 2 * d == 3 * q - delta:
        yield f"slimfly:q={q}"


def _polarstar(n: int, d: int) -> Specs:
    for q in PRIME_POWERS:
        inside = d - q - 1
        if inside >= 0 and inside % 4 in (0, 3) and n == (q * q + q + 1) * (2 * inside + 2):
            yield f"polarstar:q={q},d={inside}"


def _bundlefly(n: int, d: int) -> Specs:
    for q in PRIME_POWERS[1:]:
        p = n // (2 * q * q)
        ports = (3 * q - ((q + 1) % 4 - 1)) // 2 + (p - 1) // 2
        if p in PRIME_POWERS and p % 4 == 1 and n == 2 * q * q * p and d == ports:
            yield f"bundlefly:q={q},p={p}"


def _spectralfly(n: int, d: int) -> Specs:
    p = d - 1
    for q in ODD_PRIMES:
        if p in ODD_PRIMES and p != q and 4 * p < q * q:
            square = pow(p, (q - 1) // 2, q) == 1
            if n == q * (q * q - 1) // (2 if square else 1):
                yield f"spectralfly:p={p},q={q}"


def _dragonfly(n: int, d: int) -> Specs:
    for a in range(2, d + 1):
        h = d + 1 - a
        for groups in range(2, a * h + 2):
            if a * groups == n and a * h % (groups - 1) == 0:
                yield f"dragonfly:a={a},h={h},g={groups}"


def _tpuv4(n: int, d: int) -> Specs:
    for k in count(3):
        for sides in ((k, k, 2 * k), (k, 2 * k, 2 * k)):
            if d == 6 and math.prod(sides) == n:
                yield f"tpuv4:{shape_name(sides)},twisted=true"
        if 2 * k**3 > n:
            return


PRIME_POWERS = (2, 3, 4, 5, 7, 8, 9, 11, 13, 16, 17, 19, 23, 25, 27, 29, 31, 32, 37)
"""Orders of finite fields, up to the ports of real switches; Slim Fly takes all but 2."""

ODD_PRIMES = (3, 5, 7, 11, 13, 17, 19, 23, 29, 31)
"""Primes whose Ramanujan graphs have a practical size."""

FITTING: dict[str, Callable[[int, int], Specs]] = {
    "ring": lambda n, d: _one(d == 2 and n > 2, f"ring:{n}"),
    "mesh": _grids("mesh", lambda side: min(side - 1, 2)),
    "torus": _grids("torus", lambda side: min(side - 1, 2)),
    "hypercube": lambda n, d: _one(n == 1 << d, f"hypercube:{d}"),
    "twisted-hypercube": lambda n, d: _one(d >= 3 and n == 1 << d, f"twisted-hypercube:{d}"),
    "hyperx": _grids("hyperx", lambda side: side - 1),
    "circulant": _circulant,
    "debruijn": _debruijn,
    "kautz": _kautz,
    "genkautz": lambda n, d: _one(d < n, f"genkautz:n={n},d={d},rewire=true"),
    "gendebruijn": lambda n, d: _one(2 <= d < n, f"gendebruijn:n={n},d={d},rewire=true"),
    "best": lambda n, d: iter(catalogued(n, d)),
    "jellyfish": lambda n, d: _one(2 <= d < n and n * d % 2 == 0, f"jellyfish:n={n},d={d},seed=1"),
    "xpander": lambda n, d: _one(n > d + 1 > 2 and n % (d + 1) == 0, f"xpander:n={n},d={d},seed=1"),
    "slimfly": _slimfly,
    "polarfly": lambda n, d: _one(
        d - 1 in PRIME_POWERS and n == d * d - d + 1, f"polarfly:q={d - 1}"
    ),
    "polarstar": _polarstar,
    "bundlefly": _bundlefly,
    "spectralfly": _spectralfly,
    "complete": lambda n, d: _one(n == d + 1, f"complete:{n}"),
    "bipartite": lambda n, d: _one(n == 2 * d, f"bipartite:{d}x{d}"),
    "dragonfly": _dragonfly,
    "tpuv4": _tpuv4,
}
"""The SPECs by nodes and degree, for families with one terminal a node and equal links."""
