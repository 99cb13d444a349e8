"""Helpers that several figures share: routing methods by name, and selections of rows."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import alltoall
from alltoall.figures.figure import Measurement, Row
from alltoall.figures.picture import Panel, Series

Found = TypeVar("Found")

ROUTINGS = {
    "extp raw": "extp:raw",
    "pmcf": "pmcf:paths=disjoint",
    "pmcf shortest": "pmcf:paths=shortest",
}
"""The method of each curve whose name says less."""

NAMES = {
    "extp": "MCF-extP",
    "extp raw": "MCF-extP raw",
    "extp raw, not paced": "MCF-extP raw, not paced",
    "extp raw, flow per chunk": "MCF-extP raw, a flow per chunk",
    "extp, not paced": "MCF-extP, not paced",
    "pmcf": "pMCF (disjoint)",
    "pmcf shortest": "pMCF (shortest)",
    "single": "one route, ours",
    "ilp-disjoint": "ILP-disjoint",
    "ilp-shortest": "ILP-shortest",
    "sssp": "SSSP",
    "ewsp": "EwSP",
    "dor": "DOR",
    "ecmp": "ECMP",
    "updown": "up*/down*",
    "ours": "tsMCF",
    "tsmcf": "tsMCF",
    "sccl": "SCCL",
    "taccl": "TACCL",
    "library": "MPI library",
}
"""Labels of curves: the names of the paper."""

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


def lines_by(rows: Iterable[Row], by: str, x: str, y: str) -> list[Series]:
    """Return a line for each value of a column that has any y."""
    known = [row for row in rows if row[y] is not None]
    lines = []
    for value in each_value(known, by):
        label = NAMES.get(value, Path(str(value)).name)
        lines.append(series(where(known, **{by: value}), x, y, label, style=str(value)))
    return lines


ONE_ROUTE = ("single", "ilp-disjoint", "sssp")
"""Methods that give each pair one route."""


def ratio_panels(rows: Sequence[Row], x: str, label: str) -> list[Panel]:
    """Return times over the bound of methods with several routes per pair, and with one."""
    panels = []
    for title, one in (("several routes per pair", False), ("one route per pair", True)):
        found = [row for row in rows if (row["method"] in ONE_ROUTE) == one]
        lines = lines_by(found, "method", x, "ratio")
        y = "all-to-all time / certified bound"
        panels.append(Panel(title, label, y, lines, scale=y))
    return panels


def worst_ratio(rows: Iterable[Row], method: str, reason: str = "") -> Measurement | None:
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
