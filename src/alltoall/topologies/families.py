"""The families of topologies by name; this table imports no construction until one is built."""

import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alltoall.errors import UsageError
from alltoall.ir.files.text import exists
from alltoall.ir.words import did_you_mean
from alltoall.registry import Registry, has_signature, load

if TYPE_CHECKING:
    from alltoall.ir.topology import Topology


@dataclass(frozen=True)
class Family:
    """A family of topologies.

    `builder` is a function, or `file:function` in this room; its docstring begins with the summary.
    `example` is a SPEC. `parameters` explains each parameter; a registered family's are read from
    its signature. `unit` is the rate of a capacity-1 link, such as 1Gbps, if the capacities are
    physical.
    """

    builder: "Callable[..., Topology] | str"
    example: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None

    @property
    def build(self) -> "Callable[..., Topology]":
        """The function that builds a member from the parameters of a SPEC."""
        if not isinstance(self.builder, str):
            return self.builder
        function: Callable[..., Topology] = load(f"{__package__}.{self.builder}")
        return function

    @property
    def summary(self) -> str:
        """The first line of the builder's docstring."""
        found: str = load(f"{__package__}.family_help:summary_of")(self)
        return found


def _family(name: str, builder: Any) -> Family:
    """Return a registered builder as a family."""
    if isinstance(builder, Family):
        return builder
    if not has_signature(builder) or not builder.__doc__:
        raise UsageError(
            f"topology family {name!r} is {reprlib.repr(builder)}; expected a function with a "
            "docstring, whose parameters are those of the SPEC, that returns a Topology"
        )
    return Family(builder, name)


def register_family(name: str, builder: "Callable[..., Topology] | Family") -> None:
    """Add a family, so that `name:arguments` is a SPEC everywhere.

    The SPEC takes the parameters of `builder`, whose types must be possible in a SPEC. An installed
    package can register it by an entry point in the group `alltoall.families`.
    """
    FAMILIES.register(name, builder)


GBIT, NVLINK = "1Gbps", "25GB/s"
"""Units of families: capacities in Gbit/s, or in V100 NVLinks."""


MEANINGS = {
    "n": "nodes",
    "d": "links out of a node",
    "k": "letters of a word, and the diameter",
    "dim": "dimensions",
    "dims": "nodes in each dimension, such as 3x3",
    "h": "global links of a router",
    "g": "groups, such that g - 1 divides the global links of one",
    "rate": "capacity of a link",
    "seed": "which random graph",
    "rewire": "whether to use the ports of self-loops for other links",
    "twisted": "whether short dimensions wrap with a twist",
    "hosts": "hosts",
    "outside": "fabric that joins the hosts: a SPEC, or rail (the default)",
    "over": "terminals of the outside: hosts, rails or nics",
}
"""Meanings of parameters, unless a family says otherwise."""


def _built_in(builder: str, example: str, unit: str | None = None, **meanings: str) -> Family:
    return Family(builder, example, MEANINGS | meanings, unit)


