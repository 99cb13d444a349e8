"""The best networks found so far: `best:n=64,d=4`, from a file that comes with the package.

The file has, for every size and degree that was searched, the heads of all links as bytes, in order
of their tails, and the certified time; `benchmarks/catalogue.py` makes it.
"""

from functools import cache
from pathlib import Path

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import from_arcs

FILE = Path(__file__).with_name("catalogue.npz")
"""Where the catalogue is."""

Key = tuple[int, int, bool]
"""A size, a degree, and whether links are one way."""


def best(n: int, d: int, bidirectional: bool = False) -> Topology:
    """Build the best network of `n` nodes with `d` ports each that was found by search.

    One-way links, d out of every node and d into it, unless `bidirectional` asks for cables. Found
    among lifts of small graphs and by annealing; docs/catalogue.md says how good they are.
    """
    name = f"best:n={n},d={d}" + (",bidirectional=true" if bidirectional else "")
    table, heads = _catalogue()
    row = table.get((n, d, not bidirectional))
    if row is None:
        raise TopologyError(
            f"{name}: not in the catalogue, which has {in_words()}; run alltoall design"
        )
    start, end, time, bound = row
    tail = np.repeat(np.arange(n, dtype=np.int64), d)
    note = f"from the catalogue: certified time {time:.6g}, at least {bound:.6g}"
    return from_arcs(name, n, tail, heads[start:end].astype(np.int64), notes=(note,))


def catalogued(n: int, d: int) -> list[str]:
    """Return the SPECs of the entries of a size and degree."""
    found = {True: f"best:n={n},d={d}", False: f"best:n={n},d={d},bidirectional=true"}
    return [spec for one_way, spec in found.items() if (n, d, one_way) in _catalogue()[0]]


def in_words() -> str:
    """Return which sizes and degrees there are."""
    keys = np.array(list(_catalogue()[0]))
    sizes, degrees = keys[:, 0], keys[:, 1]
    return f"n = {sizes.min()} to {sizes.max()} and d = {degrees.min()} to {degrees.max()}"


@cache
def _catalogue() -> tuple[dict[Key, tuple[int, int, float, float]], Ints]:
    """Return where the links of every entry are with its time and bound, and all heads."""
    with np.load(FILE) as file:
        keys, start = file["key"].tolist(), file["start"].tolist()
        rows = zip(start, start[1:], file["time"].tolist(), file["bound"].tolist(), strict=False)
        table = {(n, d, bool(way)): row for (n, d, way), row in zip(keys, rows, strict=True)}
        return table, file["heads"]


def times() -> dict[str, Floats]:
    """Return what is known of all entries: keys, certified times and bounds, and `kautz` times."""
    with np.load(FILE) as file:
        return {name: file[name] for name in ("key", "time", "bound", "kautz")}
