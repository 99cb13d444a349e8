"""Helpers of the families: checks made before anything is allocated, and links from arrays."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints
from alltoall.ir.topology import MAX_LINKS, MAX_NODES, Topology

_MAX_EXPONENT = 64
"""2**64 is above every limit, so larger powers need not be computed."""


def require(holds: bool, name: str, problem: str) -> None:
    """Raise a `TopologyError` about the topology `name` unless `holds`."""
    if not holds:
        raise TopologyError(f"{name}: {problem}")


def check_size(name: str, nodes: int, links: int) -> None:
    """Refuse a topology above the limits from its counts alone, before it is built."""
    for count, limit, kind in ((nodes, MAX_NODES, "nodes"), (links, MAX_LINKS, "links")):
        # Python refuses to print integers of thousands of digits.
        shown = f"{count:,}" if count < 10**15 else "more than 10^15"
        problem = f"would have {shown} {kind}; at most {limit:,} are supported"
        require(count <= limit, name, f"{problem}, choose smaller parameters")


def power(base: int, exponent: int) -> int:
    """Return `base ** exponent`, or if huge a smaller number above all limits."""
    return int(base ** min(exponent, _MAX_EXPONENT))


def shape_name(dims: Iterable[int]) -> str:
    """Write dimensions as in a SPEC: `3x3x3`."""
    return "x".join(map(str, dims))


def from_arcs(
    name: str,
    nodes: int,
    tail: Ints,
    head: Ints,
    capacity: ArrayLike = 1.0,
    terminals: Ints | None = None,
    notes: tuple[str, ...] = (),
) -> Topology:
    """Build from arrays of directed links, sorted by tail, then head."""
    order = np.lexsort((head, tail))
    width = np.broadcast_to(np.asarray(capacity, dtype=np.float64), tail.shape)[order]
    ends = np.arange(nodes, dtype=np.int64) if terminals is None else terminals
    return Topology(name, nodes, tail[order], head[order], width, ends, notes)


def from_pairs(
    name: str,
    nodes: int,
    left: Ints,
    right: Ints,
    capacity: ArrayLike = 1.0,
    terminals: Ints | None = None,
) -> Topology:
    """Build from arrays of undirected edges, like `Topology.from_edges`."""
    tail, head = np.concatenate([left, right]), np.concatenate([right, left])
    width = np.broadcast_to(np.asarray(capacity, dtype=np.float64), left.shape)
    return from_arcs(name, nodes, tail, head, np.tile(width, 2), terminals)
