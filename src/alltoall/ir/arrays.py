"""Array types, arrays as fields of nouns, ragged arrays, and reachability."""

from collections.abc import Iterator
from numbers import Real
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from alltoall.errors import InputError

Ints: TypeAlias = NDArray[np.int64]
Floats: TypeAlias = NDArray[np.float64]
Scalar = TypeVar("Scalar", bound=np.generic)


def frozen(values: ArrayLike, dtype: type[Scalar]) -> NDArray[Scalar]:
    """Return `values` as a read-only array of `dtype`; refuse values that `dtype` cannot hold.

    A writable array is copied, so that callers cannot change a noun; a read-only array is shared.
    """
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputError("rows of different lengths; expected as many numbers in each") from None
    if array.dtype != dtype:
        array = _convert(array, dtype)
    if array.flags.writeable:
        array = array.copy()
        array.setflags(write=False)
    return array


def freeze(noun: object, dtype: type[np.generic], *keys: str) -> None:
    """Make fields of a frozen dataclass read-only arrays of `dtype`; None stays None."""
    for key in keys:
        if getattr(noun, key) is not None:
            object.__setattr__(noun, key, frozen(getattr(noun, key), dtype))


def require_indices(values: Ints | None, limit: int, words: str) -> None:
    """Raise for the first value that is not in 0..limit - 1; `words` come before it."""
    if values is not None and np.any(outside := (values < 0) | (values >= limit)):
        raise InputError(f"{words} {values[outside][0]}; expected 0..{limit - 1}")


def _convert(array: NDArray[Any], dtype: type[Scalar]) -> NDArray[Scalar]:
    whole = np.issubdtype(dtype, np.integer)
    words = "whole numbers" if whole else "numbers"
    try:
        # An array of objects may hold numbers, such as fractions.
        if array.dtype.kind not in "biuf" and not (
            array.dtype.kind == "O" and all(isinstance(each, Real) for each in array.flat)
        ):
            raise TypeError
        with np.errstate(invalid="ignore", over="ignore"):
            found = array.astype(dtype)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"an array of {array.dtype}; expected one of {words}") from None
    if whole and not np.array_equal(found, array):
        wrong = array[np.asarray(found != array)].flat[0]
        raise InputError(f"{wrong!r} in an array of {words}")
    return found


def products(amounts: Floats, distances: Floats) -> Floats:
    """Return amounts times distances; an amount of 0 counts 0, even at an infinite distance."""
    shape = np.broadcast_shapes(amounts.shape, distances.shape)
    return np.multiply(amounts, distances, out=np.zeros(shape), where=amounts != 0)


def starts_of(counts: ArrayLike) -> Ints:
    """Return the starts of the rows of a ragged array, and the end of the last."""
    counts = np.asarray(counts, dtype=np.int64)
    starts = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def rows(*columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a table whose columns are arrays, as Python's own numbers."""
    return zip(*(column.tolist() for column in columns), strict=True)


def run_starts(*keys: NDArray[Any]) -> NDArray[np.bool_]:
    """Return a mask of the entries at which any key differs from the entry before."""
    found = np.ones(len(keys[0]), dtype=np.bool_)
    found[1:] = np.any([key[1:] != key[:-1] for key in keys], axis=0)
    return found


def inner_index(counts: Ints) -> Ints:
    """Return 0..c-1 for every count c, concatenated: the inner index of a ragged array."""
    starts = starts_of(counts)
    return np.arange(int(starts[-1]), dtype=np.int64) - np.repeat(starts[:-1], counts)


def reachable(nodes: int, tail: Ints, head: Ints, start: int | Ints) -> NDArray[np.bool_]:
    """Return a mask of the nodes that `start`, a node or several, reaches, itself included."""
    order = np.argsort(tail, kind="stable")
    first = np.searchsorted(tail[order], np.arange(nodes + 1))
    successors = head[order]
    seen = np.zeros(nodes, dtype=np.bool_)
    seen[start] = True
    frontier = np.flatnonzero(seen)
    while len(frontier):
        degrees = (first[frontier + 1] - first[frontier]).astype(np.int64)
        arcs = np.repeat(first[frontier], degrees) + inner_index(degrees)
        before = seen.copy()
        seen[successors[arcs]] = True
        frontier = np.flatnonzero(seen & ~before)
    return seen


def connected_pairs(nodes: int, tail: Ints, head: Ints, ends: Ints) -> NDArray[np.bool_]:
    """Return which of some nodes each of them reaches, itself included, shape [ends, ends].

    A bit per node spreads over all links at once, until nothing changes.
    """
    seen = np.packbits(np.arange(nodes)[:, None] == ends, axis=1)
    order = np.argsort(head, kind="stable")
    entered, first = np.unique(head[order], return_index=True)
    while True:
        found = seen[entered] | np.bitwise_or.reduceat(seen[tail[order]], first, axis=0)
        if np.array_equal(found, seen[entered]):
            return np.unpackbits(seen[ends], axis=1, count=len(ends)).T.astype(np.bool_)
        seen[entered] = found
