"""Products of paths, cycles and complete graphs: ring, mesh, torus, hypercube, HyperX.

Nodes are numbered row-major: the last coordinate varies fastest. All links go both ways.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.grid import Line
from alltoall.ir.topology import Topology
from alltoall.topologies.hierarchical import palm_tree
from alltoall.topologies.parts import check_size, from_pairs, power, require, shape_name

_EDGES: dict[Line, Callable[[int], int]] = {
    Line.PATH: lambda size: size - 1,
    Line.CYCLE: lambda size: size - (size <= 2),
    Line.CLIQUE: lambda size: size * (size - 1) // 2,
}
"""The number of edges of a grid line of so many nodes."""


def ring(n: int) -> Topology:
    """Build the ring of `n` nodes: node v has links to v + 1 and v - 1 modulo n.

    A ring of two nodes is one link each way. The one-dimensional torus (k-ary 1-cube) of Dally,
    "Performance analysis of k-ary n-cube interconnection networks", IEEE Trans. Comput. 1990.
    """
    return _product(f"ring:{n}", (n,), Line.CYCLE)


def mesh(dims: tuple[int, ...]) -> Topology:
    """Build the mesh: nodes are grid points, links join those one step apart in one dimension.

    There is no wrap-around. Cartesian product of paths; see Dally and Towles, "Principles and
    Practices of Interconnection Networks", 2004, chapter 5.
    """
    return _product(f"mesh:{shape_name(dims)}", dims, Line.PATH)


def torus(dims: tuple[int, ...]) -> Topology:
    """Build the torus: a mesh whose every dimension wraps around, a product of cycles.

    A dimension of 2 gives one link each way, not two, and a dimension of 1 adds none. See Dally
    and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 5.
    """
    return _product(f"torus:{shape_name(dims)}", dims, Line.CYCLE)


def hypercube(dim: int) -> Topology:
    """Build the binary hypercube: 2^dim nodes, linked where their numbers differ in one bit.

    See Saad and Schultz, "Topological properties of hypercubes", IEEE Trans. Comput. 1988.
    """
    name = f"hypercube:{dim}"
    require(dim >= 1, name, f"the dimension is {dim}; expected 1 or more")
    check_size(name, power(2, dim), dim * power(2, dim))
    return _product(name, (2,) * dim, Line.PATH)


def twisted_hypercube(dim: int) -> Topology:
    """Build the twisted cube TQ_dim: a hypercube in which one pair of parallel edges is crossed.

    On the 4-cycle 0-1-3-2 the opposite edges {0, 1} and {2, 3} become {0, 3} and {1, 2}, which
    takes the diameter from dim to dim - 1. Esfahanian, Ni and Sagan, "The twisted N-cube with
    application to multiprocessing", IEEE Trans. Comput. 1991.
    """
    name = f"twisted-hypercube:{dim}"
    require(dim >= 3, name, f"the dimension is {dim}; a twist shortens paths from dimension 3 on")
    check_size(name, power(2, dim), dim * power(2, dim))
    cube = hypercube(dim)
    head = cube.head.copy()
    for tail, old, new in ((0, 1, 3), (1, 0, 2), (2, 3, 1), (3, 2, 0)):
        head[(cube.tail == tail) & (cube.head == old)] = new
    forth = cube.tail < head
    return from_pairs(name, cube.nodes, cube.tail[forth], head[forth])


def hyperx(dims: tuple[int, ...]) -> Topology:
    """Build the regular HyperX: nodes that differ in exactly one coordinate are linked.

    Every grid line is a complete graph; all links have capacity 1 and the routers are the
    terminals. Ahn, Binkert, Davis, McLaren and Schreiber, "HyperX: topology, routing, and
    packaging of efficient large-scale networks", SC 2009.
    """
    return _product(f"hyperx:{shape_name(dims)}", dims, Line.CLIQUE)


def _product(name: str, dims: tuple[int, ...], line: Line) -> Topology:
    shown = shape_name(dims) or "none"
    sound = len(dims) > 0 and min(dims) >= 1
    require(sound, name, f"the dimensions are {shown}; expected 1 or more in each")
    nodes = math.prod(dims)
    check_size(name, nodes, 2 * sum(nodes // size * _EDGES[line](size) for size in dims))
    # Dimensions of 1 change nothing but could exceed the number of axes that numpy allows.
    grid = np.arange(nodes, dtype=np.int64).reshape([size for size in dims if size > 1])
    sides: tuple[list[Ints], list[Ints]] = ([grid.ravel()[:0]], [grid.ravel()[:0]])
    for axis, size in enumerate(grid.shape):
        # Two nodes have one edge between them: the wrap-around would only double it.
        pairs = (line if size > 2 else Line.PATH).pairs(size)
        for side, ends in zip(sides, pairs, strict=True):
            side.append(np.moveaxis(grid, axis, 0)[ends].ravel())
    return from_pairs(name, nodes, *map(np.concatenate, sides))


_CUBE = 4
"""Chips in each dimension of a cube of fixed cables."""

_BOARD_CHIPS, _GROUP_BOARDS = 4, 8
"""Boardfly: chips in the ring of a board, and boards in a group."""

_COPPER = ((1, 1, 2), (1, 1, 3), (2, 2, 0), (3, 3, 0), (3, 2, 3), (4, 0, 0))
"""Copper cables within a Boardfly group: distance in boards, chips at both ends.

