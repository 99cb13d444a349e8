"""Buffer arguments of mpi4py, in bytes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints, starts_of
from alltoall.runtime.mpi.library import MPI

Bytes = NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Side:
    """A buffer of a call: its bytes, counts and item size."""

    bytes: Bytes
    item: int
    kind: Any
    counts: Ints | None = None
    places: Ints | None = None

    @property
    def items(self) -> int:
        """The number of values."""
        return len(self.bytes) // self.item

    def shards(self, ranks: int) -> tuple[Ints, Ints]:
        """Return the bytes and the offset of each shard."""
        counts = self.counts
        if counts is None:
            counts = np.full(ranks, self.items // ranks)
        places = starts_of(counts)[:-1] if self.places is None else self.places
        if len(counts) != ranks or len(places) != ranks or counts.min() < 0 or places.min() < 0:
            raise UsageError(
                f"{len(counts)} counts and {len(places)} displacements; expected one of each of "
                f"{ranks} ranks, none below 0"
            )
        if int((counts + places).max(where=counts > 0, initial=0)) > self.items:
            raise UsageError(f"counts and displacements beyond the {self.items} items of a buffer")
        return counts * self.item, places * self.item


def buffer_of(spec: Any, name: str) -> Side:
    """Return the buffer of an mpi4py argument: an array, or a list with an array."""
    array, *rest = spec if isinstance(spec, list | tuple) else (spec,)
    datatype = rest.pop() if rest and isinstance(rest[-1], MPI.Datatype | str) else None
    if isinstance(datatype, str):
        datatype = MPI.Datatype.fromcode(datatype)
    flat = _flat(array, name)
    data = flat.view(np.uint8)
    item, kind = (flat.itemsize, flat.dtype) if datatype is None else _item(datatype, name)
    counts = _numbers(rest)
    if len(counts) == 1 and counts[0].ndim == 0:
        return Side(data[: int(counts[0]) * item], item, kind)
    return Side(data, item, kind, *counts)


def _numbers(rest: list[Any]) -> list[Ints]:
    """Return the counts and displacements of a list: two numbers, two lists, or a pair of those."""
    if len(rest) == 1 and isinstance(rest[0], tuple) and _nested(rest[0]):
        rest = list(rest[0])
    if len(rest) > 2:
        raise UsageError("a buffer with more than counts and displacements")
    return [np.asarray(each, dtype=np.int64) for each in rest if each is not None]


def _nested(pair: Sequence[Any]) -> bool:
    return len(pair) == 2 and any(not isinstance(each, int | np.integer) for each in pair)


def _item(datatype: "MPI.Datatype", name: str) -> tuple[int, Any]:
    size, (lower, extent) = datatype.Get_size(), datatype.Get_extent()
    if not datatype.is_predefined or (lower, extent) != (0, size):
        raise UsageError(
            f"the {name} buffer is of a datatype with gaps, or a derived one; give a predefined "
            "one, and data that lies together (MPI.Datatype.Pack)"
        )
    return size, np.dtype(datatype.tocode())


def copy_of(side: Side) -> Side:
    """Return a copy of the receive buffer, to send from in a call in place."""
    return Side(side.bytes.copy(), side.item, side.kind, side.counts, side.places)


def _flat(array: Any, name: str) -> NDArray[Any]:
    """Return the values of a buffer one after another, in place."""
    if not isinstance(array, np.ndarray):
        try:
            array = np.frombuffer(array, dtype=np.uint8) if array is not None else array
        except (TypeError, ValueError, BufferError):
            array = None
    if array is None or array.dtype.hasobject:
        raise UsageError(f"the {name} buffer is not an array of plain values")
    if not array.flags.c_contiguous:
        raise UsageError(
            f"the {name} buffer is not contiguous; give one that is (numpy.ascontiguousarray)"
        )
    flat: NDArray[Any] = array.reshape(-1)
    return flat


def require_fit(given: Side, taken: Side) -> None:
    """Refuse two buffers of different types, or that overlap."""
    if given.kind != taken.kind:
        raise UsageError(
            f"the send buffer is of {given.kind}, the receive buffer of {taken.kind}; expected "
            "one type (view one of them as the other's)"
        )
    if not taken.bytes.flags.writeable or np.may_share_memory(given.bytes, taken.bytes):
        raise UsageError("the receive buffer must be writable, and apart from the send buffer")
