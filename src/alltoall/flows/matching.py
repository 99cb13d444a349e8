"""Match the nodes and links of a degraded network to the original.

Removed nodes keep the order of the others, so node v of the degraded network was node v + s, where
the shift s grows with v up to the number of removed nodes. A shift is possible if every link of the
node was a link before, for some possible shift of its other end; impossible shifts are struck out
until nothing changes, and if several remain, each is tried in turn. Networks that are not part of
one another are matched by local search.
"""

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.arrays import Ints, inner_index
from alltoall.ir.topology import Topology

NOWHERE = -1
"""The match of a new node or link."""

MOST_LOOKUPS = 1_000_000_000
"""The most link lookups of the local search."""

LEAST_LEFT = 0.5
"""The least share of links that the same network keeps."""

MOST_SHIFTS = 50_000_000
"""The most pairs of shifts of the ends of all links."""

MOST_TRIES = 200
"""The most tries if several shifts remain."""

Shifts = NDArray[np.bool_]
"""Whether each node may be shifted by each number."""


def require_same_network(old: Topology, new: Topology) -> None:
    """Raise unless one network is a large part of the other; capacities may differ."""
    node = matching_nodes(old, new)
    shared = int((matching_links(old, new, node) != NOWHERE).sum())
    if shared < max(min(old.links, new.links), LEAST_LEFT * max(old.links, new.links)):
        raise InputError(
            f"the answer to begin with is for {old.name}, with {old.nodes} nodes and {old.links} "
            f"links; {shared} of these are among the {new.links} of {new.name}, which has "
            f"{new.nodes} nodes. Expected an answer for the same network, before or after some of "
            "its links or nodes failed: give that, or leave it out (--from)"
        )


def matching_nodes(old: Topology, new: Topology) -> Ints:
    """Return the node of `old` for each node of `new`, or NOWHERE."""
    gone = old.nodes - new.nodes
    every = np.arange(new.nodes, dtype=np.int64)
    if gone == 0:
        return every
    large, small = (old, new) if gone > 0 else (new, old)
    few = (abs(gone) + 1) ** 2 * min(old.links, new.links) <= MOST_SHIFTS
    shift = _find_shifts(large, small, abs(gone)) if few else None
    if gone < 0:
        back = np.full(new.nodes, NOWHERE, dtype=np.int64)
        back[np.arange(old.nodes) + (0 if shift is None else shift)] = np.arange(old.nodes)
        return back
    if shift is not None:
        return every + shift
    late = gone * old.nodes * new.links > MOST_LOOKUPS
    return every if late else _search_removed(old, new, gone)


def _find_shifts(old: Topology, new: Topology, gone: int) -> Ints | None:
    """Return a shift of each node that maps every link to a link, or None."""
    known = np.unique(old.tail * old.nodes + old.head)
    shift = np.arange(gone + 1)
    tail, head = (ends[:, None] + shift for ends in (new.tail, new.head))
    keys = tail[:, :, None] * old.nodes + head[:, None, :]
    fits = known[np.minimum(np.searchsorted(known, keys), len(known) - 1)] == keys
    sends = [np.isin(np.arange(each.nodes), each.terminals) for each in (old, new)]
    may = sends[0][np.arange(new.nodes)[:, None] + shift] == sends[1][:, None]
    waiting, tries = [may], 0
    while waiting and tries < MOST_TRIES:
        may, tries = waiting.pop(), tries + 1
        if not _strike_out(new, fits, may):
            continue
        open_nodes = np.flatnonzero(may.sum(axis=1) > 1)
        if not len(open_nodes):
            return np.asarray(np.argmax(may, axis=1), dtype=np.int64)
        for each in np.flatnonzero(may[open_nodes[0]])[::-1]:
            only = may.copy()
            only[open_nodes[0]] = shift == each
            waiting.append(only)
    return None


def _strike_out(new: Topology, fits: Shifts, may: Shifts) -> bool:
    """Strike out impossible shifts, in place; return whether each node has one left."""
    while True:
        before = int(may.sum())
        for ends, others, way in (
            (new.tail, new.head, fits),
            (new.head, new.tail, fits.swapaxes(1, 2)),
        ):
            possible = (way & may[others][:, None, :]).any(axis=2)
            np.logical_and.at(may, ends, possible)
        least = np.maximum.accumulate(np.argmax(may, axis=1))
        last = may.shape[1] - 1 - np.argmax(may[:, ::-1], axis=1)
        most = np.minimum.accumulate(last[::-1])[::-1]
        shift = np.arange(may.shape[1])
        may &= (shift >= least[:, None]) & (shift <= most[:, None])
        if not may.any(axis=1).all():
            return False
        if int(may.sum()) == before:
            return True


def _search_removed(old: Topology, new: Topology, gone: int) -> Ints:
    """Choose the removed nodes one after the other, so that most links were links before."""
    known = np.unique(old.tail * old.nodes + old.head)

    def kept(removed: list[int]) -> int:
        node = np.delete(np.arange(old.nodes), removed)
        return int(np.isin(node[new.tail] * old.nodes + node[new.head], known).sum())

    removed, before = list(range(new.nodes, old.nodes)), [-1]
    while removed != before:
        before = list(removed)
        for index in range(gone):
            others = removed[:index] + removed[index + 1 :]
            choices = sorted(set(range(old.nodes)) - set(others))
            removed[index] = max(choices, key=lambda node: kept([*others, node]))
    return np.delete(np.arange(old.nodes, dtype=np.int64), removed)


def matching_links(old: Topology, new: Topology, node: Ints) -> Ints:
    """Return the link of `old` for each link of `new`, or NOWHERE.

    Parallel links match in their order.
    """
    ends = {key: link for link, key in enumerate(_rank_links(old.tail, old.head))}
    found = (ends.get(key, NOWHERE) for key in _rank_links(node[new.tail], node[new.head]))
    return np.fromiter(found, dtype=np.int64, count=new.links)


def _rank_links(tail: Ints, head: Ints) -> list[tuple[int, int, int]]:
    """Return the ends of each link, and the number of earlier links with the same ends."""
    order = np.lexsort((head, tail))
    pairs = np.stack((tail, head), axis=1)[order]
    first = np.flatnonzero(np.append(True, (pairs[1:] != pairs[:-1]).any(axis=1)))
    rank = np.empty(len(tail), dtype=np.int64)
    rank[order] = inner_index(np.diff(np.append(first, len(tail))))
    return list(zip(tail.tolist(), head.tolist(), rank.tolist(), strict=True))
