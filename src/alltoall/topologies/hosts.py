"""Hosts of a cluster: their GPUs, the fabric that joins these, and their NICs."""

import math
import reprlib
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from alltoall.ir.arguments import read_fields
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.quantities import bytes_per_second
from alltoall.ir.topology import MAX_NODES, Topology
from alltoall.topologies.families import GBIT
from alltoall.topologies.parts import require
from alltoall.topologies.spec import build, sized

ATTACHES = ("gpu", "switch")
"""Choices of the node to which NICs are linked."""

MAX_NICS = 1_000
"""Most NICs of one host."""


@dataclass(frozen=True)
class Host:
    """A kind of host: GPUs, the topology that joins them, and NICs of a rate, all in Gbit/s.

    `link` is the rate of an inner link of capacity 1; None takes that of the inner topology, or 1.
    """

    gpus: int
    inside: str
    nics: int
    rate: float
    link: float | None = None
    attach: str = "gpu"

    def __post_init__(self) -> None:
        read_fields(self)

    @cached_property
    def fabric(self) -> Topology:
        """The topology inside; its terminals are the GPUs."""
        return replace(build(sized(self.inside, self.gpus)), notes=())

    @property
    def link_rate(self) -> float:
        """The rate of a link of capacity 1 inside."""
        return self.link if self.link is not None else gbit_rate(self.fabric) or 1.0

    @property
    def switches(self) -> int:
        """The number of nodes inside besides the GPUs."""
        return self.fabric.nodes - self.gpus


def gbit_rate(topology: Topology) -> float | None:
    """Return the rate of a link of capacity 1 in Gbit/s, None if the topology has no unit."""
    rate = topology.bytes_per_second
    return None if rate is None else rate / bytes_per_second(GBIT)


DGX_H100 = Host(gpus=8, inside="nvswitch:3600", nics=8, rate=400.0)
MI300X = Host(gpus=8, inside="complete", nics=8, rate=400.0, link=512.0)

HOSTS = {"dgxh100": DGX_H100, "mi300x": MI300X}
"""Kinds of hosts by name; the families of the same names cite the sources of the numbers."""


@dataclass(frozen=True, eq=False)
class Places:
    """First GPU, inside switch and NIC of each host; NICs are counted apart from the nodes."""

    hosts: tuple[Host, ...]
    gpu: Ints = field(init=False)
    switch: Ints = field(init=False)
    nic: Ints = field(init=False)

    def __post_init__(self) -> None:
        counts = np.array([(host.gpus, host.switches, host.nics) for host in self.hosts])
        for key, column in zip(("gpu", "switch", "nic"), counts.T, strict=True):
            object.__setattr__(self, key, starts_of(column))

    @cached_property
    def kinds(self) -> tuple[Host, ...]:
        """The kinds of hosts."""
        return tuple(dict.fromkeys(self.hosts))

    def of_kind(self, host: Host) -> Ints:
        """Return the indices of all hosts of a kind, as a column."""
        return np.array([index for index, each in enumerate(self.hosts) if each == host])[:, None]

    @property
    def nics(self) -> int:
        """The number of NICs of all hosts."""
        return int(self.nic[-1])

    @cached_property
    def rates(self) -> Floats:
        """The rate of every NIC."""
        return np.repeat([host.rate for host in self.hosts], [host.nics for host in self.hosts])


def check_host(name: str, host: Host) -> None:
    """Refuse an impossible host before anything of its size is built."""
    check_word(name, "attach", host.attach, ATTACHES)
    require(
        2 <= host.gpus <= MAX_NODES and 1 <= host.nics <= MAX_NICS,
        name,
        f"a host of {host.gpus} GPUs and {host.nics} NICs; expected 2 to {MAX_NODES:,} GPUs and "
        f"1 to {MAX_NICS:,} NICs",
    )
    link = 1.0 if host.link is None else host.link
    for key, value in (("link", link), ("rate of the NICs", host.rate)):
        sound = math.isfinite(value) and value > 0
        require(sound, name, f"the {key} is {value:g}; expected a positive number")
    inside, stated = f"the inside {host.fabric.name}", gbit_rate(host.fabric)
    require(
        None in (stated, host.link) or math.isclose(stated or 0, host.link or 0),
        name,
        f"link is {host.link} Gbit/s, but a link of capacity 1 of {inside} is {stated} Gbit/s "
        "already; leave link out",
    )
    found = len(host.fabric.terminals)
    expected = f"expected {host.gpus}, the GPUs"
    require(found == host.gpus, name, f"{inside} has {found} terminals; {expected}")
    possible = host.attach != "switch" or host.switches > 0
    require(possible, name, f"attach=switch, and {inside} has none; expected attach=gpu")


def check_word(name: str, key: str, value: str, known: tuple[str, ...]) -> None:
    """Refuse an unknown word."""
    choices = " or ".join(known)
    require(value in known, name, f"{key} is {reprlib.repr(value)}; expected {choices}")
