"""What a search finds against families and bounds: directed, cables, and a slice of 128 nodes.

    python benchmarks/design.py [--only directed|cables|opposite|any]... [--quick]
        [--time-limit SECONDS]

Prints certified times, all measured in one run: the table of one-way links, cables for N = 16..256,
and the slice of two 4x4x4 cubes whose 288 inner cables stay and whose 96 optical ones are placed,
each port joined to the same place of an opposite face only, or any port to any. Published for that
slice (TONS, 2026): 71.44; the torus has 128.1 and the twisted torus 73.5. Without a time limit a
search does a fixed amount of work, and its times are the same on every machine.
"""

import argparse
import tempfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import numpy as np

import alltoall
from alltoall.designs.candidate import Candidate
from alltoall.designs.design import Design

DIRECTED = ((24, 3), (40, 4), (64, 4), (100, 4))
"""Nodes and one-way links of each."""

CABLES = ((16, 3), (16, 4), (32, 4), (64, 4), (64, 6), (128, 4), (128, 6), (256, 4), (256, 8))
"""Nodes and cables of each."""

SIDE, CUBES = 4, 2
"""The slice: so many cubes of so many nodes a side."""

PUBLISHED = 71.44
"""What TONS publishes for the slice."""

PARTS = ("directed", "cables", "opposite", "any")
"""What can be asked for."""


def main() -> None:
    """Print all tables, or those that are asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be repeated")
    parser.add_argument("--quick", action="store_true", help="only the smallest of each table")
    parser.add_argument("--time-limit", type=float, help="seconds for each search and its proofs")
    asked = parser.parse_args()
    parts = asked.only or PARTS
    for name, sizes in (("directed", DIRECTED), ("cables", CABLES)):
        if name in parts:
            print_table(sizes[: 1 if asked.quick else None], name == "cables", asked.time_limit)
    for kind in ("opposite", "any"):
        if kind in parts:
            print_slice(kind, asked.time_limit)


def print_table(sizes: Iterable[tuple[int, int]], cables: bool, limit: float | None) -> None:
    """Print the table of networks of one degree."""
    columns = ("N, d", "bound", "genkautz", "best family", "catalogue", "found", "found / bound")
    print(f"# {'cables' if cables else 'one-way links'}\n| {' | '.join(columns)} | seconds |")
    print("|---" * (len(columns) + 1) + "|")
    for nodes, degree in sizes:
        search = partial(alltoall.design, nodes, degree=degree, bidirectional=cables)
        found, seconds = timed(partial(search, time_limit=limit))
        known = [each for each in found.candidates if not each.searched]
        times = (
            least(each for each in known if each.name.startswith("genkautz")),
            least(each for each in known if not each.name.startswith("best:")),
            least(each for each in known if each.name.startswith("best:")),
            least(each for each in found.candidates if each.searched),
        )
        cells = [f"{found.bound:.3f}", *(f"{each:.3f}" if each < np.inf else "" for each in times)]
        ratio = f"{times[-1] / found.bound:.4f}"
        print(f"| {nodes}, {degree} | {' | '.join([*cells, ratio])} | {seconds:.1f} |", flush=True)


def least(candidates: Iterable[Candidate]) -> float:
    """Return the least certified time; infinite if there is none."""
    return min((each.time for each in candidates), default=np.inf)


def print_slice(kind: str, limit: float | None) -> None:
    """Print the certified time of a slice whose ports are joined to opposite faces, or to any."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slice.toml"
        path.write_text(slice_constraints(kind))
        found, seconds = timed(lambda: alltoall.design(constraints=path, time_limit=limit))
    best = found.best
    print(
        f"# a slice of 4x4x8, {kind}: {best.time:.3f}, at least {best.flow.bound:.3f} for this "
        f"wiring; {best.time / PUBLISHED:.4f} of what is published; {seconds:.1f} s",
        flush=True,
    )


def slice_constraints(kind: str) -> str:
    """Return the constraints of the slice."""
    fixed = f'[fixed]\ntopology = "mesh:{SIDE}x{SIDE}x{SIDE}"\ncopies = {CUBES}\n'
    if kind == "any":
        return f"{fixed}[ports]\ndegree = 6\n"
    cube = np.arange(SIDE**3).reshape(SIDE, SIDE, SIDE)
    panels = []
    for axis in range(3):
        high, low = (np.take(cube, place, axis).ravel() for place in (SIDE - 1, 0))
        for first, second in zip(high.tolist(), low.tolist(), strict=True):
            sides = [[node + SIDE**3 * copy for copy in range(CUBES)] for node in (first, second)]
            panels.append(f"[[panels]]\nfirst = {sides[0]}\nsecond = {sides[1]}\n")
    return fixed + "".join(panels)


def timed(job: Callable[[], Design]) -> tuple[Design, float]:
    """Return what a job returns, and the seconds that it took."""
    began = time.perf_counter()
    found = job()
    return found, time.perf_counter() - began


if __name__ == "__main__":
    main()
