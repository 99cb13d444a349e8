"""Timed paths without detours: what leads nowhere in the time-expanded graph is left out."""

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Ints
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
    ends = place[expansion.graph.tail], place[expansion.graph.head]
    return core.skip_detours(paths, *ends, expansion.graph.nodes)
