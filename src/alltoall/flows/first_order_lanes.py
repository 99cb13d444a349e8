"""Arrays of the first-order method side by side: the flows of many groups on a link are neighbours.

Groups stand in blocks of `width` lanes, and an array [groups, links] is kept as [blocks, links,
width]. All that a step does to a link it then does to all lanes at once: nothing is gathered from
single nodes, and a processor's vector unit is always full. Lanes that no group fills carry nothing.
Where there are few groups the width is 1, which is the plain array (`first_order_loops`).
"""

import numpy as np
from numba import njit, prange
from numpy.typing import NDArray

from alltoall.flows.threads import BLOCKS
from alltoall.ir.arrays import Floats, Ints, Reals

LEAST_LANED_GROUPS = 20
"""Groups from which lanes pay: compiled loops take 32 numbers at a time."""

NARROW, WIDE = 32, 64
"""Lanes of a block: wide ones for many groups, as long as the potentials of a block stay cached."""

WIDE_NODES = 2000
"""Nodes up to which wide blocks keep their potentials in a core's own cache."""


def lanes_for(groups: int, nodes: int) -> int:
    """Return how many groups stand side by side."""
    if groups < LEAST_LANED_GROUPS:
        return 1
    return WIDE if groups > NARROW and nodes <= WIDE_NODES else NARROW


def to_lanes(rows: NDArray[np.generic], width: int, kind: object) -> NDArray[np.generic]:
    """Return an array [groups, ...] as [blocks, ..., width] of a kind of number, padded by 0."""
    groups, rest = len(rows), rows.shape[1:]
    blocks = -(-groups // width)
    lanes = np.zeros((blocks, *rest, width), dtype=kind)  # type: ignore[call-overload]
    for block in range(blocks):
        some = rows[block * width : (block + 1) * width]
        lanes[block, ..., : len(some)] = np.moveaxis(some, 0, -1)
    return np.asarray(lanes)


def to_rows(lanes: Reals, rows: Reals) -> None:
    """Write an array [blocks, links, width] to one of [groups, links]."""
    width = lanes.shape[2]
    for block in range(len(lanes)):
        some = rows[block * width : (block + 1) * width]
        some[:] = lanes[block, :, : len(some)].T


@njit(cache=True, parallel=True)
def positive_load(flow: Reals, share: Reals) -> Floats:
    """Return the weighted sums of what is positive of flows in lanes, by block and link."""
    blocks, links, width = flow.shape
    load = np.zeros((BLOCKS, links))
    for part in prange(BLOCKS):
        for block in range(blocks * part // BLOCKS, blocks * (part + 1) // BLOCKS):
            for link in range(links):
                total = 0.0
                for lane in range(width):
                    total += share[block, lane] * max(flow[block, link, lane], 0.0)
                load[part, link] += total
    return load


@njit(cache=True, parallel=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"})
def lane_step(
    ends: tuple[NDArray[np.uint32], NDArray[np.uint32]],
    groups: tuple[Ints, Reals, Reals],
    strides: tuple[Reals, Reals, Reals],
    flows: tuple[Reals, Reals],
    potentials: tuple[Reals, Reals],
    length: Reals,
    keep: float,
    load: Reals,
    moved: Floats,
) -> None:
    """Step all flows and potentials; leave the reflected flows' sums in `load`, by block.

    Loops over lanes are short and many because each then touches few arrays: what might overlap
    would keep them from being taken many numbers at a time.
    """
    root, wanted, share = groups
    blocks, links, width = flows[0].shape
    nodes = wanted.shape[1]
    zero = length.dtype.type(0.0)
    a, b = length.dtype.type(keep), length.dtype.type(1.0 - keep)
    for part in prange(BLOCKS):
        carried = load[part]
        carried[:] = zero
        distance = 0.0
        missing = np.empty((nodes, width), dtype=length.dtype)
        passed, change = np.empty(width, dtype=length.dtype), np.empty(width, dtype=length.dtype)
        for block in range(blocks * part // BLOCKS, blocks * (part + 1) // BLOCKS):
            potential, far, weight = potentials[0][block], potentials[1][block], share[block]
            missing[:] = wanted[block]
            change[:] = zero
            for link in range(links):
                flow, anchor = flows[0][block, link], flows[1][block, link]
                tail, head = ends[0][link], ends[1][link]
                before, behind = potential[tail], potential[head]
                stride, inverse, toll = strides[0][link], strides[1][link], length[link]
                for lane in range(width):
                    price = toll + before[lane] - behind[lane]
                    passed[lane] = max(flow[lane] - stride * price, zero)
                for lane in range(width):
                    step = passed[lane] - flow[lane]
                    change[lane] += step * step * inverse
                    passed[lane] += step
                for lane in range(width):
                    flow[lane] = a * passed[lane] + b * anchor[lane]
                total = zero
                for lane in range(width):
                    total += weight[lane] * passed[lane]
                carried[link] += total
                lacking, giving = missing[head], missing[tail]
                for lane in range(width):
                    lacking[lane] -= passed[lane]
                for lane in range(width):
                    giving[lane] += passed[lane]
            for lane in range(width):
                missing[root[block, lane], lane] = zero
            _raise_potentials(potential, far, missing, strides[2], (a, b), change)
            distance += (weight * change).sum()
        moved[part] = distance


@njit(cache=True, fastmath={"contract", "reassoc", "nsz", "nnan", "ninf"})
def _raise_potentials(
    potential: Reals,
    far: Reals,
    missing: Reals,
    strides: Reals,
    keep: tuple[float, float],
    change: Reals,
) -> None:
    """Step the potentials of a block where something is missing; add to how far each lane moves."""
    two, width = strides.dtype.type(2.0), len(change)
    for node in range(len(strides)):
        stride = strides[node]
        here, there, lacking = potential[node], far[node], missing[node]
        for lane in range(width):
            change[lane] += stride * lacking[lane] * lacking[lane]
        for lane in range(width):
            moving = here[lane] + two * stride * lacking[lane]
            here[lane] = keep[0] * moving + keep[1] * there[lane]
