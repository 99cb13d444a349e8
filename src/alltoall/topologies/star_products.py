"""Polarity graphs and star products: PolarFly, PolarStar and BundleFly.

The star product of a structure graph G and a supernode graph H puts a copy of H at every node of G
and joins two copies, where G has an edge, by a perfect matching: node i of the one with node f(i)
of the other, for one permutation f of the nodes of H. If G has diameter 2, and H and f fit together
as said below, then the product has diameter 3. Bermond, Delorme and Farhi, "Large graphs with given
degree and diameter III", Ann. Discrete Math. 1982.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.algebraic import Field, finite_field, prime_power, slimfly
from alltoall.topologies.parts import check_size, from_pairs, require

_QUAD = ((1, 0, 0), (1, 3, 1), (2, 0, 0), (2, 1, 1), (3, 0, 1), (3, 2, 0))
"""Ownership among the four pairs of a quad: owner, owned, and the owner's node that is linked."""

_BLOCK = 1 << 22
"""Pairs of points per block, a limit on memory."""

_PRIME_POWERS = "expected a prime power such as 2, 3, 4, 5, 7, 8 or 9"


def polarfly(q: int) -> Topology:
    """Build PolarFly: the polarity graph of the projective plane over GF(q), of diameter 2.

    Nodes are the q^2 + q + 1 points of the plane, as vectors whose first nonzero entry is 1, in
    lexicographic order; two are linked where their dot product is 0. Degrees are q + 1, but q at
    the q + 1 points that are orthogonal to themselves. Any two points have exactly one orthogonal
    to both, so the diameter is 2. Erdos and Renyi, "On a problem in the theory of graphs", 1962;
    Lakhotia, Besta, Monroe, Isham, Iff, Hoefler and Petrini, "PolarFly: a cost-effective and
    flexible low-diameter topology", SC 2022.
    """
    name = f"polarfly:q={q}"
    nodes = _plane_size(name, q)
    check_size(name, nodes, nodes * (q + 1))
    left, right = _orthogonal_points(finite_field(q, name))
    apart = left < right
    return from_pairs(name, nodes, left[apart], right[apart])


def polarstar(q: int, d: int, supernode: str = "iq") -> Topology:
    """Build PolarStar: copies of a small graph at the nodes of PolarFly, of diameter 3.

    There are (q^2 + q + 1) s nodes of degree q + 1 + d, and the diameter is 3. Node i of the copy
    at point x is number x s + i.

    With `supernode=iq`, the default, s = 2 d + 2 and d is 0 or 3 modulo 4: an Inductive-Quad
    graph, whose nodes come in pairs that f exchanges. Of any two pairs one owns the other: one node
    of the owner is linked to both nodes of the owned. A point that is orthogonal to itself joins
    its copy to itself, pair by pair, so all degrees are equal. With `supernode=paley`, s = 2 d + 1
    is a prime power of 1 modulo 4, the supernode a Paley graph, and f multiplies by a primitive
    element; there such points have a port free. Lakhotia, Monroe, Isham, Besta, Blach, Hoefler and
    Petrini, "PolarStar: expanding the horizon of diameter-3 networks", SPAA 2024.
    """
    name = f"polarstar:q={q},d={d}" + (f",supernode={supernode}" if supernode != "iq" else "")
    require(supernode in _SUPERNODES, name, f"supernode is {supernode!r}; expected iq or paley")
    points = _plane_size(name, q)
    size = 2 * d + (2 if supernode == "iq" else 1)
    require(d >= 0, name, f"d is {d}; expected 0 or more")
    check_size(name, points * size, points * size * (q + 1 + d))
    inner = _SUPERNODES[supernode](d, name)
    left, right = _orthogonal_points(finite_field(q, name))
    once = left <= right if inner.involution else left < right
    return _star_product(name, points, left[once], right[once], inner)


