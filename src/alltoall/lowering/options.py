"""`Options` of targets, and ranks in another order than that of the nodes."""

from dataclasses import dataclass, replace

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology

MAX_SHARD_BYTES = 1 << 50
"""The largest shard in a file for simulators."""

PROTOCOLS = ("Simple", "LL", "LL128")
"""Protocols of MSCCL runtimes."""

QUEUE_PAIRS = ("chunk", "route")
"""Contents of a queue pair: one chunk, as in the paper, or all chunks of a route."""

TABLE_ROUTES = 8
"""Usual limit of NIC tables on routes per pair."""

STEERING = ("encap", "plain")
"""How Linux keeps a packet on its path: segments in the packet, or a route at every hop."""


@dataclass(frozen=True, eq=False)
class Options:
    """Settings of `lower`; a target ignores settings of others."""

    channels: int = 1
    """Number of parallel channels, each with its part of every shard."""
    runtime: str = "msccl"
    """The runtime whose limits hold for MSCCL files."""
    protocol: str = "Simple"
    """The protocol, one of `PROTOCOLS`."""
    max_bytes: int = 1 << 30
    """The largest send buffer an MSCCL file is used for; scratch memory is in proportion to it."""
    min_bytes: int = 0
    """The smallest send buffer an MSCCL file is used for."""
    shard_bytes: int = 1 << 20
    """Bytes of a shard of size 1 in files for simulators."""
    max_routes: int | None = None
    """Most routes from a source to a destination; None for the target's default."""
    hash: str = "crc32"
    """The fabric's hash, by its name in `tables.hashes.HASHES`."""
    queue_pairs: str = "chunk"
    """The contents of a queue pair, one of `QUEUE_PAIRS`."""
    steering: str | None = None
    """How Linux keeps a packet on its path, one of `STEERING`; None for the target's default."""
    link_bandwidth: str | None = None
    """Bandwidth of a capacity-1 link for SimGrid; by default the topology's, or else 25Gbps."""
    link_latency: float = 1e-6
    """Link latency in seconds, for files that state it."""
    device: str = "p"
    """Prefix of network device names; the port number follows."""
    phase: Ints | None = None
    """The phase of each route, from `routes.phases`; None if all run at once."""
    rank: Ints | None = None
    """The rank of each terminal; None if they are the ranks in their order."""
    addresses: str = "10.x.y.z"
    """IPv4 addresses; x, y and z are the bytes of the rank plus one."""
    address: tuple[str, ...] | None = None
    """The IPv4 address of each terminal; None if they follow the pattern."""
    places: tuple[tuple[str, ...], ...] | None = None
    """The IPv6 prefix of each node and then its devices by port, if they follow no pattern."""

    def __post_init__(self) -> None:
        if self.max_routes is not None and self.max_routes < 1:
            raise UsageError(f"{self.max_routes} routes per destination; expected at least 1")
        if not 1 <= self.shard_bytes <= MAX_SHARD_BYTES:
            raise UsageError(
                f"shards of {self.shard_bytes} bytes; expected 1 to {MAX_SHARD_BYTES:,}"
            )
        chosen("queue pairs per", self.queue_pairs, QUEUE_PAIRS)
        chosen("steering", self.steering or STEERING[0], STEERING)


def chosen(kind: str, name: str, known: tuple[str, ...]) -> str:
    """Return a name; raise unless it is known."""
    if name not in known:
        raise UsageError(f"{kind} {name!r}; expected one of {', '.join(known)}")
    return name


def topology_by_rank(topology: Topology, rank: Ints) -> Topology:
    """Return the topology with its terminals in the order of their ranks."""
    node = np.arange(topology.nodes)
    node[topology.terminals] = topology.terminals[rank]
    names = topology.names
    if names is not None:
        names = tuple(names[before] for before in np.argsort(node).tolist())
    return replace(topology, tail=node[topology.tail], head=node[topology.head], names=names)


def schedule_by_rank(schedule: Schedule, rank: Ints) -> Schedule:
    """Return the same schedule on the renumbered topology."""
    topology = topology_by_rank(schedule.problem.topology, rank)
    before = np.argsort(rank)
    pairs = np.ix_(before, before)
    matrix, chunks = schedule.problem.demand.matrix, schedule.chunks
    if chunks.counts is not None:
        chunks = replace(chunks, counts=chunks.counts[pairs])
    return replace(
        schedule,
        problem=Problem(topology, Demand(len(rank), None if matrix is None else matrix[pairs])),
        chunks=chunks,
        source=rank[schedule.source],
        destination=rank[schedule.destination],
    )