FAMILIES = Registry(
    "topology family",
    "alltoall.families",
    {
        "ring": _built_in("grids:ring", "ring:6"),
        "mesh": _built_in("grids:mesh", "mesh:3x4"),
        "torus": _built_in("grids:torus", "torus:3x3x3"),
        "hypercube": _built_in("grids:hypercube", "hypercube:3"),
        "twisted-hypercube": _built_in("grids:twisted_hypercube", "twisted-hypercube:3"),
        "hyperx": _built_in("grids:hyperx", "hyperx:3x3"),
        "circulant": _built_in(
            "digraphs:circulant",
            "circulant:n=16,jumps=1x3",
            jumps="distances of the links of a node, such as 1x3",
            directed="whether to leave out the links back",
        ),
        "debruijn": _built_in("digraphs:debruijn", "debruijn:d=2,k=3"),
        "kautz": _built_in("digraphs:kautz", "kautz:d=2,k=3"),
        "genkautz": _built_in("digraphs:genkautz", "genkautz:n=64,d=4"),
        "gendebruijn": _built_in("digraphs:gendebruijn", "gendebruijn:n=50,d=3"),
        "best": _built_in(
            "expanders:best",
            "best:n=64,d=4",
            d="ports of a node: links out, and as many in",
            bidirectional="whether links are cables that go both ways",
        ),
        "jellyfish": _built_in(
            "expanders:jellyfish", "jellyfish:n=64,d=4,seed=1", d="cables of a node"
        ),
        "xpander": _built_in(
            "expanders:xpander",
            "xpander:n=60,d=4,seed=1",
            n="nodes, a multiple of d + 1",
            d="cables of a node",
        ),
        "slimfly": _built_in(
            "algebraic:slimfly",
            "slimfly:q=5",
            q="a prime power: 2 q^2 nodes, about 3 q / 2 cables of each",
        ),
        "spectralfly": _built_in(
            "algebraic:spectralfly",
            "spectralfly:p=3,q=5",
            p="an odd prime: a node has p + 1 cables",
            q="another, above 2 sqrt(p): q (q^2 - 1) nodes or half of them",
        ),
        "polarfly": _built_in(
            "star_products:polarfly",
            "polarfly:q=5",
            q="a prime power: q^2 + q + 1 nodes, q + 1 cables of each",
        ),
        "polarstar": _built_in(
            "star_products:polarstar",
            "polarstar:q=3,d=3",
            q="a prime power: copies at the q^2 + q + 1 nodes of PolarFly",
            d="cables of a node within its copy: q + 1 + d in all",
            supernode="iq, of 2 d + 2 nodes, or paley, of 2 d + 1",
        ),
        "bundlefly": _built_in(
            "star_products:bundlefly",
            "bundlefly:q=3,p=5",
            q="a prime power: copies at the 2 q^2 nodes of Slim Fly",
            p="a prime power of 1 modulo 4: nodes of a copy",
        ),
        "complete": _built_in("hierarchical:complete", "complete:8"),
        "bipartite": _built_in(
            "hierarchical:bipartite", "bipartite:4x4", parts="nodes in the two parts, such as 4x4"
        ),
        "switch": _built_in("hierarchical:switch", "switch:n=8", n="terminals"),
        "dragonfly": _built_in(
            "hierarchical:dragonfly", "dragonfly:a=4,h=2", a="routers in a group"
        ),
        "megafly": _built_in(
            "hierarchical:megafly",
            "megafly:leaves=2,spines=2,h=2",
            leaves="leaf switches of a group",
            spines="spine switches of a group",
            h="global links of a spine",
        ),
        "fattree": _built_in(
            "hierarchical:fattree", "fattree:k=4", k="ports of a switch, even: k^3 / 4 hosts"
        ),
        "dgx1": _built_in("hardware:dgx1", "dgx1", NVLINK),
        "ndv2": _built_in("hardware:ndv2", "ndv2", NVLINK),
        "dgx2": _built_in("hardware:dgx2", "dgx2", NVLINK),
        "nvswitch": _built_in("hardware:nvswitch", "nvswitch:rate=3600,n=8", GBIT, n="GPUs"),
        "tpuv4": _built_in("grids:tpuv4", "tpuv4:4x4x8,twisted=true", "400Gbps"),
        "tpuv5p": _built_in("grids:tpuv5p", "tpuv5p:4x4x8,twisted=true", "800Gbps"),
        "boardfly": _built_in("grids:boardfly", "boardfly:g=4", g="groups of 32 chips, 1 to 41"),
        "trainium": _built_in(
            "hardware:trainium", "trainium:z=4", GBIT, z="instances: 1, or 4 for an UltraServer"
        ),
        "ubmesh": _built_in(
            "hardware:ubmesh",
            "ubmesh:8x8",
            lanes="capacity of a link in each dimension, such as 4x2",
        ),
        "xgmi": _built_in("hardware:xgmi", "xgmi:n=8,rate=512", GBIT, n="GPUs"),
        "boxes": _built_in(
            "hardware:boxes",
            "boxes:n=4,ring=true",
            GBIT,
            n="boxes",
            ring="whether the last is cabled to the first",
        ),
        "cluster": _built_in(
            "clusters:cluster",
            "cluster:hosts=4,gpus=8,inside=nvswitch:3600,nics=4x400,outside=genkautz:d=2",
            GBIT,
            gpus="GPUs of a host",
            inside="fabric that joins the GPUs of a host: a SPEC",
            nics="NICs of a host and their rate, such as 4x400",
            link="rate of a capacity-1 link inside, if the inside states none",
            attach="end of a NIC's link within the host: gpu or switch",
            forward="forwards incoming traffic: host or nic",
        ),
        "dgxh100": _built_in("clusters:dgxh100", "dgxh100:hosts=4,outside=rail", GBIT),
        "mi300x": _built_in("clusters:mi300x", "mi300x:hosts=4,outside=torus:2x2", GBIT),
    },
    _family,
)
"""All families by name; others are added by `register_family`."""


def unknown_family(name: str) -> str:
    """Return the message for an unknown family."""
    hint = did_you_mean(name, FAMILIES)
    return f"unknown topology family {reprlib.repr(name)}; {hint}families: {', '.join(FAMILIES)}"


def names_file(spec: str) -> bool:
    """Return whether SPEC is an existing file, or looks like the path of one."""
    path = Path(spec)
    if path.suffix or "/" in spec.partition(":")[0]:
        return True
    return exists(path)
