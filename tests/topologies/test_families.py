"""Every family pinned: nodes, links, degree, diameter, girth and automorphisms."""

from math import factorial

import pytest

from alltoall.flows.symmetry.automorphisms import count_automorphisms
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.properties import diameter, girth
from alltoall.topologies.spec import build

# spec, nodes, links, out-degrees, diameter, girth, automorphisms
PINNED = [
    ("ring:6", 6, 12, {2}, 3, 6, 12),
    ("ring:2", 2, 2, {1}, 1, None, 2),
    ("mesh:3x4", 12, 34, {2, 3, 4}, 5, 4, 4),
    ("mesh:4", 4, 6, {1, 2}, 3, None, 2),
    ("torus:3x3x3", 27, 162, {6}, 3, 3, 1296),
    ("torus:2x2", 4, 8, {2}, 2, 4, 8),
    ("torus:2x4", 8, 24, {3}, 3, 4, 48),
    ("torus:4x6", 24, 96, {4}, 5, 4, 96),
    ("hypercube:1", 2, 2, {1}, 1, None, 2),
    ("hypercube:3", 8, 24, {3}, 3, 4, 48),
    ("hypercube:6", 64, 384, {6}, 6, 4, 2**6 * factorial(6)),
    ("twisted-hypercube:3", 8, 24, {3}, 2, 4, 16),
    ("twisted-hypercube:5", 32, 160, {5}, 4, 4, 24),
    ("hyperx:3x3", 9, 36, {4}, 2, 3, 72),
    ("hyperx:2x3x4", 24, 144, {6}, 3, 3, 2 * 6 * 24),
    ("circulant:n=16,jumps=1x3", 16, 64, {4}, 4, 4, 32),
    ("circulant:n=8,jumps=1x4", 8, 24, {3}, 2, 4, 16),
    ("circulant:n=8,jumps=1x4,directed=true", 8, 16, {2}, 4, 2, 8),
    ("debruijn:d=2,k=3", 8, 14, {1, 2}, 3, 2, 2),
    ("debruijn:d=3,k=2", 9, 24, {2, 3}, 2, 2, 6),
    ("kautz:d=2,k=3", 12, 24, {2}, 3, 2, 6),
    ("kautz:d=4,k=3", 80, 320, {4}, 3, 2, 120),
    ("genkautz:n=64,d=4", 64, 252, {3, 4}, 3, 2, 24),
    ("genkautz:n=64,d=4,rewire=true", 64, 256, {4}, 3, 2, 4),
    ("genkautz:n=80,d=4", 80, 320, {4}, 3, 2, 120),
    ("genkautz:n=100,d=4", 100, 400, {4}, 4, 2, 10),
    ("slimfly:q=4", 32, 192, {6}, 2, 4, 1920),
    ("slimfly:q=5", 50, 350, {7}, 2, 5, 252_000),
    ("spectralfly:p=3,q=5", 120, 480, {4}, 6, 6, 2880),
    ("spectralfly:p=3,q=7", 336, 1344, {4}, 6, 8, 8064),
    ("spectralfly:p=5,q=7", 336, 2016, {6}, 6, 6, 8064),
    ("spectralfly:p=11,q=7", 168, 2016, {12}, 3, 3, 4032),
    ("complete:8", 8, 56, {7}, 1, 3, factorial(8)),
    ("bipartite:4x4", 8, 32, {4}, 2, 4, 2 * 24 * 24),
    ("bipartite:2x3", 5, 12, {2, 3}, 2, 4, 2 * 6),
    ("switch:n=5", 6, 10, {1, 5}, 2, None, factorial(5)),
    ("nvswitch:rate=3600,n=8", 9, 16, {1, 8}, 2, None, factorial(8)),
    ("dragonfly:a=4,h=2", 36, 180, {5}, 3, 3, 18),
    ("dragonfly:a=4,h=2,g=5", 20, 100, {5}, 3, 3, 20),
    # pods, then hosts and edge switches within them, then aggregation and core switches
    ("fattree:k=4", 36, 96, {1, 4}, 6, 4, factorial(4) * 8**4 * 8),
    ("dgx1", 8, 32, {4}, 2, 3, 4),
    ("ndv2", 8, 32, {4}, 2, 3, 4),
    ("dgx2", 28, 204, {6, 9}, 3, 4, 2 * factorial(8) ** 2 * factorial(6)),
    ("tpuv4:4x4x4", 64, 384, {6}, 6, 4, 2**6 * factorial(6)),
    ("tpuv4:4x4x8", 128, 768, {6}, 8, 4, 8**2 * 2 * 3 * 16),
    ("gendebruijn:n=50,d=3", 50, 146, {2, 3}, 4, 2, 4),
    ("gendebruijn:n=50,d=3,rewire=true", 50, 150, {3}, 4, 2, 2),
    # PGL(2, q) acts on the points; the field of 9 elements has an automorphism of order 2
    ("polarfly:q=3", 13, 48, {3, 4}, 2, 3, 24),
    ("polarfly:q=5", 31, 180, {5, 6}, 2, 3, 120),
    ("polarfly:q=9", 91, 900, {9, 10}, 2, 3, 2 * 720),
    # the Heawood graph
    ("polarstar:q=2,d=0", 14, 42, {3}, 3, 6, 336),
    ("polarstar:q=3,d=3", 104, 728, {7}, 3, 3, 144),
    ("polarstar:q=4,d=4", 210, 1890, {9}, 3, 3, 240),
    ("polarstar:q=3,d=7", 208, 2288, {11}, 3, 3, 48),
    ("polarstar:q=3,d=2,supernode=paley", 65, 370, {5, 6}, 3, 3, 2),
    ("bundlefly:q=3,p=5", 90, 630, {7}, 3, 3, 8),
    ("bundlefly:q=4,p=9", 288, 2880, {10}, 3, 3, 12),
    ("bundlefly:q=5,p=5", 250, 2250, {9}, 3, 5, 8),
    # five groups may be turned, and the leaves of each exchanged
    ("megafly:leaves=2,spines=2,h=2", 20, 60, {2, 4}, 3, 4, 10 * 2**5),
    ("tpuv5p:2x2x1", 4, 8, {2}, 2, 4, 8),
    ("tpuv5p:2x4x4", 32, 128, {3, 4, 5}, 7, 4, 16),
    ("tpuv5p:4x4x4", 64, 384, {6}, 6, 4, 2**6 * factorial(6)),
    ("tpuv5p:4x4x8,twisted=true", 128, 768, {6}, 6, 4, 128 * 48),
    ("tpuv5p:4x8x8,twisted=true", 256, 1536, {6}, 6, 4, 256 * 48),
    ("tpuv5p:8x8x16,twisted=true", 1024, 6144, {6}, 12, 4, 1024 * 48),
    ("boardfly:g=1", 32, 152, {4, 5}, 3, 3, 8),
    ("boardfly:g=36", 1152, 6732, {5, 6}, 7, 3, 36),
    ("trainium:z=1", 16, 64, {4}, 4, 4, 384),
    # the faster 4x4 torus of an instance, and rings of four
    ("trainium:z=4", 64, 384, {6}, 6, 4, 384 * 8),
    ("ubmesh:8x8", 64, 896, {14}, 2, 3, 2 * factorial(8) ** 2),
    ("ubmesh:4x4,lanes=2x1", 16, 96, {6}, 2, 3, factorial(4) ** 2),
    ("ubmesh:8x8x4x4", 1024, 20480, {20}, 4, 3, 4 * (factorial(8) * factorial(4)) ** 2),
    ("xgmi:n=8,rate=512", 8, 56, {7}, 1, 3, factorial(8)),
    ("boxes:n=4", 4, 6, {1, 2}, 3, None, 2),
    ("boxes:n=4,ring=true", 4, 8, {2}, 2, 4, 8),
    ("boxes:n=2,ring=true", 2, 4, {2}, 1, 2, 2),
    # rails may change places, and so may the two hosts
    ("dgxh100:hosts=2,outside=rail", 42, 96, {2, 8}, 6, 12, 2 * factorial(8)),
    ("mi300x:hosts=2,outside=rail", 40, 176, {2, 8}, 5, 3, 2 * factorial(8)),
    ("tpuv4:4x4x8,twisted=true", 128, 768, {6}, 6, 4, 128 * 48),
    ("tpuv4:4x8x8,twisted=true", 256, 1536, {6}, 6, 4, 256 * 48),
]


