"""What several figures ask of the library: methods by the names that figures give them."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

import alltoall
from alltoall.figures.figure import Row

Found = TypeVar("Found")

ROUTINGS = {
    "pmcf": "pmcf:paths=disjoint",
    "pmcf shortest": "pmcf:paths=shortest",
    **{
        each: each
        for each in (
            *("extp", "single", "ilp-disjoint", "ilp-shortest", "sssp", "ewsp", "dor", "native"),
        )
    },
}
"""The method of each curve."""


BY_RULE = ("sssp", "ewsp", "dor", "native")
"""Methods that follow a rule, whatever the gap."""

LOOSE = 0.99
"""A gap that they are asked for, so that they do not solve for a bound of their own."""


def routed(
    given: Any, name: str, own_bound: bool = False, layering: str = "none", **asked: Any
) -> alltoall.Routes:
    """Return routes by the method of this name, without layers unless they are asked for.

    Where a figure has a bound of its own to hold them against, those by a rule need none.
    """
    loose = {"gap": LOOSE} if name in BY_RULE and not own_bound else {}
    method, colon, words = ROUTINGS[name].partition(":")
    method = f"{method}:{words}{',' if colon else ''}layering={layering}"
    return alltoall.route(given, method, **(loose | asked))


@lru_cache(maxsize=4)
def certified_bound(given: str | alltoall.Topology, gap: float = 1e-6) -> float:
    """Return the bound that all methods on a topology are held against, solved once for them."""
    return alltoall.solve(given, gap=gap).bound


def known_methods(names: Iterable[str]) -> list[str]:
    """Return those of some methods that this version has."""
    # Imported when a figure is made: the table brings all methods with it.
    from alltoall.routes import ROUTERS  # noqa: PLC0415

    return [name for name in names if ROUTINGS[name].partition(":")[0] in ROUTERS]


def known_families(specs: Iterable[str]) -> list[str]:
    """Return those of some SPECs whose family this version has."""
    from alltoall.topologies.families import FAMILIES  # noqa: PLC0415

    return [spec for spec in specs if spec.partition(":")[0] in FAMILIES]


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows whose columns have these values."""
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def column(rows: Iterable[Row], name: str) -> list[float]:
    """Return the numbers of a column."""
    return [float(row[name]) for row in rows]


def each_value(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[name] for row in rows))


def by_x(rows: Iterable[Row], x: str, y: str) -> tuple[list[float], list[float]]:
    """Return two columns in the order of the first, without rows that lack the second."""
    pairs = sorted((float(row[x]), float(row[y])) for row in rows if row[y] is not None)
    return [a for a, _ in pairs], [b for _, b in pairs]


def envelope(
    rows: Iterable[Row], x: str, y: str
) -> tuple[list[float], list[float], list[float], list[float]]:
    """Return x, and the mean, the least and the largest y of all rows that share it."""
    pairs = sorted((float(row[x]), float(row[y])) for row in rows if row[y] is not None)
    groups = [(at, [y for _, y in group]) for at, group in groupby(pairs, lambda each: each[0])]
    return (
        [at for at, _ in groups],
        [math.fsum(values) / len(values) for _, values in groups],
        [min(values) for _, values in groups],
        [max(values) for _, values in groups],
    )


def largest(rows: Sequence[Row], name: str) -> float:
    """Return the largest number of a column; not a number if there is none."""
    return max((float(row[name]) for row in rows if row[name] is not None), default=math.nan)


def within_limit(find: Callable[[], Found]) -> Found | None:
    """Return what is found, or None if a method gives up at its limit."""
    try:
        return find()
    except (TimeoutError, alltoall.InputError):
        return None
