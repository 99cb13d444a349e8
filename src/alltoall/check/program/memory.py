"""The buffers of all ranks, with real bytes, and a detector of races and reads of empty chunks.

Order is kept by vector clocks. A thread counts its instructions from 1; its clock has, for every
thread, the last instruction that it knows to be done. Two accesses to one chunk, one of them a
write, race unless the clock of the later one has the earlier one. This follows the FastTrack
scheme: the last write and usually the last read of a chunk are enough.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.ir.program import Buffer, Place

MAX_THREADS = 11_585
"""Most threads: clocks have an entry per pair of threads, 512 MiB in all."""

Clock: TypeAlias = NDArray[np.int32]
Mask: TypeAlias = NDArray[np.bool_]


def check_threads(threads: int) -> None:
    """Refuse threads whose clocks exceed the memory."""
    if threads > MAX_THREADS:
        raise InputError(
            f"{threads:,} thread blocks in all ranks; the interpreter takes up to {MAX_THREADS:,}, "
            "use fewer channels"
        )


@dataclass(frozen=True)
class Access:
    """An instruction by its thread's number and its own count in it."""

    thread: int
    tick: int


@dataclass(frozen=True)
class Clash:
    """A chunk whose `access` is not ordered after `other`; None: nothing was written there."""

    offset: int
    access: Access
    other: Access | None
    writes: bool


class Shadow:
    """The accesses to the chunks of one buffer."""

    def __init__(self, chunks: int, filled: bool) -> None:
        self._filled = np.full(chunks, filled)
        self._writer = np.zeros((2, chunks), dtype=np.int32)
        self._reader = np.zeros((2, chunks), dtype=np.int32)
        self._more_readers: dict[int, list[Access]] = {}

    def read(self, begin: int, end: int, access: Access, clock: Clock) -> list[Clash]:
        """Record a read of these chunks; return its clashes."""
        clashes = [
            Clash(begin + int(offset), access, None, writes=False)
            for offset in np.flatnonzero(~self._filled[begin:end])
        ]
        clashes += _unordered(self._writer[:, begin:end], begin, access, clock, writes=False)
        for clash in _unordered(self._reader[:, begin:end], begin, access, clock, writes=False):
            if clash.other is not None:
                self._more_readers.setdefault(clash.offset, []).append(clash.other)
        self._reader[:, begin:end] = [[access.thread], [access.tick]]
        return clashes

    def write(self, begin: int, end: int, access: Access, clock: Clock) -> list[Clash]:
        """Record a write of these chunks; return its clashes."""
        clashes = _unordered(self._writer[:, begin:end], begin, access, clock, writes=True)
        clashes += _unordered(self._reader[:, begin:end], begin, access, clock, writes=True)
        clashes += [
            Clash(offset, access, other, writes=True)
            for offset in range(begin, end if self._more_readers else begin)
            for other in self._more_readers.pop(offset, [])
            if clock[other.thread] < other.tick
        ]
        self._writer[:, begin:end] = [[access.thread], [access.tick]]
        self._reader[:, begin:end] = 0
        self._filled[begin:end] = True
        return clashes


def _unordered(
    last: NDArray[np.int32], begin: int, access: Access, clock: Clock, writes: bool
) -> list[Clash]:
    """Return a clash for every chunk whose last access (thread and tick) is not in `clock`."""
    unknown: Mask = clock[last[0]] < last[1]
    if not unknown.any():
        return []
    return [
        Clash(begin + int(at), access, Access(int(last[0, at]), int(last[1, at])), writes)
        for at in np.flatnonzero(unknown)
    ]


MAX_NAMED = 20
"""Most violations of one kind that are named."""

Bytes: TypeAlias = NDArray[np.uint8]


class Memory:
    """Input, output and scratch of every rank; only inputs are filled initially."""

    def __init__(
        self,
        sizes: Sequence[Sequence[int]],
        inputs: Sequence[Bytes],
        spot: Callable[[Access], str],
    ) -> None:
        self._spot = spot
        self._clashes: list[tuple[int, Buffer, Clash]] = []
        width = inputs[0].shape[1]
        self._data = [[np.zeros((size, width), dtype=np.uint8) for size in row] for row in sizes]
        for buffers, given in zip(self._data, inputs, strict=True):
            buffers[Buffer.INPUT][:] = given
        self._shadows = [
            [Shadow(row[buffer], buffer is Buffer.INPUT) for buffer in Buffer] for row in sizes
        ]

    def outputs(self) -> tuple[Bytes, ...]:
        """Return the output buffer of each rank."""
        return tuple(buffers[Buffer.OUTPUT] for buffers in self._data)

    def read(self, rank: int, place: Place, chunks: int, access: Access, clock: Clock) -> Bytes:
        """Return a copy of some chunks, and record clashes."""
        span = place.offset, place.offset + chunks
        shadow = self._shadows[rank][place.buffer]
        self._note(rank, place.buffer, shadow.read(*span, access, clock))
        return self._data[rank][place.buffer][slice(*span)].copy()

    def write(self, rank: int, place: Place, data: Bytes, access: Access, clock: Clock) -> None:
        """Overwrite some chunks, and record clashes."""
        span = place.offset, place.offset + len(data)
        shadow = self._shadows[rank][place.buffer]
        self._note(rank, place.buffer, shadow.write(*span, access, clock))
        self._data[rank][place.buffer][slice(*span)] = data

    def violations(self) -> Iterator[str]:
        """Yield all clashes in words."""
        for rank, buffer, clash in self._clashes:
            chunk = f"{buffer.name.lower()} chunk {clash.offset} of rank {rank}"
            here, does = self._spot(clash.access), "writes" if clash.writes else "reads"
            if clash.other is None:
                yield f"{here} reads {chunk}, to which nothing has been written"
            else:
                yield (
                    f"race: {here} {does} {chunk}, which {self._spot(clash.other)} touches "
                    "without an order between the two; one must wait for the other"
                )

    def _note(self, rank: int, buffer: Buffer, clashes: list[Clash]) -> None:
        room = max(MAX_NAMED - len(self._clashes), 0)
        self._clashes += [(rank, buffer, clash) for clash in clashes[:room]]
