"""Who stands where around the circle of a group, and who in its middle."""

import numpy as np

from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.topology import Topology


def circle(count: int, begin: float) -> Floats:
    """Return places one apart around a circle, clockwise from an angle."""
    angle = begin + 2 * np.pi * np.arange(count) / max(count, 1)
    radius = 0.0 if count == 1 else 0.5 / np.sin(np.pi / max(count, 2))
    places: Floats = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return places


def seats(topology: Topology, own: Ints) -> tuple[Ints, Ints]:
    """Return the nodes around the circle of a group, and those in its middle.

    A switch stands beside the nodes that it serves, so that its links do not cross all others, and
    in the middle if it serves most of them.
    """
    terminal = np.isin(own, topology.terminals)
    number = np.full(topology.nodes, -1, dtype=np.int64)
    number[own] = np.arange(len(own))
    seat, central = np.arange(len(own), dtype=np.float64), np.zeros(len(own), dtype=np.bool_)
    for switch in np.flatnonzero(~terminal):
        near = number[topology.head[topology.tail == own[switch]]]
        served = np.unique(near[(near >= 0) & terminal[near]])
        central[switch] = 2 * len(served) > max(int(terminal.sum()), 3)
        if len(served):
            seat[switch] = served.mean() + 0.25
    if 3 * central.sum() > len(own):
        central[:] = False  # A middle of so many would be a circle of its own.
    ring = np.flatnonzero(~central)
    return own[ring[np.argsort(seat[ring], kind="stable")]], own[central]
