"""The families of topologies by name; this table imports no construction until one is built."""

import difflib
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from a2aflow.errors import UsageError
from a2aflow.registry import Registry, load

if TYPE_CHECKING:
    from a2aflow.ir.topology import Topology


@dataclass(frozen=True)
class Family:
    """A family of topologies: what builds a member, the SPEC of one, and what it is.

    `builder` is a function, or where one stands in this room: `file:function`.
    """

    builder: "Callable[..., Topology] | str"
    example: str
    summary: str

    @property
    def build(self) -> "Callable[..., Topology]":
        """The function that builds a member from the parameters of a SPEC."""
        found: Callable[..., Topology] = (
            load(f"{__package__}.{self.builder}") if isinstance(self.builder, str) else self.builder
        )
        return found


def _family(name: str, builder: Any) -> Family:
    """Return what somebody registers as a family; its docstring begins with a summary."""
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
    installed package does the same by an entry point in the group `a2aflow.families`.
    """
    FAMILIES.register(name, builder)


FAMILIES = Registry(
    "topology family",
    "a2aflow.families",
    {
        "ring": Family(
            "grids:ring",
            "ring:6",
            "the ring of `n` nodes: node v has links to v + 1 and v - 1 modulo n",
        ),
        "mesh": Family(
            "grids:mesh",
            "mesh:3x4",
            "the mesh: nodes are grid points, links join those one step apart in one dimension",
        ),
        "torus": Family(
            "grids:torus",
            "torus:3x3x3",
            "the torus: a mesh whose every dimension wraps around, a product of cycles",
        ),
        "hypercube": Family(
            "grids:hypercube",
            "hypercube:3",
            "the binary hypercube: 2^dim nodes, linked where their numbers differ in one bit",
        ),
        "twisted-hypercube": Family(
            "grids:twisted_hypercube",
            "twisted-hypercube:3",
            "the twisted cube TQ_dim: a hypercube in which one pair of parallel edges is crossed",
        ),
        "hyperx": Family(
            "grids:hyperx",
            "hyperx:3x3",
            "the regular HyperX: nodes that differ in exactly one coordinate are linked",
        ),
        "circulant": Family(
            "digraphs:circulant",
            "circulant:n=16,jumps=1x3",
            "the circulant graph: node v has links to v + j modulo n for every jump j",
        ),
        "debruijn": Family(
            "digraphs:debruijn",
            "debruijn:d=2,k=3",
            "the de Bruijn digraph B(d, k) on the d^k words of k letters from an alphabet of d",
        ),
        "kautz": Family(
            "digraphs:kautz",
            "kautz:d=2,k=3",
            "the Kautz digraph K(d, k): degree d, diameter k, d^k + d^(k-1) nodes",
        ),
        "genkautz": Family(
            "digraphs:genkautz",
            "genkautz:n=64,d=4",
            "the generalized Kautz digraph on any number of nodes, of any degree",
        ),
        "best": Family(
            "catalogue:best",
            "best:n=64,d=4",
            "the best network of `n` nodes and degree `d` that was found by search",
        ),
        "jellyfish": Family(
            "expanders:jellyfish",
            "jellyfish:n=64,d=4,seed=1",
            "Jellyfish: a random d-regular simple graph on `n` nodes, drawn until connected",
        ),
        "xpander": Family(
            "expanders:xpander",
            "xpander:n=60,d=4,seed=1",
            "Xpander: a random lift of the complete graph on d + 1 nodes, drawn until connected",
        ),
        "slimfly": Family(
            "algebraic:slimfly",
            "slimfly:q=5",
            "Slim Fly: the McKay-Miller-Siran graph of the prime power q = 4 w + delta",
        ),
        "spectralfly": Family(
            "algebraic:spectralfly",
            "spectralfly:p=3,q=5",
            "SpectralFly: the Ramanujan graph X^(p, q) of Lubotzky, Phillips and Sarnak",
        ),
        "complete": Family(
            "hierarchical:complete",
            "complete:8",
            "the complete graph: a link from every node to every other",
        ),
        "bipartite": Family(
            "hierarchical:bipartite",
            "bipartite:4x4",
            "the complete bipartite graph: every node of either part is linked to all of the other",
        ),
        "switch": Family(
            "hierarchical:switch",
            "switch:n=8",
            "a switch: `n` terminals, each with a link to the one node between them",
        ),
        "dragonfly": Family(
            "hierarchical:dragonfly",
            "dragonfly:a=4,h=2",
            "Dragonfly: `g` groups of `a` routers, each router with `h` global links",
        ),
        "fattree": Family(
            "hierarchical:fattree",
            "fattree:k=4",
            "the three-level fat tree of switches with `k` ports; the hosts are the terminals",
        ),
        "dgx1": Family(
            "hardware:dgx1",
            "dgx1",
            "the NVLink network of a DGX-1 with eight V100: the hybrid cube mesh",
        ),
        "ndv2": Family(
            "hardware:ndv2",
            "ndv2",
            "the NVLink network of an Azure NDv2 virtual machine: that of the DGX-1, renumbered",
        ),
        "dgx2": Family(
            "hardware:dgx2",
            "dgx2",
            "the NVLink network of a DGX-2: 16 GPUs on two boards of 6 NVSwitches each",
        ),
        "nvswitch": Family(
            "hardware:nvswitch",
            "nvswitch:rate=3600,n=8",
            "GPUs behind NVSwitches that do not block, at `rate` for each",
        ),
        "tpuv4": Family(
            "hardware:tpuv4",
            "tpuv4:4x4x8,twisted=true",
            "a TPU v4 slice: a three-dimensional torus, or its twisted variant",
        ),
        "cluster": Family(
            "clusters:cluster",
            "cluster:hosts=4,gpus=8,inside=nvswitch:3600,nics=4x400,outside=genkautz:d=2",
            "hosts with a fabric inside, NICs, and a fabric outside that joins them",
        ),
        "dgxh100": Family(
            "clusters:dgxh100",
            "dgxh100:hosts=4,outside=rail",
            "DGX H100 hosts, in Gbit/s, joined by rails or by any topology",
        ),
        "mi300x": Family(
            "clusters:mi300x",
            "mi300x:hosts=4,outside=torus:2x2",
            "MI300X hosts, in Gbit/s, joined by rails or by any topology",
        ),
    },
    _family,
)
"""All families by name; others are added by `register_family`."""


def unknown_family(name: str) -> str:
    """Return what to say of a family that there is not."""
    close = difflib.get_close_matches(name, FAMILIES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown topology family {reprlib.repr(name)}; {hint}families: {', '.join(FAMILIES)}"


def names_file(spec: str) -> bool:
    """Whether SPEC is there as a file, or is written like the path of one."""
    path = Path(spec)
    if path.suffix or "/" in spec.partition(":")[0]:
        return True
    try:
        return path.exists()
    except OSError:  # such as a name that is too long for any file
        return False