def bundlefly(q: int, p: int) -> Topology:
    """Build BundleFly: copies of a Paley graph at the nodes of Slim Fly, of diameter 3.

    There are 2 q^2 p nodes of degree (3 q - delta) / 2 + (p - 1) / 2, with q = 4 w + delta as in
    `slimfly` and p a prime power of 1 modulo 4; the diameter is 3. The links between two copies of
    the Paley graph are meant for one bundle of fibres; along an edge from the lower to the higher
    MMS node they multiply by a primitive element. Node i of the copy at x is number x p + i. Lei,
    Dong, Liao and Duato, "Bundlefly: a low-diameter topology for multicore fiber", ICS 2020.
    """
    name = f"bundlefly:q={q},p={p}"
    require(q >= 3 and p >= 5, name, "expected q of 3 or more and p of 5 or more")
    check_size(name, 2 * q * q * p, q * q * p * (3 * q + p))
    inner = _paley((p - 1) // 2, name, p)
    outer = slimfly(q)
    once = outer.tail < outer.head
    return _star_product(name, outer.nodes, outer.tail[once], outer.head[once], inner)


@dataclass(frozen=True)
class _Supernode:
    """A supernode: its edges, each once, and the permutation f that joins copies."""

    left: Ints
    right: Ints
    permuted: Ints

    @property
    def involution(self) -> bool:
        """Whether f is its own inverse, so that a copy can be joined to itself."""
        return np.array_equal(self.permuted[self.permuted], np.arange(len(self.permuted)))


def _star_product(name: str, copies: int, left: Ints, right: Ints, inner: _Supernode) -> Topology:
    """Join copies of `inner` along edges of a structure graph; a loop joins a copy to itself."""
    size = len(inner.permuted)
    own = size * np.arange(copies, dtype=np.int64)[:, None]
    place = np.arange(size, dtype=np.int64)
    near = size * left[:, None] + place
    far = size * right[:, None] + inner.permuted
    # An involution pairs the nodes of a copy that is joined to itself: each pair is one edge.
    kept = (left != right)[:, None] | (near < far)
    left = np.concatenate([(own + inner.left).ravel(), near[kept]])
    right = np.concatenate([(own + inner.right).ravel(), far[kept]])
    return from_pairs(name, copies * size, left, right)


def _inductive_quad(d: int, name: str) -> _Supernode:
    """Return the Inductive-Quad graph of degree d, on d + 1 pairs of nodes 2 i and 2 i + 1.

    It begins with one pair or one quad of four pairs and grows by quads, whose pairs are owned by
    all pairs before: two by the first node of a pair and two by its second. Each node then has d
    neighbours, and for every other node exactly one of two links, to it from the partner or to its
    partner, is there: what makes the diameter 3.
    """
    require(d % 4 in (0, 3), name, f"d is {d}; an Inductive-Quad graph has 0 or 3 modulo 4")
    owners: list[tuple[int, int, int]] = []
    for first in range((d + 1) % 4, d + 1, 4):
        owners += [(first + owner, first + owned, which) for owner, owned, which in _QUAD]
        owners += [(old, first + new, new // 2) for old in range(first) for new in range(4)]
    owner, owned, which = np.array(owners, dtype=np.int64).reshape(-1, 3).T
    right = np.concatenate([2 * owned, 2 * owned + 1])
    partners = np.arange(2 * d + 2, dtype=np.int64) ^ 1
    return _Supernode(np.tile(2 * owner + which, 2), right, partners)


def _paley(d: int, name: str, size: int | None = None) -> _Supernode:
    """Return the Paley graph of degree d: elements of a field that differ by a nonzero square."""
    q = 2 * d + 1 if size is None else size
    expected = "expected a prime power of 1 modulo 4: 5, 9, 13, 17, 25 or 29"
    sound = q % 4 == 1 and prime_power(q) is not None
    require(sound, name, f"a Paley graph of {q} nodes; {expected}")
    field = finite_field(q, name)
    here, square = (axis.ravel() for axis in np.indices((q, (q - 1) // 2)))
    there = field.add[here, field.powers[2 * square]]
    once = here < there
    return _Supernode(here[once], there[once], field.multiply[field.powers[1]])


_SUPERNODES = {"iq": _inductive_quad, "paley": _paley}
"""The supernodes of PolarStar by name."""


def _plane_size(name: str, q: int) -> int:
    require(q >= 2, name, f"q is {q}; {_PRIME_POWERS}")
    # The limits on nodes come first: they bound q for the search for its factors.
    check_size(name, q * q + q + 1, 0)
    require(prime_power(q) is not None, name, f"q is {q}; {_PRIME_POWERS}")
    return q * q + q + 1


def _orthogonal_points(field: Field) -> tuple[Ints, Ints]:
    """Return all ordered pairs of points of the plane that are orthogonal, equal ones included.

    All pairs are tried, some rows at a time, so that memory is in proportion to the links.
    """
    q = len(field.add)
    x, y, z = np.indices((2, q, q)).reshape(3, -1)
    first_nonzero = np.where(x > 0, x, np.where(y > 0, y, z))
    points = np.stack((x, y, z), axis=1)[first_nonzero == 1]
    rows = max(1, _BLOCK // len(points))
    found = []
    for first in range(0, len(points), rows):
        some = points[first : first + rows]
        product = [field.multiply[some[:, axis, None], points[:, axis]] for axis in range(3)]
        left, right = np.nonzero(field.add[field.add[product[0], product[1]], product[2]] == 0)
        found.append((left + first, right))
    left, right = (np.concatenate(side).astype(np.int64) for side in zip(*found, strict=True))
    return left, right
