"""Whole chunks on the paths of a fractional flow: where negotiations begin."""

import numpy as np

from alltoall import core
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.paths import NOTHING
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import core_graph
from alltoall.placing.chunks import Chunks


def trace_paths(graph: Topology, chunks: Chunks, volumes: Floats, row: Ints, hops: int) -> Ints:
    """Return a path per chunk [chunks, hops] that follows the volumes of its row, where it can.

    Each chunk walks back from its end along the largest remaining volume and takes its size out of
    it. A chunk that finds no volume left gets no path.
    """
    paths = np.full((len(chunks.start), hops), NOTHING, dtype=np.int64)
    remaining = np.array(volumes, dtype=np.float64, order="C")
    ends = chunks.start, chunks.end, chunks.size
    core.trace_paths(core_graph(graph), *ends, row, remaining, paths)
    return paths
