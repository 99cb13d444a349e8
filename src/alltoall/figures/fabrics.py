"""The fabrics of the paper's two testbeds, and the sizes at which figures look at them."""

from dataclasses import dataclass

import alltoall
from alltoall.figures.figure import Asked

LINK_RATE = "25Gbps"
"""What a link of the paper's fabrics carries."""

LATENCY, OVERHEAD = 2e-6, 1e-6
"""Seconds of a hop and of a message, of the order of what RDMA takes."""

WHOLE_RUN = 1800.0
"""Seconds that all sizes together may take on emulated links, the library's own included."""


@dataclass(frozen=True)
class Fabric:
    """A topology, its host's bandwidth in links if that is less, and the rate to emulate it at."""

    spec: str
    host_bandwidth: float | None = None
    rate: str = "40mbit"

    def topology(self) -> alltoall.Topology:
        """Return the topology, hosts split from their NICs if they are slower."""
        built = alltoall.build(self.spec)
        if self.host_bandwidth is None:
            return built
        return alltoall.with_host_bandwidth(built, self.host_bandwidth)


SMALL = {
    "K4,4": Fabric("bipartite:4x4"),
    "3-cube": Fabric("hypercube:3"),
    "twisted 3-cube": Fabric("twisted-hypercube:3"),
}
"""Those of the testbed of eight GPUs."""

TORUS = {"3x3x3 torus": Fabric("torus:3x3x3", rate="10mbit")}
"""That of the cluster, where NICs forward more than hosts can send."""

HOSTED = {"3x3x3 torus": Fabric("torus:3x3x3", 4.0, "10mbit")}
"""The same where all that passes a node passes its host, at 100 Gbit/s of 150."""


def shard_sizes(asked: Asked) -> list[int]:
    """Return the bytes of a shard that are simulated."""
    return [1 << k for k in asked.pick(range(10, 28, 2), range(10, 28, 4), (14, 26))]


def emulated_sizes(asked: Asked, name: str) -> list[int]:
    """Return the bytes of a shard that are sent over emulated links, of a fabric by its name."""
    small = name in SMALL
    whole = [1 << k for k in ((12, 14, 16, 18, 20, 22) if small else (12, 14, 16, 18, 20))]
    return list(asked.pick(whole, [1 << 16, 1 << 20], [1 << 14]))


def emulated_times(asked: Asked, name: str) -> int:
    """Return how often each is sent: over the slow links of 27 nodes one takes up to a minute."""
    return int(asked.pick(3 if name in SMALL else 2, 2, 1))
