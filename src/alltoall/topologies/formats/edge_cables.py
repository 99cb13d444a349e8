"""Cables of an edge list: their ports, and pairs of nodes that lines name in both orders."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.errors import FormatError
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.words import counted

PORT = ":"
"""What stands between a node and its port, as in `a:eth0`."""


@dataclass(frozen=True, eq=False)
class Cables:
    """The cables of a file whose ends are ports: the node of each end, and a line of each."""

    ends: Sequence[str]
    nodes: list[str]
    keep: Ints
    """The first line of each cable."""


def node_of(end: str) -> str:
    """Return the node of `a:eth0`, or of `a`."""
    return end.partition(PORT)[0]


def find_ports(
    ends: Sequence[str], u: Ints, v: Ints, width: Floats, directed: bool, where: str
) -> Cables | None:
    """Return the cables if the ends of lines are ports, None if they are nodes.

    A port has one cable, so a name with a colon that is joined to several others is a node. If
    every end has a colon and is joined to one other, no network but that of ports is connected.
    Otherwise it may be either, and where it matters the reader has to say so.
    """
    has_port = np.array([PORT in end for end in ends])
    if not has_port.any() or (_partners(u, v)[has_port] > 1).any():
        return None
    nodes = [node_of(end) for end in ends]
    if not has_port.all():
        _refuse_unclear(ends, nodes, where)
        return None
    if "" in nodes:
        raise FormatError(f"{where}: a port {ends[nodes.index('')]!r} of no node; name the node")
    keep = _distinct(ends, u, v, width, directed, where)
    return Cables(ends, nodes, keep)


def refuse_both_orders(u: Ints, v: Ints, called: Callable[[int], str], where: str) -> None:
    """Refuse lines that name a pair in both orders: one cable from both its ends, or two cables."""
    size = int(max(u.max(initial=0), v.max(initial=0))) + 1
    key, back, pair = u * size + v, v * size + u, np.minimum(u, v) * size + np.maximum(u, v)
    both = np.isin(key, back)
    if both.any():
        first = int(np.argmax(both))
        found, pairs = len(np.unique(pair[both])), len(np.unique(pair))
        raise FormatError(
            f"{where}: lines name {found:,} of {counted(pairs, 'pair')} in both orders, such as "
            f"{called(int(u[first]))} {called(int(v[first]))}; a line is a cable, which goes both "
            "ways, and one that is listed from both ends would count twice; say which it is: "
            "--directed if a line is one direction, --parallel if these are two cables "
            "(in the file, a line `# directed` or `# parallel`)"
        )


def _partners(u: Ints, v: Ints) -> Ints:
    """Return to how many others each end is joined."""
    pairs = np.unique(np.sort(np.stack([u, v]), axis=0), axis=1)
    return np.bincount(pairs.ravel()).astype(np.int64)


def _refuse_unclear(ends: Sequence[str], nodes: Sequence[str], where: str) -> None:
    """Refuse names with colons among others if their ports would make nodes of several one."""
    first: dict[str, str] = {}
    for end, node in zip(ends, nodes, strict=True):
        if node in first:
            raise FormatError(
                f"{where}: {first[node]} and {end} are two ports of {node}, or two nodes; give "
                "every line ports at both ends, or list the nodes in a line `# names: [...]`"
            )
        first[node] = end


def _distinct(
    ends: Sequence[str], u: Ints, v: Ints, width: Floats, directed: bool, where: str
) -> Ints:
    """Return the first line of each cable, in order; its other lines have the same capacity."""
    low, high = (u, v) if directed else (np.minimum(u, v), np.maximum(u, v))
    _, first, cable = np.unique(low * len(ends) + high, return_index=True, return_inverse=True)
    differs = np.flatnonzero(width != width[first[cable]])
    if len(differs):
        line = int(differs[0])
        raise FormatError(
            f"{where}: the cable {ends[u[line]]} {ends[v[line]]} is listed with two capacities; "
            "expected one"
        )
    return np.sort(first).astype(np.int64)
