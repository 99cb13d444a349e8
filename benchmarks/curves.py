"""Throughput against size as a picture: `python benchmarks/curves.py ROWS.csv... PICTURE.png`.

ROWS are what `benchmarks/testbed.py --only curve --csv ROWS.csv` has measured. Needs matplotlib.
"""

import csv
import sys
from collections import defaultdict
from importlib import import_module
from pathlib import Path
from typing import Any

Rows = list[dict[str, Any]]
WAYS = {"schedule": "#009e73", "native": "#882255", "single": "#0072b2", "extp": "#e69f00"}
"""What is drawn, in these colours; others are grey."""


def draw(rows: Rows, path: Path) -> None:
    """Draw what was measured, a panel for each fabric, with the certified bound as a line."""
    plots: Any = import_module("matplotlib.pyplot")
    cases: dict[str, Rows] = defaultdict(list)
    for row in rows:
        if row["part"] == "curve":
            cases[row["case"]].append(row)
    figure, panels = plots.subplots(
        1, len(cases), figsize=(4.2 * len(cases), 3.6), squeeze=False, constrained_layout=True
    )
    for panel, (case, measured) in zip(panels[0], cases.items(), strict=True):
        _panel(panel, case, measured)
    figure.savefig(path, dpi=120)


def _native(row: dict[str, Any]) -> float:
    """Return what the library's own reached, with what full buckets saved it accounted for."""
    ours, theirs, saved = (
        float(row[key]) for key in ("seconds", "native_seconds", "credit_seconds")
    )
    return float(row["throughput"]) * (ours + saved) / (theirs + saved)


def _panel(panel: Any, case: str, rows: Rows) -> None:
    lines: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        size = int(row["bytes"])
        lines[row["way"]].append((size, float(row["throughput"]) / 1e6))
        if row.get("native_seconds"):
            lines["native"].append((size, _native(row) / 1e6))
    for way, points in lines.items():
        sizes, reached = zip(*sorted(points), strict=True)
        panel.plot(sizes, reached, marker="o", markersize=3, label=way, color=WAYS.get(way, "#777"))
    bound = float(rows[0]["bound_throughput"]) / 1e6
    panel.axhline(bound, color="#555555", linestyle="--", linewidth=1, label="certified bound")
    panel.set_xscale("log", base=2)
    panel.set_ylim(0, 1.08 * bound)
    panel.set(title=case, xlabel="shard in bytes", ylabel="MB/s that a rank sends")
    panel.grid(alpha=0.3)
    panel.legend(fontsize=8)


def _read(path: str) -> Rows:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


if __name__ == "__main__":
    draw([row for path in sys.argv[1:-1] for row in _read(path)], Path(sys.argv[-1]))
