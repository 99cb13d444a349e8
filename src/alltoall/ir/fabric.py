"""`Fabric`: a topology in seconds and bytes.

Everything is solved in shards and capacities. A fabric has the rate b of capacity 1, which gives
times and rates in the units of the machine:

    seconds     time * shard / b     for a shard size in bytes
    throughput  shards / time * b    of each sender; (N - 1) f b for a uniform demand
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from alltoall.errors import InputError, UsageError
from alltoall.ir.arguments import read_fields
from alltoall.ir.arrays import Floats, frozen
from alltoall.ir.demand import Demand
from alltoall.ir.noun import Noun
from alltoall.ir.quantities import bytes_per_second, rate_in_words
from alltoall.ir.topology import Topology
from alltoall.ir.words import span

Rate: TypeAlias = str | float
"""Bytes per second, or a text such as `25Gbps`."""

SAME_RATE = 1e-6
"""Relative difference up to which two rates are equal: messages print six digits."""


@dataclass(frozen=True, eq=False, repr=False)
class Fabric(Noun):
    """A link of capacity c carries c * `bytes_per_second`, after its `latency` in seconds.

    `injection` is the rate at which a terminal can send, and receive, over all its links, None if
    only the links limit it; `overhead` is the time of a sender per message, in seconds. One latency
    may be given for all links.
    """

    TITLE = "topology.name"
    BRIEF = ("links", "rate")

    topology: Topology
    bytes_per_second: float
    latency: Floats = field(default_factory=lambda: np.zeros(()))
    injection: float | None = None
    overhead: float = 0.0

    def __post_init__(self) -> None:
        read_fields(self)
        links = self.topology.links
        if self.latency.shape not in ((), (links,)):
            raise InputError(
                f"{self.latency.size} latencies for the {links} links of {self.topology.name}; "
                "expected one for each, or one for all"
            )
        each = np.broadcast_to(self.latency, (links,))
        object.__setattr__(self, "latency", frozen(each, np.float64))
        _check_numbers(self)

    @property
    def link_rates(self) -> Floats:
        """The bandwidth of each link, in bytes per second."""
        return self.topology.capacity * self.bytes_per_second

    def seconds(self, time: float, shard_bytes: float) -> float:
        """Return a time in shards over capacity 1 as seconds, for shards of so many bytes."""
        return time * shard_bytes / self.bytes_per_second

    def shard_times(self, seconds: float, shard_bytes: float) -> float:
        """Return seconds as a time in shards over capacity 1: the inverse of `seconds`."""
        return seconds * self.bytes_per_second / shard_bytes

    def throughput(self, demand: Demand, time: float) -> float:
        """Return the mean rate of the terminals that send, in bytes per second, for a time."""
        return demand.total / len(demand.sources()) / time * self.bytes_per_second

    def bound_throughput(self, rate: float) -> float:
        """Return (N - 1) f b: the rate of a terminal in the uniform all-to-all at flow rate f."""
        return (len(self.topology.terminals) - 1) * rate * self.bytes_per_second

    def injection_seconds(self, demand: Demand, shard_bytes: float) -> float:
        """Return the least time in which the busiest terminal sends or receives its share."""
        if self.injection is None:
            return 0.0
        table = demand.matrix
        most = demand.terminals - 1.0
        if table is not None:
            most = float(max(table.sum(axis=0).max(), table.sum(axis=1).max()))
        return most * shard_bytes / self.injection

    def links_in_words(self) -> str:
        """Return the bandwidth of the links, or the least and the largest."""
        rates = sorted({float(self.link_rates.min()), float(self.link_rates.max())})
        return " to ".join(map(rate_in_words, rates))

    def note(self) -> str | None:
        """Return a warning if capacities are not 1 and the rate may be misunderstood."""
        capacity = self.topology.capacity
        if np.all(capacity == 1.0):
            return None
        unit, values = rate_in_words(self.bytes_per_second), span(capacity.tolist())
        said = f"capacities are {values}: a link is {values} x {unit}, {self.links_in_words()}"
        if np.any(capacity == 1.0):
            return said
        return f"{said}; give --link-bandwidth 1Gbps if capacities are in Gbit/s"

    def _facts(self) -> dict[str, str]:
        limit = {} if self.injection is None else {"injection": rate_in_words(self.injection)}
        return {
            **self.topology._facts(),
            "rate": self.links_in_words(),
            "latency": f"{span((self.latency * 1e6).tolist())} us",
            "overhead": f"{self.overhead * 1e6:g} us",
            **limit,
        }

    def _columns(self) -> dict[str, Iterable[object]]:
        ends = self.topology._columns()
        return {**ends, "bytes_per_second": self.link_rates, "latency": self.latency}

    def _repr_svg_(self) -> str | None:
        return self.topology._repr_svg_()


def link_rate(topology: Topology, given: Rate | None) -> float | None:
    """Return the rate of capacity 1, from the caller or the topology; raise if they differ."""
    stated = topology.bytes_per_second
    if given is None:
        return stated
    rate = bytes_per_second(given) if isinstance(given, str) else float(given)
    if stated is None:
        return rate
    if math.isclose(rate, stated, rel_tol=SAME_RATE):
        return stated
    said = given if isinstance(given, str) else rate_in_words(rate)
    links = Fabric(topology, stated).links_in_words()
    raise UsageError(
        f"link bandwidth {said}, but a link of capacity 1 of {topology.name} is "
        f"{rate_in_words(stated)} already, and its links are {links}; leave --link-bandwidth out, "
        "or change the links by --scale-capacity"
    )


def _check_numbers(fabric: Fabric) -> None:
    for key, value in (("rate", fabric.bytes_per_second), ("injection limit", fabric.injection)):
        if value is not None and not (0 < value < np.inf):
            raise InputError(f"a {key} of {value:g} bytes per second; expected a positive number")
    lowest = min(float(fabric.latency.min(initial=0.0)), fabric.overhead)
    finite = np.isfinite(fabric.latency).all() and np.isfinite(fabric.overhead)
    if not (lowest >= 0 and finite):
        raise InputError("a negative or infinite latency or overhead; expected seconds")
