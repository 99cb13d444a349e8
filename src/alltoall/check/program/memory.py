"""The buffers of all ranks, with real bytes, and a watch over who touches them."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from alltoall.check.program.races import Access, Clash, Clock, Shadow
from alltoall.ir.program import Buffer, Place

MAX_NAMED = 20
"""How many violations of one kind are told in words."""

Bytes: TypeAlias = NDArray[np.uint8]


class Memory:
    """Input, output and scratch of every rank; only the inputs are filled at first."""

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
        """Return a copy of some chunks, and note whether `access` may read them."""
        begin, end = place.offset, place.offset + chunks
        shadow = self._shadows[rank][place.buffer]
        self._note(rank, place.buffer, shadow.read(begin, end, access, clock))
        return self._data[rank][place.buffer][begin:end].copy()

    def write(self, rank: int, place: Place, data: Bytes, access: Access, clock: Clock) -> None:
        """Overwrite some chunks, and note whether `access` may."""
        begin, end = place.offset, place.offset + len(data)
        shadow = self._shadows[rank][place.buffer]
        self._note(rank, place.buffer, shadow.write(begin, end, access, clock))
        self._data[rank][place.buffer][begin:end] = data

    def violations(self) -> Iterator[str]:
        """Say in words who touched what without being allowed to."""
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
