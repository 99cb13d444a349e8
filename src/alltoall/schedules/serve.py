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
from numba import njit

from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.paths import Paths
from alltoall.ir.topology import Topology
from alltoall.lp.settings import never
from alltoall.settings import Late

LEG_DISCOUNT = 0.1
"""The share of a quota by which a link counts as nearer to running dry, per leg before it."""

LONGER_WAY = 1e-3
"""The share of a quota that a leg more to go counts, among chunks that are equally urgent."""

ROUNDING = 1e-9
"""The share by which sums of sizes may be off."""


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
    state = (ways.size, ways.first, ways.begin, ways.link, pace)
    at, step = ways.first[:-1].copy(), np.empty(len(ways.begin) - 1, dtype=np.int64)
    left = np.zeros(topology.links)
    _add(state, at, np.arange(len(at)), True, left)
    # Where all else is equal, large chunks are placed first: small ones fill what these leave.
    waiting = np.argsort(-ways.size, kind="stable")
    time, now = 0.0, 0
    while len(waiting):
        if late():
            return None
        load = np.zeros(topology.links)
        _add(state, at, waiting, False, load)
        slack = left.max() - left + load
        order = waiting[np.argsort(_urgency(state, at, waiting, slack, quota), kind="stable")]
        dry = slack[load < left * (1 - ROUNDING)].min(initial=quota)
        duration = _duration(state, at, order, max(dry, shortest * quota), int(left.argmax()))
        load[:] = 0.0
        _send(state, at, order, duration, now, load, step)
        left -= load
        time, now = time + float(load.max()), now + 1
        waiting = waiting[at[waiting] < ways.first[waiting + 1]]
    return Served(step, now, time)


State = tuple[Floats, Ints, Ints, Ints, Floats]
"""Size and first leg of every chunk, first place of every leg, all links, and their pace."""


@njit(cache=True)
def _add(state: State, at: Ints, chunks: Ints, further: bool, load: Floats) -> None:
    """Add the time that chunks take on the links of their next leg, or of all further ones."""
    size, first, begin, link, pace = state
    for chunk in chunks:
        last = first[chunk + 1] if further else at[chunk] + 1
        for place in range(begin[at[chunk]], begin[last]):
            load[link[place]] += size[chunk] * pace[link[place]]


@njit(cache=True)
def _urgency(state: State, at: Ints, waiting: Ints, slack: Floats, quota: float) -> Floats:
    """Return when each chunk that waits is needed; a chunk on its last leg is so at the end."""
    _, first, begin, link, _ = state
    found = np.empty(len(waiting))
    for index, chunk in enumerate(waiting):
        least = quota
        for leg in range(at[chunk] + 1, first[chunk + 1]):
            ahead = LEG_DISCOUNT * quota * (leg - at[chunk] - 1)
            for place in range(begin[leg], begin[leg + 1]):
                least = min(least, slack[link[place]] - ahead)
        found[index] = least - LONGER_WAY * quota * (first[chunk + 1] - at[chunk])
    return found


@njit(cache=True)
def _duration(state: State, at: Ints, order: Ints, most: float, busiest: int) -> float:
    """Return how long the step takes: what the busiest link makes of it, if that sends anything.

    So links that are less busy do not make the step longer than chunks fill it there.
    """
    size, _, begin, link, pace = state
    largest = 0.0
    for chunk in order:
        for place in range(begin[at[chunk]], begin[at[chunk] + 1]):
            largest = max(largest, size[chunk] * pace[link[place]])
    sent, most = 0.0, max(most, largest)
    for chunk in order:
        more = size[chunk] * pace[busiest]
        for place in range(begin[at[chunk]], begin[at[chunk] + 1]):
            if link[place] == busiest and sent + more <= most * (1 + ROUNDING):
                sent += more
    return max(sent, largest) if sent > 0 else most


@njit(cache=True)
def _send(
    state: State, at: Ints, order: Ints, duration: float, now: int, load: Floats, step: Ints
) -> None:
    """Send each chunk for which there is room on all links of its leg, in order."""
    size, _, begin, link, pace = state
    most = duration * (1 + ROUNDING)
    for chunk in order:
        fits = True
        for place in range(begin[at[chunk]], begin[at[chunk] + 1]):
            fits = fits and load[link[place]] + size[chunk] * pace[link[place]] <= most
        if fits:
            for place in range(begin[at[chunk]], begin[at[chunk] + 1]):
                load[link[place]] += size[chunk] * pace[link[place]]
            step[at[chunk]] = now
            at[chunk] += 1