They use 11 ports of a board, 3 of each chip but 2 of chip 1, and every two chips of a group are
within 3 hops. Found by search among all such patterns that are the same for every board.
"""

_OPTICAL_CHIPS = (1, 0, 2, 3, 1)
"""Boardfly: the chips of a board with the five remaining ports, in order."""


def tpuv4(dims: tuple[int, ...], twisted: bool = False) -> Topology:
    """Build a TPU v4 slice: a three-dimensional torus, or its twisted variant.

    The twisted variant exists for slices of k x k x 2k and k x 2k x 2k chips, k of 2 or more, the
    dimensions in any order. There the wrap-around link of a short dimension (of size k), which
    leads from coordinate k - 1 to 0, also moves by k, modulo 2k, in every long dimension; the
    long dimensions wrap straight. These are the symmetric lattices FCC(k) and BCC(k) of Camarero,
    Martinez and Beivide, "Lattice graphs for high-scale interconnection topologies", IEEE TPDS
    2015, on which the twisted slices of Jouppi et al., "TPU v4: an optically reconfigurable
    supercomputer", ISCA 2023, are based. All dimensions wrap here, whereas real slices below
    4 chips in a dimension are meshes there (`tpuv5p` has these); a dimension of 2 is one link each
    way, as in `torus`. A link carries 50 GB/s each way (Jouppi et al., table of features).
    """
    name = _slice_name("tpuv4", dims, twisted)
    return _twisted(name, dims) if twisted else replace(torus(dims), name=name)


def tpuv5p(dims: tuple[int, ...], twisted: bool = False) -> Topology:
    """Build a TPU v5p slice: cubes in a torus, straight or twisted, or a mesh below a cube.

    A slice of whole cubes of 4x4x4 chips is a torus in all three dimensions, up to 16x16x24 =
    6144 chips. Slices of k x k x 2k and k x 2k x 2k chips (4x4x8, 4x8x8, 8x8x16, 8x16x16) can be
    twisted, as in `tpuv4`. Slices below a cube, 2x2x1, 2x2x2, 2x2x4 and 2x4x4, have no wrap-around
    links. A link carries 800 Gbit/s each way, a sixth of the 4800 of a chip.
    Google Cloud documentation, "TPU v5p", 2024.
    """
    name = _slice_name("tpuv5p", dims, twisted)
    whole = all(side % _CUBE == 0 and side > 0 for side in dims)
    require(
        whole or sorted(dims) in ([1, 2, 2], [2, 2, 2], [2, 2, 4], [2, 4, 4]),
        name,
        "expected multiples of 4 in each dimension, or less than a cube: 2x2x1, 2x2x2, 2x2x4 "
        "or 2x4x4",
    )
    if twisted:
        return _twisted(name, dims)
    return replace(torus(dims) if whole else mesh(dims), name=name)


def boardfly(g: int = 36) -> Topology:
    """Build Boardfly, of TPU 8i: groups of eight boards of four chips, every two groups joined.

    A board has 16 ports, four of each chip, besides its ring. Eleven are for copper within the
    group, where every two boards are joined, some by two cables; the five left are for optical
    links between groups. A pod is 36 groups, 1152 chips of which 1024 are used at a time, and no
    two chips are more than 7 hops apart. All this is public: Google Cloud, "TPU 8t and TPU 8i
    technical deep dive", 2026.

    That every two groups are joined is inferred: the 40 optical ports of a group are enough for 35
    others, and 7 hops are then 3 in either group and 1 between them. Which chip has which cable is
    not public either. The copper here is a pattern, the same for every board, with
    which any two chips of a group are within the 3 hops that the published 7 need; the optical
    ports are dealt out board by board, and lead to groups in the palm-tree arrangement of
    `dragonfly`, as many times round as the 40 of a group allow. Chip c of board b of group i is
    node 32 i + 4 b + c.
    """
    name = f"boardfly:g={g}"
    ports = _GROUP_BOARDS * len(_OPTICAL_CHIPS)
    expected = f"expected 1 to {ports + 1}, a pod has 36"
    require(1 <= g <= ports + 1, name, f"there are {g} groups; {expected}")
    size = _BOARD_CHIPS * _GROUP_BOARDS
    first = size * np.arange(g, dtype=np.int64)[:, None]
    left, right = palm_tree(g, ports)
    left, right = (
        np.concatenate([(first + inner).ravel(), _optical_chip(side[left < right], ports)])
        for inner, side in zip(_group_cables(), (left, right), strict=True)
    )
    return from_pairs(name, g * size, left, right)


def _group_cables() -> tuple[Ints, Ints]:
    """Return the cables within a group: the rings of its boards, and the copper between them."""
    board, chip = (axis.ravel() for axis in np.indices((_GROUP_BOARDS, _BOARD_CHIPS)))
    left = [_BOARD_CHIPS * board + chip]
    right = [_BOARD_CHIPS * board + (chip + 1) % _BOARD_CHIPS]
    for ahead, here, there in _COPPER:
        # Half way round a board is as far ahead as behind: one cable serves both.
        boards = np.arange(_GROUP_BOARDS // 2 if 2 * ahead == _GROUP_BOARDS else _GROUP_BOARDS)
        left.append(_BOARD_CHIPS * boards + here)
        right.append(_BOARD_CHIPS * ((boards + ahead) % _GROUP_BOARDS) + there)
    return np.concatenate(left), np.concatenate(right)


def _optical_chip(port: Ints, ports: int) -> Ints:
    """Return the chip of an optical port, numbered group by group; boards take turns."""
    group, own = np.divmod(port, ports)
    turn, board = np.divmod(own, _GROUP_BOARDS)
    chips: Ints = np.array(_OPTICAL_CHIPS, dtype=np.int64)[turn]
    return _BOARD_CHIPS * (_GROUP_BOARDS * group + board) + chips


def _slice_name(family: str, dims: tuple[int, ...], twisted: bool) -> str:
    name = f"{family}:{shape_name(dims)}" + (",twisted=true" if twisted else "")
    require(len(dims) == 3, name, f"there are {len(dims)} dimensions; expected 3, such as 4x4x8")
    return name


def _twisted(name: str, dims: tuple[int, ...]) -> Topology:
    k = min(dims)
    require(
        k >= 2 and sorted(dims) in ([k, k, 2 * k], [k, 2 * k, 2 * k]),
        name,
        "a twisted slice has k x k x 2k or k x 2k x 2k chips with k of 2 or more",
    )
    nodes = math.prod(dims)
    check_size(name, nodes, 6 * nodes)
    left = np.tile(np.arange(nodes, dtype=np.int64), 3)
    right = np.concatenate([_twisted_neighbours(dims, axis) for axis in range(3)])
    return from_pairs(name, nodes, left, right)


def _twisted_neighbours(dims: tuple[int, ...], axis: int) -> Ints:
    """Return the node one step up in dimension `axis` from every node."""
    k = min(dims)
    place = [part.ravel() for part in np.indices(dims)]
    wraps = place[axis] == dims[axis] - 1
    place[axis] = (place[axis] + 1) % dims[axis]
    for other in range(3):
        if dims[axis] == k and dims[other] == 2 * k:
            place[other] = (place[other] + k * wraps) % (2 * k)
    nodes: Ints = np.ravel_multi_index(place, dims).astype(np.int64)
    return nodes
