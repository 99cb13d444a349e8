"""A distributed 3D Fourier transform, in the three steps of the paper's figure.

    fft2d_pack     transforms along y and z of a rank's x planes, written to the send buffer
    alltoall       the exchange
    unpack_fft1d   transforms along x of the received data

Numpy's transforms run on one thread: with an output argument they were within 10 % of scipy's time,
and scipy's import takes a rank half a second.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from alltoall.ir.arrays import starts_of
from alltoall.workloads.ranks import Bytes, Exchange, Ranks, Turns, Way
from alltoall.workloads.spectrum import ITEM_BYTES, Complex, Slabs, Truth, planes
from alltoall.workloads.timing import UNTOUCHED, Steps, measure_ways, wrong_shards

BANDS = ("fft2d_pack", "alltoall", "unpack_fft1d")
"""The steps, by the names of the JSON."""

GATHERED_POINTS = 128**3
"""Grids up to which all of the result is gathered and compared with numpy's `fftn`."""

SLAB_BUFFERS = 6
"""Of a rank's slab at once: given, half done, sent, received, the result, and the first result."""

PLACES = int(np.__version__.partition(".")[0]) >= 2
"""Whether numpy's transforms can write to a place of the caller's."""


class Transform:
    """A rank's slab and buffers, and the steps on them."""

    def __init__(self, ranks: Ranks, slabs: Slabs, seed: int) -> None:
        self.slabs, self.shard = slabs, slabs.shard()
        rank, (first, last) = ranks.rank, slabs.x_cuts[ranks.rank : ranks.rank + 2].tolist()
        self.given = planes(slabs.grid, seed, range(first, last))
        self._half = np.empty_like(self.given)
        self._send = np.empty(self.given.size, dtype=np.complex128)
        self._recv = np.empty(slabs.after(rank), dtype=np.complex128)
        self.result = np.empty_like(self._recv)
        self._blocks = self._places()

    @property
    def sent(self) -> Bytes:
        """The buffer to send from."""
        return self._send.view(np.uint8)

    @property
    def received(self) -> Bytes:
        """The buffer to receive to."""
        return self._recv.reshape(-1).view(np.uint8)

    def steps(self, exchange: Exchange) -> list[Callable[[], None]]:
        """Return the three steps, with the exchange of a way in the middle."""
        move = lambda: exchange.exchange(self.sent, self.received, self.shard)  # noqa: E731
        return [self.fft2d_pack, move, self.unpack_fft1d]

    def fft2d_pack(self) -> None:
        """Transform along y, then along z into the send buffer."""
        _into(self._half, self.given, 1)
        for half, place in self._blocks:
            _into(place, half, 2)

    def unpack_fft1d(self) -> None:
        """Transform along x."""
        _into(self.result, self._recv, 0)

    def _places(self) -> list[tuple[Complex, Complex]]:
        """Return the part for each rank, and its place in the buffer."""
        cuts = self.slabs.y_cuts.tolist()
        parts = [self._half[:, begin:end] for begin, end in pairwise(cuts)]
        starts = starts_of(np.array([part.size for part in parts])).tolist()
        return [
            (part, self._send[start : start + part.size].reshape(part.shape))
            for part, start in zip(parts, starts, strict=False)
        ]


def _into(place: Complex, values: Complex, axis: int) -> None:
    if PLACES:
        np.fft.fft(values, axis=axis, out=place)
    else:
        place[...] = np.fft.fft(values, axis=axis)


def transform(
    ranks: Ranks, ways: Sequence[Way], parameters: Mapping[str, Any], turns: Turns
) -> dict[str, Any]:
    """Check and time the transform by every exchange; return rows and violations."""
    grid, seed = tuple(parameters["grid"]), parameters["seed"]
    slabs = Slabs(grid, ranks.size)
    here = Transform(ranks, slabs, seed)
    truth = Truth(ranks, slabs, here.given, seed, parameters["gathered_points"])
    seen: set[str] = set()

    def check(way: Way) -> tuple[float, list[str]]:
        again = way.name in seen
        seen.add(way.name)
        return _checked(ranks, way, here, truth, again)

    def steps(way: Way) -> Steps:
        return here.steps(way.exchanges[0])

    found = measure_ways(ranks, ways, BANDS, steps, check, turns)
    return {"checked": truth.kind, **found}


def _checked(
    ranks: Ranks, way: Way, here: Transform, truth: Truth, again: bool
) -> tuple[float, list[str]]:
    """Transform once into buffers of NaN; return the error and violations."""
    here.received[:] = UNTOUCHED
    for step in here.steps(way.exchanges[0]):
        step()
    subject = f"by {way.name}"
    violations = wrong_shards(ranks, here.sent, here.received, here.shard, subject)
    error, wrong = truth.compare(here.result, subject, again)
    return error, violations + wrong


def needed_bytes(slabs: Slabs, gathered_points: int) -> int:
    """Estimate the memory of all ranks together."""
    whole = slabs.points * ITEM_BYTES
    # Rank 0 has the grid, its transform, what it gathers, and what these are compared in.
    return SLAB_BUFFERS * whole + (5 * whole if slabs.points <= gathered_points else 0)
