"""Finite fields GF(q): sums and products as tables."""

import math
from dataclasses import dataclass

import numpy as np

from alltoall.errors import TopologyError
from alltoall.ir.arrays import Ints


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
    """Return the prime and the exponent of which q is a power, or None if it is none."""
    if q < 2:
        return None
    prime = smallest_factor(q)
    digits = round(math.log(q, prime))
    return (prime, digits) if prime**digits == q else None


def finite_field(q: int, name: str) -> Field:
    """Build GF(q) for the topology `name`, whose error it is if q is not a prime power."""
    parts = prime_power(q)
    if parts is None:
        raise TopologyError(f"{name}: {q} is not a power of a prime, such as 3, 4, 5, 7, 8 or 9")
    return _of_order(*parts)


def _of_order(prime: int, digits: int) -> Field:
    """Build GF(prime^digits) from the first polynomial of which x is a primitive element."""
    q = prime**digits
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
