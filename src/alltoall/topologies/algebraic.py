"""Graphs from finite fields and matrix groups: Slim Fly (MMS) and SpectralFly (LPS)."""

import math
from dataclasses import dataclass

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints
from alltoall.ir.topology import Topology
from alltoall.topologies.parts import check_size, from_arcs, require


@dataclass(frozen=True)
class Field:
    """GF(q) on the numbers 0..q-1, whose digits in base p are polynomial coefficients."""

    powers: Ints  # of a primitive element: exponents 0..q-2
    add: Ints  # q x q
    multiply: Ints  # q x q


def smallest_factor(number: int) -> int:
    """Return the smallest factor of a number above 1, which is the number itself if it is prime."""
    return next((f for f in range(2, math.isqrt(number) + 1) if number % f == 0), number)


def prime_power(q: int) -> tuple[int, int] | None:
    """Return the prime and exponent of a prime power q, or None."""
    if q < 2:
        return None
    prime = smallest_factor(q)
    digits = round(math.log(q, prime))
    return (prime, digits) if prime**digits == q else None


def finite_field(q: int, name: str) -> Field:
    """Build GF(q) for the topology `name`, from the first polynomial whose root x is primitive."""
    parts = prime_power(q)
    if parts is None:
        raise TopologyError(f"{name}: {q} is not a power of a prime, such as 3, 4, 5, 7, 8 or 9")
    prime, digits = parts
    weights = prime ** np.arange(digits, dtype=np.int64)
    coefficients = np.arange(q, dtype=np.int64)[:, None] // weights % prime
    add = (coefficients[:, None, :] + coefficients) % prime @ weights
    powers = next(
        powers
        for reduction in coefficients[1:]
        if len(powers := _powers_of_x(coefficients, reduction, prime)) == q - 1
    )
    logs = np.empty(q, dtype=np.int64)
    logs[powers] = np.arange(q - 1)
    multiply = powers[(logs[1:, None] + logs[1:]) % (q - 1)]
    return Field(powers, add, np.pad(multiply, ((1, 0), (1, 0))))


def _powers_of_x(coefficients: Ints, reduction: Ints, prime: int) -> Ints:
    """Return 1, x, x^2, ... up to the first repetition, where x^digits is `reduction`.

    If all q - 1 nonzero numbers appear, each is a power of x and so invertible: the polynomial
    is irreducible and x is primitive.
    """
    digits = coefficients.shape[1]
    shifted = np.roll(coefficients, 1, axis=1)
    shifted[:, 0] = 0
    times_x = (shifted + coefficients[:, -1:] * reduction) % prime @ prime ** np.arange(digits)
    powers, element = [1], int(times_x[1])
    while element not in (0, 1) and len(powers) < len(coefficients):
        powers.append(element)
        element = int(times_x[element])
    return np.array(powers, dtype=np.int64)


def slimfly(q: int) -> Topology:
    """Build Slim Fly: the McKay-Miller-Siran graph of the prime power q = 4 w + delta.

    With delta in {-1, 0, 1} there are 2 q^2 nodes of degree (3 q - delta) / 2, and the diameter is
    2. Nodes are (0, x, y) and (1, m, c) over the field GF(q), numbered in that order. With two
    generator sets X and X' of powers of a primitive element, (0, x, y) has links to (0, x, y + s)
    for s in X, (1, m, c) to (1, m, c + s) for s in X', and (0, x, y) and (1, m, c) are linked where
    y = m x + c. q = 5 is the Hoffman-Singleton graph. McKay, Miller and Siran, "A note on large
    graphs of diameter two and given maximum degree", J. Comb. Theory B 1998; Hafner, "Geometric
    realisation of the graphs of McKay-Miller-Siran", 2004; Besta and Hoefler, "Slim Fly", SC 2014.
    """
    name = f"slimfly:q={q}"
    require(q >= 3, name, f"q is {q}; expected a prime power of 3 or more")
    delta = (q + 1) % 4 - 1
    check_size(name, 2 * q * q, q * q * (3 * q - delta))
    require(
        prime_power(q) is not None and delta != 2,
        name,
        f"q is {q}; expected a prime power such as 3, 4, 5, 7, 8, 9, 11, 13, 16 or 17",
    )
    field = finite_field(q, name)
    exponents, other_exponents = _generator_exponents(q, delta)
    generators, others = (field.powers[e % (q - 1)] for e in (exponents, other_exponents))
    x, y, shift = (axis.ravel() for axis in np.indices((q, q, len(generators))))
    line, point, slope = (axis.ravel() for axis in np.indices((q, q, q)))
    left = line * q + field.add[field.multiply[slope, line], point]
    right = q * q + slope * q + point
    tails = [x * q + y, q * q + x * q + y, left, right]
    heads = [
        x * q + field.add[y, generators[shift]],
        q * q + x * q + field.add[y, others[shift]],
        right,
        left,
    ]
    return from_arcs(name, 2 * q * q, np.concatenate(tails), np.concatenate(heads))


