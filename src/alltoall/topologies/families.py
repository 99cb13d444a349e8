"""The families of topologies by name; this table imports no construction until one is built."""

import difflib
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from alltoall.errors import UsageError
from alltoall.registry import Registry, load

if TYPE_CHECKING:
    from alltoall.ir.topology import Topology


@dataclass(frozen=True)
class Family:
    """A family of topologies.

    `builder` is a function, or the place of one in this room, `file:function`; `example` is a SPEC.
    `parameters` gives their meanings; those of a registered family are read from its signature.
    `unit` is the rate of a capacity-1 link, such as 1Gbps, if the capacities are physical.
    """

    builder: "Callable[..., Topology] | str"
    example: str
    summary: str
    parameters: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None

    @property
    def build(self) -> "Callable[..., Topology]":
        """The function that builds a member from the parameters of a SPEC."""
        if not isinstance(self.builder, str):
            return self.builder
        function: Callable[..., Topology] = load(f"{__package__}.{self.builder}")
        return function


def _family(name: str, builder: Any) -> Family:
    """Return a registered builder as a family; its docstring begins with the summary."""
    if isinstance(builder, Family):
        return builder
    if not callable(builder) or not builder.__doc__:
        raise UsageError(
            f"topology family {name!r} is {reprlib.repr(builder)}; expected a function with a "
            "docstring, whose parameters are those of the SPEC, that returns a Topology"
        )
    return Family(builder, name, builder.__doc__.partition("\n")[0])


def register_family(name: str, builder: "Callable[..., Topology] | Family") -> None:
    """Add a family, so that `name:arguments` is a SPEC everywhere.

    The parameters of `builder` are those of the SPEC, with types that a SPEC can give. An
    installed package does the same by an entry point in the group `alltoall.families`.
    """
    FAMILIES.register(name, builder)


GBIT, NVLINK = "1Gbps", "25GB/s"
"""The unit of families whose capacities are in Gbit/s, and of those that count V100 NVLinks."""


def _built_in(
    builder: str, example: str, summary: str, unit: str | None = None, **parameters: str
) -> Family:
    return Family(builder, example, summary, parameters, unit)


JOINED = {
    "hosts": "hosts",
    "outside": "fabric that joins the hosts: a SPEC, or rail (the default)",
    "over": "terminals of the outside: hosts, rails or nics",
}
"""The parameters that all clusters have."""

