"""Array types, and the one way in which nouns take arrays in: converted and read-only."""

from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Reals: TypeAlias = NDArray[np.float32] | NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(values: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return `values` as a read-only array of `dtype`.

    A writable array is copied, so that nobody keeps a handle through which a noun could change;
    an array that is read-only already is shared.
    """
    array = np.asarray(values, dtype=dtype)
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array


def products(amounts: Floats, distances: Floats) -> Floats:
    """Return amounts times distances; what sends nothing counts nothing, at any distance."""
    shape = np.broadcast_shapes(amounts.shape, distances.shape)
    return np.multiply(amounts, distances, out=np.zeros(shape), where=amounts != 0)


def writable(values: NDArray[Scalar]) -> NDArray[Scalar]:
    """Return a copy that is writable and in one piece.

    To the compiler, arrays that are read-only, or have gaps, are of other types: it would compile
    a kernel again for each.
    """
    return np.array(values, order="C")


def starts_of(counts: ArrayLike) -> Ints:
    """Return where each row of a ragged array begins and, last, where all of them end."""
    counts = np.asarray(counts, dtype=np.int64)
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def inner_index(counts: Ints) -> Ints:
    """Return 0..c-1 for every count c, concatenated: the inner index of a ragged array."""
    starts = starts_of(counts)
    return np.arange(int(starts[-1]), dtype=np.int64) - np.repeat(starts[:-1], counts)
