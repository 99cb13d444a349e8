"""List scheduling: chunks that know their paths are sent step by step, the most urgent first.

A path is a row of legs: the links that a chunk passes within one step, from one terminal to the
next. Most legs are one link; what enters a switch leaves it in the same step. In a step that takes
d, every link sends at most d times its capacity of what waits for it.

Let R[l] be the time that link l still needs for all that is to pass it, S[l] that for what waits at
its tail now, and R the largest R[l]. No order takes less than R from here, and link l may idle for
R - R[l] without adding to that. So it runs dry, to the loss of all, after

    slack[l]  =  R - R[l] + S[l],

and two rules follow. **How long:** a step ends when the first link runs dry, so it takes the least
slack of all links that have more to come, and no longer than a quota. The first steps are thus
short, where a busy link has little next to it that is its own. **What first:** of the chunks that
wait for a link, the one whose further way leads to the link that runs dry first; among equals, the
longer way, and then the larger chunk.
"""

from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.settings import Late


@dataclass(frozen=True, eq=False)
class Ways:
    """Chunks of a `size` on paths, which are rows of legs.

    Chunk c has the legs `first[c]` to `first[c + 1]`, leg g the links `begin[g]` to `begin[g + 1]`
    of `link`.
    """

    size: Floats
    first: Ints
    begin: Ints
    link: Ints

    @property
    def legs(self) -> int:
        """The most legs of a chunk: the fewest steps that all of them can take."""
        return int(np.diff(self.first).max())


@dataclass(frozen=True, eq=False)
class Served:
    """What comes of list scheduling: the step of each leg, and how long all steps take."""

    step: Ints
    steps: int
    time: float


def ways_of(topology: Topology, paths: Paths, size: Floats) -> Ways:
    """Return chunks on paths, with the legs that these have."""
    ends = np.isin(topology.head[paths.link], topology.terminals)
    legs = np.bincount(paths.path_of_link, ends, paths.count).astype(np.int64)
    return Ways(size, starts_of(legs), np.append(0, np.flatnonzero(ends) + 1), paths.link)


def serve(
    topology: Topology, ways: Ways, quota: float, shortest: float, late: Late = never
) -> Served | None:
    """Send all chunks in steps that take up to the quota; None if it gets late.

    A step that sends anything takes as long as the largest chunk that waits, whatever the quota. It
    is not cut short below the share `shortest` of the quota: of 1, nothing is, and there are fewest
    steps.
    """
    pace = 1 / topology.capacity
    sending = core.ListScheduler(
        ways.size, ways.first, ways.begin, ways.link, pace, quota, shortest * quota
    )
    while not sending.done:
        if late():
            return None
        sending.step()
    return Served(sending.step_of_leg, sending.steps, sending.time)
