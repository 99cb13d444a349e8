"""A distributed 3D Fourier transform of slabs, with one exchange, or of pencils, with two.

A rank transforms along z, then along y, and along x. Before the next side, parts of it come from
other ranks: pencils are exchanged in rows before y, and either kind in columns before x. What is
sent is packed so that what comes lies as it must. The time of a band is that of all its steps.

Numpy's transforms run on one thread: with an output argument they were within 10 % of scipy's time,
and scipy's import takes a rank half a second.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from alltoall.ir.arrays import Ints, starts_of
from alltoall.ir.chunks import PerShard
from alltoall.workloads.ranks import Bytes, Exchange, Ranks, Turns, Way
from alltoall.workloads.spectrum import ITEM_BYTES, Complex, Pencils, Truth, planes, shape_of
from alltoall.workloads.timing import UNTOUCHED, Steps, measure_ways, wrong_shards

BANDS = ("fft2d_pack", "fft2d_pack", "fft2d_pack", "alltoall", "unpack_fft1d")
"""The bands of the paper's figure, by the steps of slabs."""

GATHERED_POINTS = 128**3
"""Grids up to which all of the result is gathered and compared with numpy's `fftn`."""

BUFFERS = 6
BUFFERS_OF_ROWS = 3
"""Of a rank's part at once: given, along z and y, sent, received, the result and the first one; and
what the exchange in rows takes besides."""

PLACES = int(np.__version__.partition(".")[0]) >= 2
"""Whether numpy's transforms can write to a place of the caller's."""


class Stage:
    """An exchange: each part of `values` along an axis goes to another rank.

    What comes has parts along the axis `joined`, which is therefore the first of what is sent; seen
    in the order of x, y and z it is `taken`.
    """

    def __init__(self, values: Complex, cuts: Ints, axis: int, joined: int, taken: Any) -> None:
        parts = np.split(values, cuts[1:-1], axis)
        starts = starts_of(np.array([part.size for part in parts])).tolist()
        self._send = np.empty(values.size, dtype=np.complex128)
        self._blocks = []
        for part, start in zip(parts, starts, strict=False):
            place = self._send[start : start + part.size]
            shape = np.moveaxis(part, joined, 0).shape
            self._blocks.append((part, np.moveaxis(place.reshape(shape), 0, joined)))
        self._recv = np.empty([taken[joined], *np.delete(taken, joined)], dtype=np.complex128)
        self.taken = np.moveaxis(self._recv, 0, joined)

    @property
    def sent(self) -> Bytes:
        """The buffer to send from."""
        return self._send.view(np.uint8)

    @property
    def received(self) -> Bytes:
        """The buffer to receive to."""
        return self._recv.reshape(-1).view(np.uint8)

    def pack(self) -> None:
        """Copy parts to where they are sent from."""
        for part, place in self._blocks:
            place[...] = part


class Transform:
    """A rank's part of the grid, its buffers, and the steps on them."""

    def __init__(self, ranks: Ranks, cut: Pencils, seed: int) -> None:
        rank = ranks.rank
        self.cut = cut
        self.given = planes(cut.grid, seed, cut.before(rank))
        self._along_z = np.empty_like(self.given)
        self.stages: list[tuple[Stage, PerShard]] = []
        values = self._along_z
        if cut.columns > 1:
            stage = Stage(values, cut.cuts[3], 2, 1, shape_of(cut.between(rank)))
            self.stages.append((stage, cut.row_shard()))
            values = stage.taken
        self._before_y, self._along_y = values, np.empty_like(values)
        last = Stage(self._along_y, cut.cuts[2], 1, 0, shape_of(cut.after(rank)))
        self.stages.append((last, cut.shard()))
        self.result = np.empty_like(last.taken)

    def steps(self, exchanges: Sequence[Exchange]) -> Steps:
        """Return the steps: transforms, and before y or x an exchange of a way."""
        last = self.stages[-1][0]
        found = [("compute", lambda: _transform(self._along_z, self.given, 2))]
        if self.cut.columns > 1:
            found += self._exchange(0, exchanges[0])
        found += [("compute", lambda: _transform(self._along_y, self._before_y, 1))]
        found += self._exchange(-1, exchanges[-1])
        return [*found, ("compute", lambda: _transform(self.result, last.taken, 0))]

    def _exchange(self, index: int, exchange: Exchange) -> list[tuple[str, Callable[[], None]]]:
        stage, shard = self.stages[index]
        move = lambda: exchange.exchange(stage.sent, stage.received, shard)  # noqa: E731
        return [("pack", stage.pack), ("alltoall", move)]


def _transform(place: Complex, values: Complex, axis: int) -> None:
    if PLACES:
        np.fft.fft(values, axis=axis, out=place)
    else:
        place[...] = np.fft.fft(values, axis=axis)


def transform(
    ranks: Ranks, ways: Sequence[Way], parameters: Mapping[str, Any], turns: Turns
) -> dict[str, Any]:
    """Check and time the transform by every way; return rows, and every violation.

    Ways with one exchange have slabs, ways with two have pencils.
    """
    grid: Any = tuple(parameters["grid"])
    seed: int = parameters["seed"]
    pencils: Any = parameters.get("pencils")
    parts: dict[int, tuple[Transform, Truth]] = {}
    for exchanges in {len(way.exchanges) for way in ways}:
        cut = Pencils(grid, ranks.size) if exchanges == 1 else Pencils(grid, *pencils)
        here = Transform(ranks, cut, seed)
        truth = Truth(ranks, cut, here.given, seed, parameters["gathered_points"])
        parts[exchanges] = here, truth
    seen: set[str] = set()

    def check(way: Way) -> tuple[float, list[str]]:
        again = way.name in seen
        seen.add(way.name)
        return _checked(ranks, way, *parts[len(way.exchanges)], again)

    def steps(way: Way) -> Steps:
        found = parts[len(way.exchanges)][0].steps(way.exchanges)
        if pencils is not None:
            return found
        return [(band, step) for band, (_, step) in zip(BANDS, found, strict=True)]

    found = measure_ways(ranks, ways, steps, check, turns)
    return {"checked": truth.kind, **found}


def _checked(
    ranks: Ranks, way: Way, here: Transform, truth: Truth, again: bool
) -> tuple[float, list[str]]:
    """Transform once into buffers without a number; return the error, and what is wrong."""
    for stage, _ in here.stages:
        stage.received[:] = UNTOUCHED
    for _, step in here.steps(way.exchanges):
        step()
    subject = f"by {way.name}"
    violations: list[str] = []
    for stage, shard in here.stages:
        violations += wrong_shards(ranks, stage.sent, stage.received, shard, subject)
    error, wrong = truth.compare(here.result, subject, again)
    return error, violations + wrong


def needed_bytes(cut: Pencils, gathered_points: int) -> int:
    """Return about what all ranks take together."""
    whole = cut.points * ITEM_BYTES
    buffers = BUFFERS + (BUFFERS_OF_ROWS if cut.columns > 1 else 0)
    # Rank 0 has the grid, its transform, what it gathers, and what these are compared in.
    return buffers * whole + (5 * whole if cut.points <= gathered_points else 0)
