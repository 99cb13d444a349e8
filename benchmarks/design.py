"""What a search finds against families and bounds: directed, cables, and a slice of 128 nodes.

    python benchmarks/design.py [--quick]

Prints certified times, all measured in one run: the table of one-way links, cables for N = 16..256,
and the slice of two 4x4x4 cubes whose 288 inner cables stay and whose 96 optical ones are placed.
Published for that slice (TONS, 2026): 71.44; the torus has 128.1 and the twisted torus 73.5.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import a2aflow
from a2aflow.designs.design import Design

DIRECTED = ((24, 3), (40, 4), (64, 4), (100, 4))
CABLES = ((16, 3), (16, 4), (32, 4), (64, 4), (64, 6), (128, 4), (128, 6), (256, 4), (256, 8))
SIDE, CUBES = 4, 2
PUBLISHED = 71.44
"""What TONS publishes for the slice."""


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the smallest of each table")
    quick = parser.parse_args().quick
    for name, sizes, cables in (("one-way links", DIRECTED, False), ("cables", CABLES, True)):
        print(f"# {name}\n{'N, d':>8} {'bound':>9} {'family':>9} {'found':>9} {'ratio':>7} seconds")
        for nodes, degree in sizes[: 1 if quick else None]:
            print_size(nodes, degree, cables)
    print("# a slice of 4x4x8: 288 cables stay, 96 are placed")
    for kind in ("opposite", "any"):
        print_slice(kind)


def print_size(nodes: int, degree: int, cables: bool) -> None:
    """Print the bound, the best family, the best found and their ratio."""
    found, seconds = timed(lambda: a2aflow.design(nodes, degree=degree, bidirectional=cables))
    families = [
        each.time
        for each in found.candidates
        if not each.searched and not each.name.startswith("best:")
    ]
    best, family = found.best.time, min(families)
    print(
        f"{nodes:>4}, {degree} {found.bound:>9.3f} {family:>9.3f} {best:>9.3f} "
        f"{best / family:>7.4f} {seconds:.1f}"
    )


def print_slice(kind: str) -> None:
    """Print the certified time of a slice whose ports are joined to opposite faces, or to any."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "slice.toml"
        path.write_text(slice_constraints(kind))
        found, seconds = timed(lambda: a2aflow.design(constraints=path))
    best = found.best
    print(
        f"{kind:>9}: {best.time:.3f}, at least {best.flow.bound:.3f} for this wiring; "
        f"{best.time / PUBLISHED:.4f} of what is published; {seconds:.1f} s"
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
