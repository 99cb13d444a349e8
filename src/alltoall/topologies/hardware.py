"""Presets for machines: DGX-1 and DGX-2, NDv2, xGMI meshes, Trainium, UB-Mesh, two-port boxes.

Capacities of DGX-1, DGX-2 and NDv2 count NVLinks: one V100 NVLink is 25 GB/s each way. The table
of families has the unit of each family's capacities.
"""

from dataclasses import replace
from math import prod

import numpy as np

from alltoall.ir.topology import Topology
from alltoall.topologies.grids import hyperx, torus
from alltoall.topologies.hierarchical import complete, star
from alltoall.topologies.parts import check_size, from_pairs, require, shape_name

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
    nodes = gpus + _DGX2_BOARDS * _DGX2_SWITCHES
    shape = (_DGX2_BOARDS, _DGX2_GPUS, _DGX2_SWITCHES)
    board, gpu, switch = (axis.ravel() for axis in np.indices(shape))
    near = gpus + np.arange(_DGX2_SWITCHES, dtype=np.int64)
    left = np.concatenate([board * _DGX2_GPUS + gpu, near])
    right = np.concatenate([gpus + board * _DGX2_SWITCHES + switch, near + _DGX2_SWITCHES])
    width = np.where(left < gpus, 1.0, _DGX2_TRUNK)
    return from_pairs("dgx2", nodes, left, right, width, np.arange(gpus, dtype=np.int64))


def nvswitch(rate: float = 3600.0, n: int = 8) -> Topology:
    """Build GPUs behind NVSwitches that do not block: one switch, at `rate` for each GPU.

    The default is a DGX H100 in Gbit/s: 18 NVLinks of 25 GB/s each way per GPU.
    """
    return star(f"nvswitch:rate={rate:g},n={n}", n, rate)


def xgmi(n: int = 8, rate: float = 512.0) -> Topology:
    """Build the xGMI full mesh of GPUs in one host, such as eight MI300X, in Gbit/s.

    The default is a host of eight MI300X in Gbit/s: seven Infinity Fabric links of 64 GB/s each way
    per GPU. AMD, "Instinct MI300X platform" data sheet, 2023. Hosts of them are `mi300x`.
    """
    name = f"xgmi:n={n},rate={rate:g}"
    require(n >= 2, name, f"there are {n} GPUs; expected at least 2")
    return _at_rates(name, complete(n), (n,), (rate,))


def trainium(z: int = 1) -> Topology:
    """Build Trainium2 chips: the 4x4 torus of an instance, or several in rings, in Gbit/s.

    An instance (trn2.48xlarge) has 16 chips in a two-dimensional torus of NeuronLink-v3, 128 GB/s
    each way per link = 1024. An UltraServer is z = 4 of them, whose chips in the same place form
    rings at 64 GB/s = 512: a three-dimensional torus of 64 chips. Chip (x, y) of instance i is node
    16 i + 4 x + y. AWS Neuron documentation, "Amazon EC2 Trn2 architecture", 2024 (per chip, both
    ways: 1024 GB/s within an instance and 256 GB/s between instances). The 4x4 torus is that of
    Trainium1 too, whose links are slower.
    """
    name = f"trainium:z={z}"
    require(z >= 1, name, f"there are {z} instances; expected 1, or 4 for an UltraServer")
    return _at_rates(name, torus((z, 4, 4)), (z, 4, 4), (512.0, 1024.0, 1024.0))


def ubmesh(dims: tuple[int, ...] = (8, 8, 4, 4), lanes: tuple[int, ...] = ()) -> Topology:
    """Build UB-Mesh, the nD full mesh: a board of 8 NPUs, a rack of 8x8, a pod of 8x8x4x4.

    The default is a UB-Mesh pod of 1024 NPUs, a four-dimensional full mesh: 8 NPUs of a board, 8
    boards of a rack (so 8x8 is a rack of 64 NPUs), and 4x4 racks. `lanes` are the capacities of a
    link in each dimension, by default 1: the operator chooses how to spend the lanes of an NPU.
    Between racks the real links pass through switches that join lanes, which do not block and are
    left out; so are the spare NPU of a rack and its CPUs. Liao et al., "UB-Mesh: a hierarchically
    localized nD-FullMesh datacenter network architecture", IEEE Micro 2025.
    """
    name = f"ubmesh:{shape_name(dims)}" + (f",lanes={shape_name(lanes)}" if lanes else "")
    rates = lanes or (1,) * len(dims)
    expected = "expected 1 or more each, and 2 NPUs or more"
    sound = min(dims, default=0) >= 1 and max(dims) >= 2
    require(sound, name, f"there is no mesh of these sides; {expected}")
    found = f"there are {len(dims)} dimensions and lanes of {shape_name(rates)}"
    sound = len(rates) == len(dims) and min(rates, default=1) >= 1
    require(sound, name, f"{found}; expected 1 or more for each")
    return _at_rates(name, hyperx(dims), dims, rates)


def boxes(n: int, ring: bool = False, rate: float = 200.0) -> Topology:
    """Build boxes of two ports each, cabled to one another in a line, or in a ring.

    Small machines are cabled like this without a switch. The default `rate` of 200 Gbit/s is that
    of each of the two ports of a DGX Spark. NVIDIA, "DGX Spark user guide", 2025. A line leaves a
    port free at either end; a ring of two boxes is two cables between them. If a box itself sends
    and receives less than two ports carry, set --host-bandwidth.
    """
    name = f"boxes:n={n}" + (",ring=true" if ring else "")
    name += f",rate={rate:g}" if rate != 200 else ""
    require(n >= 2, name, f"there are {n} boxes; expected 2 or more")
    require(rate > 0, name, f"the rate is {rate:g}; expected more than 0")
    check_size(name, n, 2 * n)
    left = np.arange(n if ring else n - 1, dtype=np.int64)
    return from_pairs(name, n, left, (left + 1) % n, rate)


def _at_rates(
    name: str, grid: Topology, dims: tuple[int, ...], rates: tuple[float, ...]
) -> Topology:
    """Give the links of a grid numbered row by row the rate of their dimension."""
    require(min(rates) > 0, name, f"a rate is {min(rates):g}; expected more than 0")
    capacity = np.empty(grid.links)
    for axis, rate in enumerate(rates):
        tail, head = (end // prod(dims[axis + 1 :]) % dims[axis] for end in (grid.tail, grid.head))
        capacity[tail != head] = rate
    return replace(grid, name=name, capacity=capacity)


def _cube_mesh(name: str, double_ring: tuple[int, ...]) -> Topology:
    quads = [(u, v) for base in (0, 4) for v in range(base, base + 4) for u in range(base, v)]
    edges = np.array(quads + [(gpu, gpu + 4) for gpu in range(4)], dtype=np.int64)
    place = np.argsort(double_ring)
    apart = (place[edges[:, 0]] - place[edges[:, 1]]) % len(double_ring)
    capacity = np.where(np.isin(apart, (1, len(double_ring) - 1)), 2.0, 1.0)
    return from_pairs(name, len(double_ring), edges[:, 0], edges[:, 1], capacity)
