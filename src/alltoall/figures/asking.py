"""Helpers that several figures share: routing methods by name, and selections of rows."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from itertools import groupby
from typing import Any, TypeVar

import alltoall
from alltoall.figures.figure import Measurement, Quantity, Row
from alltoall.figures.picture import Series

Found = TypeVar("Found")

ROUTINGS = {
    "extp raw": "extp:raw",
    "pmcf": "pmcf:paths=disjoint",
    "pmcf shortest": "pmcf:paths=shortest",
}
"""The method of each curve whose name says less."""

BY_RULE = ("sssp", "ewsp", "dor", "ecmp", "updown")
"""Methods that follow a rule, whatever the gap."""

LOOSE = 0.99
"""Gap of methods that follow a rule, so that they do not solve for a bound."""


def routed(
    given: Any, name: str, own_bound: bool = False, layering: str = "none", **asked: Any
) -> alltoall.Routes:
    """Return routes by the named method, with layers only if requested.

    Methods by a rule prove a bound of their own only with `own_bound`.
    """
    loose = {"gap": LOOSE} if name in BY_RULE and not own_bound else {}
    method, colon, words = ROUTINGS.get(name, name).partition(":")
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
    """Return the distinct values of a column, in row order."""
    return list(dict.fromkeys(row[name] for row in rows))


def curve(rows: Iterable[Row], x: str, y: str) -> dict[float, float]:
    """Return the mean of y at every x in order, without rows that lack y."""
    return {at: math.fsum(values) / len(values) for at, values in _spread(rows, x, y).items()}


def _spread(rows: Iterable[Row], x: str, y: str) -> dict[float, list[float]]:
    pairs = sorted((float(row[x]), float(row[y])) for row in rows if row[y] is not None)
    return {at: [b for _, b in group] for at, group in groupby(pairs, lambda pair: pair[0])}


def series(rows: Iterable[Row], x: str, y: str, label: str, **look: Any) -> Series:
    """Return a line through the means of y, within the envelope of all y of an x."""
    spread = _spread(rows, x, y)
    mean = [math.fsum(values) / len(values) for values in spread.values()]
    low, high = ([end(values) for values in spread.values()] for end in (min, max))
    return Series(label, list(spread), mean, low=low, high=high, **look)


def lines_by(
    rows: Sequence[Row], by: str, x: str, y: str, shown: dict[str, str] | None = None
) -> list[Series]:
    """Return a line for each value of a column that has any y, with labels from `shown`."""
    known = [row for row in rows if row[y] is not None]
    return [
        series(where(known, **{by: value}), x, y, (shown or {}).get(value, value), style=value)
        for value in each_value(known, by)
    ]


def worst_ratio(method: str, reason: str = "") -> Quantity:
    """Return the quantity: largest time of a method over the certified bound."""
    return partial(_worst_ratio, method=method, reason=reason)


def _worst_ratio(rows: Sequence[Row], method: str, reason: str) -> Measurement | None:
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