def spectralfly(p: int, q: int) -> Topology:
    """Build SpectralFly: the Ramanujan graph X^(p, q) of Lubotzky, Phillips and Sarnak.

    For distinct odd primes with q > 2 sqrt(p) it is a Cayley graph of degree p + 1: of PSL(2, q),
    with q (q^2 - 1) / 2 nodes, if p is a square modulo q, and of PGL(2, q), with twice as many
    and bipartite, otherwise. Nodes are 2 x 2 matrices modulo q up to a factor; M has links to M G
    for the p + 1 matrices G that `_quaternion_matrices` derives from the ways to write p as
    a sum of four squares. Lubotzky, Phillips and Sarnak, "Ramanujan graphs", Combinatorica 1988;
    Young et al., "SpectralFly: Ramanujan graphs as flexible and efficient interconnection
    networks", IPDPS 2022.
    """
    name = f"spectralfly:p={p},q={q}"
    fits = p >= 3 and q >= 3 and p != q and 4 * p < q * q
    require(fits, name, "expected distinct odd primes p and q with q > 2 sqrt(p)")
    check_size(name, q * (q * q - 1) // 2, 0)  # first: it bounds q, and thereby p, for what follows
    for symbol, number in (("p", p), ("q", q)):
        odd_prime = number % 2 == 1 and smallest_factor(number) == number
        require(odd_prime, name, f"{symbol} is {number}, which is not an odd prime")
    squares = np.unique(np.arange(1, q, dtype=np.int64) ** 2 % q)
    nodes = q * (q * q - 1) // (2 if p % q in squares else 1)
    check_size(name, nodes, nodes * (p + 1))
    matrices = _projective_matrices(q)
    if p % q in squares:
        a, b, c, d = matrices.T
        matrices = matrices[np.isin((a * d - b * c) % q, squares)]
    keys, matrices = _keys(matrices, q), matrices.reshape(-1, 2, 2)
    # One generator at a time: all products at once would take several times the links' memory.
    products = (matrices @ each for each in _quaternion_matrices(p, q).reshape(-1, 2, 2))
    heads = [np.searchsorted(keys, _keys(_normalize(each, q), q)) for each in products]
    tail = np.tile(np.arange(nodes, dtype=np.int64), p + 1)
    return from_arcs(name, nodes, tail, np.concatenate(heads).astype(np.int64))


def _generator_exponents(q: int, delta: int) -> tuple[Ints, Ints]:
    """Return the exponents of the primitive element that make up X and X'.

    For delta = 0 and 1 these are the even and the odd powers; for delta = -1 -1 is an odd power,
    and each set takes half of either kind so as to contain the negatives of its elements.
    """
    if delta >= 0:
        return np.arange(0, q - 1, 2), np.arange(1, q, 2)
    middle = (q + 1) // 2
    return (
        np.concatenate([np.arange(0, middle - 1, 2), np.arange(middle - 1, q - 1, 2)]),
        np.concatenate([np.arange(1, middle, 2), np.arange(middle, q, 2)]),
    )


def _quaternion_matrices(p: int, q: int) -> Ints:
    """Return the p + 1 generators, one for each suitable way to write p as four squares.

    The solutions of a^2 + b^2 + c^2 + d^2 = p taken are those with a odd and positive if p is
    1 modulo 4, and those with a even and either a > 0, or a = 0 and b > 0, if p is 3 modulo 4:
    one of each pair that differs in sign only. With x^2 + y^2 = -1 modulo q, a solution gives
    the matrix ((a + b x + d y, c + d x - b y), (d x - b y - c, a - b x - d y)) of determinant p.
    """
    reach = math.isqrt(p)
    b, c, d = (axis.ravel() - reach for axis in np.indices((2 * reach + 1,) * 3))
    square = p - b * b - c * c - d * d
    a = np.sqrt(np.maximum(square, 0)).round().astype(np.int64)
    chosen = (a * a == square) & (a % 2 == (p % 4 == 1)) & ((a > 0) | (b > 0))
    a, b, c, d = a[chosen], b[chosen], c[chosen], d[chosen]
    squares = np.arange(q) ** 2
    x, y = np.argwhere((squares[:, None] + squares + 1) % q == 0)[0]  # which every prime has
    rows = (a + b * x + d * y, c + d * x - b * y, d * x - b * y - c, a - b * x - d * y)
    return np.stack(rows, axis=1).astype(np.int64) % q


def _projective_matrices(q: int) -> Ints:
    """Return PGL(2, q) as rows (a, b, c, d), scaled to have 1 first among a and b, sorted."""
    b, c, d = (axis.ravel() for axis in np.indices((q, q, q)))
    leading = np.stack([np.ones_like(b), b, c, d], axis=1)[d != b * c % q]
    c, d = (axis.ravel() for axis in np.indices((q, q)))
    rest = np.stack([np.zeros_like(c), np.ones_like(c), c, d], axis=1)[c != 0]
    return np.concatenate([rest, leading]).astype(np.int64)


def _normalize(matrices: Ints, q: int) -> Ints:
    inverse = np.array([0] + [pow(unit, -1, q) for unit in range(1, q)], dtype=np.int64)
    """Return matrices modulo q as rows, scaled to have 1 first among a and b."""
    reduced = matrices.reshape(-1, 4) % q
    lead = np.where(reduced[:, 0] != 0, reduced[:, 0], reduced[:, 1])
    return reduced * inverse[lead][:, None] % q


def _keys(matrices: Ints, q: int) -> Ints:
    """Return each matrix as one number, its entries the digits, which keeps the order."""
    keys: Ints = matrices @ q ** np.arange(3, -1, -1, dtype=np.int64)
    return keys
