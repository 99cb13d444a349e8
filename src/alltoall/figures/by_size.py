"""Throughput against the size of a shard: what is predicted, and below it what was measured."""

from collections.abc import Callable, Sequence
from pathlib import Path

from alltoall.figures.asking import by_x, each_value, where
from alltoall.figures.figure import Finding, Row
from alltoall.figures.picture import Panel, Series

PREDICTED, MEASURED = "predicted", "measured"
"""The two kinds of rows, and their columns in GB/s per node."""

LARGE = 1 << 20
"""Bytes of a shard that count as large."""


def panels_by_size(rows: Sequence[Row], bound: str, rate: Callable[[str, Row], str]) -> list[Panel]:
    """Return a panel for each kind and fabric, with what the bound is called and links' rates."""
    found = [row for row in rows if row[row["kind"]] is not None]
    return [
        _panel(where(found, fabric=name, kind=kind), bound, f"{name}, {kind}", rate)
        for kind in (PREDICTED, MEASURED)
        for name in each_value(where(found, kind=kind), "fabric")
    ]


def near_bound(rows: Sequence[Row], way: str, kind: str, claim: str, enough: float) -> Finding:
    """Say which share of the upper bound a way reaches on each fabric, at the best of its sizes."""
    found = [row for row in where(rows, way=way, kind=kind) if row[kind] is not None]
    if not found:
        return Finding(claim, "no emulated links here", None, "needs root on Linux")
    shares = {
        name: max(row[kind] / row["bound"] for row in where(found, fabric=name))
        for name in each_value(found, "fabric")
    }
    words = ", ".join(f"{name} {share:.3f}" for name, share in shares.items())
    measured = f"of the upper bound {words}"
    if max(row["bytes"] for row in found) < LARGE:
        return Finding(claim, measured, None, "only small shards are part of this size")
    return Finding(claim, measured, min(shares.values()) > enough)


def _panel(rows: Sequence[Row], bound: str, title: str, rate: Callable[[str, Row], str]) -> Panel:
    kind = str(rows[0]["kind"])
    unit, scale = ("GB/s", 1.0) if kind == PREDICTED else ("MB/s", 1e3)
    scaled = [{**row, kind: scale * row[kind], "bound": scale * row["bound"]} for row in rows]
    x, least = by_x(where(scaled, way=rows[0]["way"]), "bytes", "bound")
    lines = [Series(bound, x, least, dashed=True, style="bound")]
    for way in each_value(scaled, "way"):
        series = by_x(where(scaled, way=way), "bytes", kind)
        lines.append(Series(Path(str(way)).name, *series, style=str(way)))
    title += rate(kind, rows[0])
    return Panel(title, "bytes of a shard", f"{unit} per node", lines, x_log=True, from_zero=True)