FAMILIES = Registry(
    "topology family",
    "alltoall.families",
    {
        "ring": _built_in(
            "grids:ring",
            "ring:6",
            "the ring of `n` nodes: node v has links to v + 1 and v - 1 modulo n",
            n="nodes",
        ),
        "mesh": _built_in(
            "grids:mesh",
            "mesh:3x4",
            "the mesh: nodes are grid points, links join those one step apart in one dimension",
            dims="nodes in each dimension, such as 3x4",
        ),
        "torus": _built_in(
            "grids:torus",
            "torus:3x3x3",
            "the torus: a mesh whose every dimension wraps around, a product of cycles",
            dims="nodes in each dimension, such as 3x3x3",
        ),
        "hypercube": _built_in(
            "grids:hypercube",
            "hypercube:3",
            "the binary hypercube: 2^dim nodes, linked where their numbers differ in one bit",
            dim="dimensions",
        ),
        "twisted-hypercube": _built_in(
            "grids:twisted_hypercube",
            "twisted-hypercube:3",
            "the twisted cube TQ_dim: a hypercube in which one pair of parallel edges is crossed",
            dim="dimensions, 3 or more",
        ),
        "hyperx": _built_in(
            "grids:hyperx",
            "hyperx:3x3",
            "the regular HyperX: nodes that differ in exactly one coordinate are linked",
            dims="nodes in each dimension, such as 3x3",
        ),
        "circulant": _built_in(
            "digraphs:circulant",
            "circulant:n=16,jumps=1x3",
            "the circulant graph: node v has links to v + j modulo n for every jump j",
            n="nodes",
            jumps="distances of the links of a node, such as 1x3",
            directed="whether to leave out the links back",
        ),
        "debruijn": _built_in(
            "digraphs:debruijn",
            "debruijn:d=2,k=3",
            "the de Bruijn digraph B(d, k) on the d^k words of k letters from an alphabet of d",
            d="letters, and links out of a node",
            k="letters of a word, and the diameter",
        ),
        "kautz": _built_in(
            "digraphs:kautz",
            "kautz:d=2,k=3",
            "the Kautz digraph K(d, k): degree d, diameter k, d^k + d^(k-1) nodes",
            d="links out of a node",
            k="letters of a word, and the diameter",
        ),
        "genkautz": _built_in(
            "digraphs:genkautz",
            "genkautz:n=64,d=4",
            "the generalized Kautz digraph on any number of nodes, of any degree",
            n="nodes",
            d="links out of a node",
            rewire="whether to use the ports of self-loops for other links",
        ),
        "gendebruijn": _built_in(
            "digraphs:gendebruijn",
            "gendebruijn:n=50,d=3",
            "the generalized de Bruijn digraph on any number of nodes, of any degree",
            n="nodes",
            d="links out of a node",
            rewire="whether to use the ports of self-loops for other links",
        ),
        "best": _built_in(
            "expanders:best",
            "best:n=64,d=4",
            "the best network of `n` nodes and degree `d` that was found by search",
            n="nodes",
            d="ports of a node: links out, and as many in",
            bidirectional="whether links are cables that go both ways",
        ),
        "jellyfish": _built_in(
            "expanders:jellyfish",
            "jellyfish:n=64,d=4,seed=1",
            "Jellyfish: a random d-regular simple graph on `n` nodes, drawn until connected",
            n="nodes",
            d="cables of a node",
            seed="which random graph",
        ),
        "xpander": _built_in(
            "expanders:xpander",
            "xpander:n=60,d=4,seed=1",
            "Xpander: a random lift of the complete graph on d + 1 nodes, drawn until connected",
            n="nodes, a multiple of d + 1",
            d="cables of a node",
            seed="which random graph",
        ),
        "slimfly": _built_in(
            "algebraic:slimfly",
            "slimfly:q=5",
            "Slim Fly: the McKay-Miller-Siran graph of the prime power q = 4 w + delta",
            q="a prime power: 2 q^2 nodes, about 3 q / 2 cables of each",
        ),
        "spectralfly": _built_in(
            "algebraic:spectralfly",
            "spectralfly:p=3,q=5",
            "SpectralFly: the Ramanujan graph X^(p, q) of Lubotzky, Phillips and Sarnak",
            p="an odd prime: a node has p + 1 cables",
            q="another, above 2 sqrt(p): q (q^2 - 1) nodes or half of them",
        ),
        "polarfly": _built_in(
            "star_products:polarfly",
            "polarfly:q=5",
            "PolarFly: the polarity graph of the projective plane over GF(q), of diameter 2",
            q="a prime power: q^2 + q + 1 nodes, q + 1 cables of each",
        ),
        "polarstar": _built_in(
            "star_products:polarstar",
            "polarstar:q=3,d=3",
            "PolarStar: copies of a small graph at the nodes of PolarFly, of diameter 3",
            q="a prime power: copies at the q^2 + q + 1 nodes of PolarFly",
            d="cables of a node within its copy: q + 1 + d in all",
            supernode="iq, of 2 d + 2 nodes, or paley, of 2 d + 1",
        ),
        "bundlefly": _built_in(
            "star_products:bundlefly",
            "bundlefly:q=3,p=5",
            "BundleFly: copies of a Paley graph at the nodes of Slim Fly, of diameter 3",
            q="a prime power: copies at the 2 q^2 nodes of Slim Fly",
            p="a prime power of 1 modulo 4: nodes of a copy",
        ),
        "complete": _built_in(
            "hierarchical:complete",
            "complete:8",
            "the complete graph: a link from every node to every other",
            n="nodes",
        ),
        "bipartite": _built_in(
            "hierarchical:bipartite",
            "bipartite:4x4",
            "the complete bipartite graph: every node of either part is linked to all of the other",
            parts="nodes in the two parts, such as 4x4",
        ),
        "switch": _built_in(
            "hierarchical:switch",
            "switch:n=8",
            "a switch: `n` terminals, each with a link to the one node between them",
            n="terminals",
            rate="capacity of a terminal's link",
        ),
        "dragonfly": _built_in(
            "hierarchical:dragonfly",
            "dragonfly:a=4,h=2",
            "Dragonfly: `g` groups of `a` routers, each router with `h` global links",
            a="routers in a group",
            h="global links of a router",
            g="groups, such that g - 1 divides a h",
        ),
        "megafly": _built_in(
            "hierarchical:megafly",
            "megafly:leaves=2,spines=2,h=2",
            "Megafly, or Dragonfly+: groups of leaf and spine switches; leaves are the terminals",
            leaves="leaf switches of a group",
            spines="spine switches of a group",
            h="global links of a spine",
            g="groups, such that g - 1 divides spines h",
        ),
        "fattree": _built_in(
            "hierarchical:fattree",
            "fattree:k=4",
            "the three-level fat tree of switches with `k` ports; the hosts are the terminals",
            k="ports of a switch, even: k^3 / 4 hosts",
        ),
        "dgx1": _built_in(
            "hardware:dgx1",
            "dgx1",
            "the NVLink network of a DGX-1 with eight V100: the hybrid cube mesh",
            unit=NVLINK,
        ),
        "ndv2": _built_in(
            "hardware:ndv2",
            "ndv2",
            "the NVLink network of an Azure NDv2 virtual machine: that of the DGX-1, renumbered",
            unit=NVLINK,
        ),
        "dgx2": _built_in(
            "hardware:dgx2",
            "dgx2",
            "the NVLink network of a DGX-2: 16 GPUs on two boards of 6 NVSwitches each",
            unit=NVLINK,
        ),
        "nvswitch": _built_in(
            "hardware:nvswitch",
            "nvswitch:rate=3600,n=8",
            "GPUs behind NVSwitches that do not block, at `rate` for each",
            rate="rate at which a GPU sends and receives, in Gbit/s",
            n="GPUs",
            unit=GBIT,
        ),
        "tpuv4": _built_in(
            "grids:tpuv4",
            "tpuv4:4x4x8,twisted=true",
            "a TPU v4 slice: a three-dimensional torus, or its twisted variant",
            dims="chips in each dimension, such as 4x4x8",
            twisted="whether short dimensions wrap with a twist",
            unit="400Gbps",
        ),
        "tpuv5p": _built_in(
            "grids:tpuv5p",
            "tpuv5p:4x4x8,twisted=true",
            "a TPU v5p slice: cubes in a torus, straight or twisted, or a mesh below a cube",
            dims="chips in each dimension, such as 4x4x8",
            twisted="whether short dimensions wrap with a twist",
            unit="800Gbps",
        ),
        "boardfly": _built_in(
            "grids:boardfly",
            "boardfly:g=4",
            "Boardfly, of TPU 8i: groups of eight boards of four chips, every two groups joined",
            g="groups of 32 chips, 1 to 41",
        ),
        "trainium": _built_in(
            "hardware:trainium",
            "trainium:z=4",
            "Trainium2 chips: the 4x4 torus of an instance, or several in rings, in Gbit/s",
            z="instances: 1, or 4 for an UltraServer",
            unit=GBIT,
        ),
        "ubmesh": _built_in(
            "hardware:ubmesh",
            "ubmesh:8x8",
            "UB-Mesh, the nD full mesh: a board of 8 NPUs, a rack of 8x8, a pod of 8x8x4x4",
            dims="NPUs in each dimension, such as 8x8",
            lanes="capacity of a link in each dimension, such as 4x2",
        ),
        "xgmi": _built_in(
            "hardware:xgmi",
            "xgmi:n=8,rate=512",
            "the xGMI full mesh of GPUs in one host, such as eight MI300X, in Gbit/s",
            n="GPUs",
            rate="capacity of a link",
            unit=GBIT,
        ),
        "boxes": _built_in(
            "hardware:boxes",
            "boxes:n=4,ring=true",
            "boxes of two ports each, cabled in a line or a ring, in Gbit/s",
            n="boxes",
            ring="whether the last is cabled to the first",
            rate="rate of a port",
            unit=GBIT,
        ),
        "cluster": _built_in(
            "clusters:cluster",
            "cluster:hosts=4,gpus=8,inside=nvswitch:3600,nics=4x400,outside=genkautz:d=2",
            "hosts with a fabric inside, NICs, and a fabric outside that joins them",
            gpus="GPUs of a host",
            inside="fabric that joins the GPUs of a host: a SPEC",
            nics="NICs of a host and their rate, such as 4x400",
            link="rate of a capacity-1 link inside, if the inside states none",
            attach="end of a NIC's link within the host: gpu or switch",
            forward="forwards incoming traffic: host or nic",
            **JOINED,
            unit=GBIT,
        ),
        "dgxh100": _built_in(
            "clusters:dgxh100",
            "dgxh100:hosts=4,outside=rail",
            "DGX H100 hosts, in Gbit/s, joined by rails or by any topology",
            **JOINED,
            unit=GBIT,
        ),
        "mi300x": _built_in(
            "clusters:mi300x",
            "mi300x:hosts=4,outside=torus:2x2",
            "MI300X hosts, in Gbit/s, joined by rails or by any topology",
            **JOINED,
            unit=GBIT,
        ),
    },
    _family,
)
"""All families by name; others are added by `register_family`."""


def unknown_family(name: str) -> str:
    """Return the message for an unknown family."""
    close = difflib.get_close_matches(name, FAMILIES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown topology family {reprlib.repr(name)}; {hint}families: {', '.join(FAMILIES)}"


def names_file(spec: str) -> bool:
    """Return whether SPEC is an existing file, or looks like the path of one."""
    path = Path(spec)
    if path.suffix or "/" in spec.partition(":")[0]:
        return True
    try:
        return path.exists()
    except OSError:  # e.g. a name too long for any file
        return False
