"""Presets for machines: NVIDIA DGX-1 and DGX-2, Azure NDv2, TPU v4 slices.

Capacities of the NVIDIA presets count NVLinks: one V100 NVLink is 25 GB/s each way.
"""

from dataclasses import replace

import numpy as np

from a2aflow.ir.arrays import Ints
from a2aflow.ir.topology import Topology
from a2aflow.topologies.grids import torus
from a2aflow.topologies.hierarchical import star
from a2aflow.topologies.parts import check_size, from_pairs, require, shape_name

_DGX2_BOARDS = 2
_DGX2_GPUS = 8  # on each board, each with one NVLink to every switch of the board
_DGX2_SWITCHES = 6  # on each board
_DGX2_TRUNK = 8  # NVLinks between a switch and its peer on the other board


def dgx1() -> Topology:
    """Build the NVLink network of a DGX-1 with eight V100: the hybrid cube mesh.

    Every GPU has six NVLinks. Each quad (0-3, 4-7) is fully linked and GPU i is linked to GPU
    i + 4; the ring 0-3-2-1-5-6-7-4 is double. Numbering and link counts are those that
    `nvidia-smi topo -m` prints on the machine; NVIDIA, "DGX-1 with Tesla V100 system
    architecture", 2017.
    """
    return _cube_mesh("dgx1", double_ring=(0, 3, 2, 1, 5, 6, 7, 4))


def ndv2() -> Topology:
    """Build the NVLink network of an Azure NDv2 virtual machine: that of the DGX-1, renumbered.

    The double ring is 0-1-3-2-6-7-5-4. Azure hands the GPUs out in varying order; this is the one
    into which the MSCCL and TACCL tools permute them and in which their algorithms are written.
    Shah et al., "TACCL: guiding collective algorithm synthesis using communication sketches",
    NSDI 2023.
    """
    return _cube_mesh("ndv2", double_ring=(0, 1, 3, 2, 6, 7, 5, 4))


def dgx2() -> Topology:
    """Build the NVLink network of a DGX-2: 16 GPUs on two boards of 6 NVSwitches each.

    Each GPU has one link to each of the 6 switches of its board, and each switch has a trunk of
    8 links to its peer on the other board, so there are 6 planes. GPUs are nodes 0..15 (board 0
    first), and switch s of board b is node 16 + 6 b + s; switches are not terminals. Ishii et al.,
    "NVSwitch and DGX-2: NVLink-switching chip and scale-up compute server", Hot Chips 2018.
    """
    gpus = _DGX2_BOARDS * _DGX2_GPUS
    board, gpu, switch = (
        axis.ravel() for axis in np.indices((_DGX2_BOARDS, _DGX2_GPUS, _DGX2_SWITCHES))
    )
    near = gpus + np.arange(_DGX2_SWITCHES, dtype=np.int64)
    left = np.concatenate([board * _DGX2_GPUS + gpu, near])
    right = np.concatenate([gpus + board * _DGX2_SWITCHES + switch, near + _DGX2_SWITCHES])
    return from_pairs(
        "dgx2",
        gpus + _DGX2_BOARDS * _DGX2_SWITCHES,
        left,
        right,
        np.where(left < gpus, 1.0, _DGX2_TRUNK),
        terminals=np.arange(gpus, dtype=np.int64),
    )


def nvswitch(rate: float = 3600.0, n: int = 8) -> Topology:
    """Build GPUs behind NVSwitches that do not block: one switch, at `rate` for each GPU.

    The default is a DGX H100 in Gbit/s: 18 NVLinks of 25 GB/s each way per GPU.
    """
    return star(f"nvswitch:rate={rate:g},n={n}", n, rate)


def tpuv4(dims: tuple[int, ...], twisted: bool = False) -> Topology:
    """Build a TPU v4 slice: a three-dimensional torus, or its twisted variant.

    The twisted variant exists for slices of k x k x 2k and k x 2k x 2k chips, k of 2 or more, the
    dimensions in any order. There the wrap-around link of a short dimension (of size k), which
    leads from coordinate k - 1 to 0, also moves by k, modulo 2k, in every long dimension; the
    long dimensions wrap straight. These are the symmetric lattices FCC(k) and BCC(k) of Camarero,
    Martinez and Beivide, "Lattice graphs for high-scale interconnection topologies", IEEE TPDS
    2015, on which the twisted slices of Jouppi et al., "TPU v4: an optically reconfigurable
    supercomputer", ISCA 2023, are based. All dimensions wrap here, whereas real slices below
    4 chips in a dimension are meshes there; a dimension of 2 is one link each way, as in `torus`.
    """
    name = f"tpuv4:{shape_name(dims)}" + (",twisted=true" if twisted else "")
    require(len(dims) == 3, name, f"there are {len(dims)} dimensions; expected 3, such as 4x4x8")
    if not twisted:
        return replace(torus(dims), name=name)
    k = min(dims)
    require(
        k >= 2 and sorted(dims) in ([k, k, 2 * k], [k, 2 * k, 2 * k]),
        name,
        "a twisted slice has k x k x 2k or k x 2k x 2k chips with k of 2 or more",
    )
    nodes = dims[0] * dims[1] * dims[2]
    check_size(name, nodes, 6 * nodes)
    left = np.tile(np.arange(nodes, dtype=np.int64), 3)
    right = np.concatenate([_twisted_neighbours(dims, axis) for axis in range(3)])
    return from_pairs(name, nodes, left, right)


def _cube_mesh(name: str, double_ring: tuple[int, ...]) -> Topology:
    quads = [(u, v) for base in (0, 4) for v in range(base, base + 4) for u in range(base, v)]
    edges = np.array(quads + [(gpu, gpu + 4) for gpu in range(4)], dtype=np.int64)
    place = np.argsort(double_ring)
    apart = (place[edges[:, 0]] - place[edges[:, 1]]) % len(double_ring)
    capacity = np.where(np.isin(apart, (1, len(double_ring) - 1)), 2.0, 1.0)
    return from_pairs(name, len(double_ring), edges[:, 0], edges[:, 1], capacity)


def _twisted_neighbours(dims: tuple[int, ...], axis: int) -> Ints:
    """Return the node one step up in dimension `axis` from every node."""
    k = min(dims)
    place = [part.ravel() for part in np.indices(dims)]
    wraps = place[axis] == dims[axis] - 1
    place[axis] = (place[axis] + 1) % dims[axis]
    if dims[axis] == k:
        for other in range(3):
            if dims[other] == 2 * k:
                place[other] = (place[other] + k * wraps) % (2 * k)
    x, y, z = place
    nodes: Ints = (x * dims[1] + y) * dims[2] + z
    return nodes
