"""The topologies that everything in lowering is tried on."""

from functools import cache

from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.topologies.operators import drop_links, with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

TOPOLOGIES = (
    "hypercube:3",
    "twisted-hypercube:3",
    "bipartite:4x4",
    "torus:3x3x3",
    "torus:3x3x3 host",
    "torus:3x3x3 punctured",
    "genkautz:n=16,d=4",
)


@cache
def topology_named(name: str) -> Topology:
    """Build a topology of the list, or any spec."""
    spec, _, change = name.partition(" ")
    topology = build(spec)
    if change == "host":
        return with_host_bandwidth(topology, 4)
    return drop_links(topology, 6, seed=1) if change == "punctured" else topology


@cache
def schedule_named(name: str, chunks: int = 1) -> Schedule:
    """Return a simple schedule on a topology of the list."""
    return hop_schedule(topology_named(name), chunks)
