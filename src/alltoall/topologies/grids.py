"""Products of paths, cycles and complete graphs: ring, mesh, torus, hypercube, HyperX.

Nodes are numbered row-major: the last coordinate varies fastest. All links go both ways.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import check_size, from_pairs, power, require, shape_name


class _Line(NamedTuple):
    """How the nodes of one grid line are joined: how many edges, and between which positions."""

    edges: Callable[[int], int]
    pairs: Callable[[int], tuple[Ints, Ints]]


def _path_pairs(size: int) -> tuple[Ints, Ints]:
    return np.arange(size - 1), np.arange(1, size)


def _cycle_pairs(size: int) -> tuple[Ints, Ints]:
    # Two nodes have one edge between them: the way round would only double it.
    return _path_pairs(size) if size <= 2 else (np.arange(size), (np.arange(size) + 1) % size)


def _clique_pairs(size: int) -> tuple[Ints, Ints]:
    low, high = np.triu_indices(size, 1)
    return low.astype(np.int64), high.astype(np.int64)


_PATH = _Line(lambda size: size - 1, _path_pairs)
_CYCLE = _Line(lambda size: size if size > 2 else size - 1, _cycle_pairs)
_CLIQUE = _Line(lambda size: size * (size - 1) // 2, _clique_pairs)


def ring(n: int) -> Topology:
    """Build the ring of `n` nodes: node v has links to v + 1 and v - 1 modulo n.

    A ring of two nodes is one link each way. The one-dimensional torus (k-ary 1-cube) of Dally,
    "Performance analysis of k-ary n-cube interconnection networks", IEEE Trans. Comput. 1990.
    """
    return _product(f"ring:{n}", (n,), _CYCLE)


def mesh(dims: tuple[int, ...]) -> Topology:
    """Build the mesh: nodes are grid points, links join those one step apart in one dimension.

    There is no wrap-around. Cartesian product of paths; see Dally and Towles, "Principles and
    Practices of Interconnection Networks", 2004, chapter 5.
    """
    return _product(f"mesh:{shape_name(dims)}", dims, _PATH)


def torus(dims: tuple[int, ...]) -> Topology:
    """Build the torus: a mesh whose every dimension wraps around, a product of cycles.

    A dimension of 2 gives one link each way, not two, and a dimension of 1 adds none. See Dally
    and Towles, "Principles and Practices of Interconnection Networks", 2004, chapter 5.
    """
    return _product(f"torus:{shape_name(dims)}", dims, _CYCLE)


def hypercube(dim: int) -> Topology:
    """Build the binary hypercube: 2^dim nodes, linked where their numbers differ in one bit.

    See Saad and Schultz, "Topological properties of hypercubes", IEEE Trans. Comput. 1988.
    """
    name = f"hypercube:{dim}"
    require(dim >= 1, name, f"the dimension is {dim}; expected 1 or more")
    check_size(name, power(2, dim), dim * power(2, dim))
    return _product(name, (2,) * dim, _PATH)


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
    return _product(f"hyperx:{shape_name(dims)}", dims, _CLIQUE)


def _product(name: str, dims: tuple[int, ...], line: _Line) -> Topology:
    """Join the nodes of every line of the grid, in every dimension, as `line` says."""
    require(
        len(dims) > 0 and min(dims) >= 1,
        name,
        f"the dimensions are {shape_name(dims) or 'none'}; expected 1 or more in each",
    )
    nodes = math.prod(dims)
    edges = sum(nodes // size * line.edges(size) for size in dims)
    check_size(name, nodes, 2 * edges)
    # Dimensions of 1 change nothing but could exceed the number of axes that numpy allows.
    grid = np.arange(nodes, dtype=np.int64).reshape([size for size in dims if size > 1])
    ends: list[tuple[Ints, Ints]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for axis, size in enumerate(grid.shape):
        rows = np.moveaxis(grid, axis, 0)
        low, high = line.pairs(size)
        ends.append((rows[low].ravel(), rows[high].ravel()))
    left, right = (np.concatenate(side) for side in zip(*ends, strict=True))
    return from_pairs(name, nodes, left, right)