@pytest.mark.parametrize(
    ("spec", "nodes", "links", "degrees", "longest", "cycle", "symmetries"), PINNED
)
def test_pinned(
    spec: str,
    nodes: int,
    links: int,
    degrees: set[int],
    longest: int,
    cycle: int | None,
    symmetries: int,
) -> None:
    """Counts and structure are the ones known for the family."""
    topology = build(spec)
    assert (topology.nodes, topology.links) == (nodes, links)
    assert set(topology.out_degree.tolist()) == degrees
    assert diameter(topology) == longest
    assert girth(topology) == cycle
    assert count_automorphisms(topology) == symmetries


@pytest.mark.parametrize("name", FAMILIES)
def test_example_builds_and_its_name_rebuilds_it(name: str) -> None:
    """The example of a family builds, and the name it gets is a SPEC for the same topology."""
    topology = build(FAMILIES[name].example)
    assert topology.name.partition(":")[0] == name
    again = build(topology.name)
    assert again.name == topology.name
    assert again == topology


@pytest.mark.parametrize("spec", sorted({row[0] for row in PINNED}))
def test_name_is_canonical(spec: str) -> None:
    """The name of a topology begins with the SPEC it was built from, here written in full."""
    assert build(spec).name.startswith(spec)


DIRECTED = (
    "circulant:n=8,jumps=1x4,directed=true",
    *("debruijn", "gendebruijn", "kautz", "genkautz"),
)


@pytest.mark.parametrize("spec", [row[0] for row in PINNED])
def test_direction(spec: str) -> None:
    """All families but the digraphs have a partner for every link."""
    assert build(spec).bidirectional != spec.startswith(DIRECTED)
