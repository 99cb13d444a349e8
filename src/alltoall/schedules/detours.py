"""Timed paths without detours: what leads nowhere in the time-expanded graph is left out."""

import numpy as np
from numba import njit

from alltoall.ir.arrays import Ints
from alltoall.ir.paths import NOTHING
from alltoall.schedules.expansion import Expansion


def without_detours(expansion: Expansion, paths: Ints) -> Ints:
    """Return the same paths without what leads back to where the chunk has been, or stays there.

    A chunk that returns to a terminal could have waited there, and one that returns to a switch
    within a step could have gone on at once. So no load grows, no chunk leaves its destination, and
    what is left are the hops: waiting leads nowhere, and goes too.
    """
    terminals = len(expansion.starts)
    node = np.arange(expansion.graph.nodes)
    # All copies of a terminal are one place; a switch stores nothing, so each of its copies is one.
    stored = node < (expansion.steps + 1) * terminals
    place = np.where(stored, node % terminals, node)
    shorter = np.full_like(paths, NOTHING)
    _skip_detours(paths, place[expansion.graph.tail], place[expansion.graph.head], shorter)
    return shorter


@njit(cache=True)
def _skip_detours(paths: Ints, tail: Ints, head: Ints, shorter: Ints) -> None:
    nowhere = -1
    depth = np.full(max(tail.max(), head.max()) + 1, nowhere)
    for chunk in range(len(paths)):
        length = 0
        for hop, link in enumerate(paths[chunk]):
            if link == NOTHING:
                break
            if hop == 0:
                depth[tail[link]] = 0
            if depth[head[link]] == nowhere:
                shorter[chunk, length] = link
                length += 1
                depth[head[link]] = length
                continue
            while length > depth[head[link]]:
                length -= 1
                depth[head[shorter[chunk, length]]] = nowhere
                shorter[chunk, length] = NOTHING
        if paths[chunk, 0] != NOTHING:
            depth[tail[paths[chunk, 0]]] = nowhere
        for link in shorter[chunk, :length]:
            depth[head[link]] = nowhere
