"""Draw the catalogue: time over bound against N, beside generalized Kautz and other families.

    python benchmarks/catalogue_picture.py families docs/img/catalogue.csv
    python benchmarks/catalogue_picture.py plot docs/img/catalogue.csv

`families` solves the other families once, a row for each network; what the file has is not solved
again. `plot` draws those rows, and what the package has of generalized Kautz graphs and of its own,
as an SVG beside the file. It needs matplotlib (`pip install '.[plots]'`).
"""

import argparse
import csv
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

import alltoall
from alltoall.designs.fitting import FITTING, fitting_specs
from alltoall.figures.drawing import render
from alltoall.figures.picture import Panel, Picture, Series
from alltoall.flows.bounds import cable_bound, regular_bound
from alltoall.topologies.expanders import times

NODES = range(8, 257)
"""The sizes of the catalogue."""

ONE_WAY, CABLES = (2, 4, 8), (3, 4, 8)
"""The degrees that are drawn; of cables with two ports a node there are rings only."""

FEW = 24
"""Sizes of a family that are solved, at most: spread evenly over those that it has."""

GAP = 1e-2
"""The certified gap of the times of families."""

LEFT_OUT = {"best", "genkautz", "mesh", "ring"}
"""Drawn otherwise, not of one degree, or the same as a torus of one dimension."""

HIGHEST = 2.5
"""Ratios above this are not drawn: the ring has 9.6 at 256 nodes."""

RARE = 8
"""Families with fewer networks than this here share a mark."""

COLUMNS = ("family", "spec", "nodes", "degree", "cables", "time", "bound")

Row = dict[str, str]


def members(family: str, degree: int) -> list[tuple[int, str]]:
    """Return some members of a family with this degree, no grid longer than twice its width."""
    found = [
        (nodes, spec)
        for nodes in NODES
        for spec in fitting_specs(family, nodes, degree)[:1]
        if _cubic(spec)
    ]
    chosen = np.unique(np.linspace(0, len(found) - 1, min(FEW, len(found))).round().astype(int))
    return [found[at] for at in chosen]


def _cubic(spec: str) -> bool:
    """Whether a torus is about as long as it is wide."""
    family, _, shape = spec.partition(":")
    sides = [int(side) for side in shape.split("x")] if family == "torus" else [1]
    return max(sides) <= 2 * max(min(sides), 3)


def solve_families(path: Path) -> None:
    """Append the certified times of families that a file does not have, small ones first."""
    done = {row["spec"] for row in read(path)}
    wanted = sorted(
        (nodes, spec, family, degree)
        for degree in {*ONE_WAY, *CABLES}
        for family in FITTING.keys() - LEFT_OUT
        for nodes, spec in members(family, degree)
        if spec not in done
    )
    with path.open("a", newline="") as file:
        rows = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if not done:
            rows.writeheader()
        for _, spec, family, degree in wanted:
            if row := solved(family, spec, degree):
                rows.writerow(row)
                file.flush()


def solved(family: str, spec: str, degree: int) -> dict[str, object] | None:
    """Return the row of a network; None if it is not regular, or not connected."""
    try:
        topology = alltoall.topology(spec)
        regular = {*topology.out_degree.tolist(), *topology.in_degree.tolist()} == {degree}
        flow = alltoall.solve(topology, method="first-order", gap=GAP) if regular else None
    except alltoall.InputError:
        return None
    if flow is None:
        return None
    values = (family, spec, topology.nodes, degree, int(topology.bidirectional))
    return dict(zip(COLUMNS, (*values, f"{flow.time:.6g}", f"{flow.bound:.6g}"), strict=True))


def read(path: Path) -> list[Row]:
    """Return the rows of a file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@cache
def least(nodes: int, degree: int, cables: bool) -> float:
    """Return the bound for any network of a size and degree."""
    return float((cable_bound if cables else regular_bound)(nodes, degree))


def plot(path: Path) -> None:
    """Draw a panel for every degree, one-way links above and cables below."""
    rows = read(path)
    panels = [
        Panel(
            f"{'cables' if cables else 'one-way links'}, degree {degree}",
            "nodes N",
            "time / bound for any such network",
            [*known(degree, cables), *families(rows, degree, cables)],
        )
        for cables, degrees in ((False, ONE_WAY), (True, CABLES))
        for degree in degrees
    ]
    note = (
        "Certified times: those of the catalogue and of generalized Kautz graphs to 0.1 %, those "
        f"of other families to {GAP:.0%}. The bound of one-way links is lower than that of cables. "
        f"What is above {HIGHEST} is not drawn, such as rings and tori of degree 3. Others: "
        f"{', '.join(sorted(rare(rows)))}."
    )
    title = "The catalogue beside other networks"
    picture = Picture(title, panels, columns=3, note=note)
    path.with_suffix(".svg").write_bytes(render(picture)["svg"])


def known(degree: int, cables: bool) -> Iterator[Series]:
    """Yield what the package knows: generalized Kautz graphs, and the best found."""
    table = times()
    key = table["key"]
    mine = (key[:, 1] == degree) & (key[:, 2] == (not cables))
    nodes = key[mine, 0].tolist()
    bound = np.array([least(n, degree, cables) for n in nodes])
    if not cables:
        ratio = (table["kautz"][mine] / bound).tolist()
        yield Series("genkautz", nodes, ratio, kind="bound", style="kautz")
    yield Series("best", nodes, (table["time"][mine] / bound).tolist(), kind="curve")


def families(rows: list[Row], degree: int, cables: bool) -> Iterator[Series]:
    """Yield the other families; those of cables are networks of one-way links, too."""
    for label, drawn in (*((name, {name}) for name in common(rows)), ("others", rare(rows))):
        points = [
            (nodes, ratio)
            for row in rows
            if row["family"] in drawn and int(row["degree"]) == degree
            if int(row["cables"]) or not cables
            if (nodes := int(row["nodes"]))
            if (ratio := float(row["time"]) / least(nodes, degree, cables)) <= HIGHEST
        ]
        if points:
            x, y = zip(*points, strict=True)
            yield Series(label, x, y, kind="dots")


def common(rows: list[Row]) -> list[str]:
    """Return the families that have a mark of their own."""
    count = Counter(row["family"] for row in rows)
    return [name for name in FITTING if count[name] >= RARE]


def rare(rows: list[Row]) -> set[str]:
    """Return the other families."""
    return {row["family"] for row in rows} - set(common(rows))


def main() -> None:
    """Do what the words ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("families", "plot"))
    parser.add_argument("file", type=Path)
    asked = parser.parse_args()
    (solve_families if asked.what == "families" else plot)(asked.file)


if __name__ == "__main__":
    main()
