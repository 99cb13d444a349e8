"""Helpers that several figures share: routing methods by name, and selections of rows."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any, TypeVar

import alltoall
from alltoall.figures.figure import Measurement, Row
from alltoall.figures.picture import Series

Found = TypeVar("Found")

ROUTINGS = {
    "extp raw": "extp:raw",
    "pmcf": "pmcf:paths=disjoint",
    "pmcf shortest": "pmcf:paths=shortest",
    **{
        each: each
        for each in (
            *("extp", "single", "ilp-disjoint", "ilp-shortest", "sssp", "ewsp", "dor"),
            *("ecmp", "updown"),
        )
    },
}
"""The method of each curve."""


BY_RULE = ("sssp", "ewsp", "dor", "ecmp", "updown")
"""Methods that follow a rule, whatever the gap."""

LOOSE = 0.99
"""The gap asked of them, so that they do not solve for a bound of their own."""


def routed(
    given: Any, name: str, own_bound: bool = False, layering: str = "none", **asked: Any
) -> alltoall.Routes:
    """Return routes by the method of this name, without layers unless they are asked for.

    Methods by a rule prove a bound of their own only with `own_bound`.
    """
    loose = {"gap": LOOSE} if name in BY_RULE and not own_bound else {}
    method, colon, words = ROUTINGS[name].partition(":")
    method = f"{method}:{words}{',' if colon else ''}layering={layering}"
    return alltoall.route(given, method, **(loose | asked))


@lru_cache(maxsize=4)
def certified_bound(given: str | alltoall.Topology, gap: float = 1e-6) -> float:
    """Return the certified bound of a topology, solved once for all methods."""
    return alltoall.solve(given, gap=gap).bound


def where(rows: Iterable[Row], **wanted: object) -> list[Row]:
    """Return the rows with these values."""
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


def enveloped(rows: Sequence[Row], by: str, x: str, y: str) -> list[Series]:
    """Return a line for each value of a column: the mean of y within its envelope."""
    lines = []
    for value in each_value(rows, by):
        at, mean, low, high = envelope(where(rows, **{by: value}), x, y)
        lines.append(Series(value, at, mean, low=low, high=high))
    return lines


def worst_ratio(rows: Sequence[Row], method: str, reason: str = "") -> Measurement | None:
    """Return the largest time of a method over the certified bound."""
    ratios = [row["ratio"] for row in where(rows, method=method) if row["ratio"] is not None]
    if not ratios:
        return None
    return Measurement(max(ratios), f"up to {max(ratios):.4f} times the certified bound", reason)


def within_limit(find: Callable[[], Found]) -> Found | None:
    """Return a result, or None if a method gives up at its limit."""
    try:
        return find()
    except (TimeoutError, alltoall.InputError):
        return None
