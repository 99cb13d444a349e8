"""All bytes of a host's flows, moved by one loop over events in C (`moving.c`).

A flow sends its pieces of the input, or receives into its pieces of the output; the pieces of a
flow stand in a row. Flows of a phase begin when those of the phase before have left. Sockets that
receive are watched from the start, those that send once they are full.
"""

import ctypes
import os
import select
from collections.abc import Sequence
from ctypes import POINTER, Array, c_int32, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path

import numpy as np

from alltoall.runtime.engine.build import build_library

SOURCE = Path(__file__).with_name("moving.c")

STOPPED, INTERRUPTED, BROKEN = 1, 2, 3
"""Reasons for an early end: stop command or silence, a signal, a failed flow."""

NANO = 1_000_000_000
"""Nanoseconds of a second."""

Spans = Sequence[tuple[int, int]]
"""Parts of a buffer, from and to."""


class MoverStopped(Exception):  # noqa: N818 - nothing is wrong with who is told to stop
    """Raised when the other ranks stopped, or no byte came for too long."""


class BrokenFlowError(ConnectionError):
    """A flow failed: the one whose socket is `file`."""

    def __init__(self, file: int, why: str) -> None:
        super().__init__(why)
        self.file = file


class FlowStruct(ctypes.Structure):
    """`Flow` of moving.c: a socket, its phase, and the bytes left to move through it.

    `piece` is the current one, with `moved` bytes done; `watched` is set once the socket was full.
    """

    _fields_ = (
        *((name, c_int32) for name in ("file", "phase")),
        *((name, c_int64) for name in ("watched", "piece", "moved", "left")),
    )


class _Work(ctypes.Structure):
    """`Work` of moving.c."""

    _fields_ = (
        *((name, c_int32) for name in ("events", "line", "sending", "receiving")),
        *((name, POINTER(FlowStruct)) for name in ("out", "into")),
        *((name, c_void_p) for name in ("pieces", "input", "output")),
        *((name, c_int64) for name in ("start", "silence", "phase")),
        *((name, c_int32) for name in ("broken", "error")),
    )


def mover() -> str:
    """Return the path of the loop, built if need be."""
    return str(build_library(SOURCE))


class Moves:
    """The flows of a host, moved repeatedly.

    `library` comes from `mover`. `out` has the file and phase of each sending socket, `into` the
    files of the receiving ones. `events` watches these and `line`, which carries only a stop
    command; `silence` seconds without an event end the exchange, too.
    """

    def __init__(
        self,
        library: str,
        events: select.epoll,
        line: int,
        out: Sequence[tuple[int, int]],
        into: Sequence[int],
        silence: float,
    ) -> None:
        self.out: Array[FlowStruct] = (FlowStruct * len(out))(
            *(FlowStruct(file, phase) for file, phase in out)
        )
        self.into: Array[FlowStruct] = (FlowStruct * len(into))(
            *(FlowStruct(file) for file in into)
        )
        self._events = events  # which would be closed if nobody held it
        self._work = _Work(events.fileno(), line, len(out), len(into), self.out, self.into)
        self._work.silence = round(silence * NANO)
        self._library = _library(library)
        self._begins: list[tuple[int, int]] = []

    def lay_out(self, out: Sequence[Spans], into: Sequence[Spans]) -> None:
        """Give every flow its parts of the buffers."""
        spans = (*out, *into)
        first = np.cumsum([0, *map(len, spans)])[:-1]
        total = [sum(end - begin for begin, end in each) for each in spans]
        self._begins = list(zip(first.tolist(), total, strict=True))
        # The last is nobody's: who has none begins there.
        pieces = [*(piece for each in spans for piece in each), (0, 0)]
        self._pieces = np.array(pieces, dtype=np.int64)
        self._work.pieces = self._pieces.ctypes.data

    def begin(self, given: memoryview, taken: memoryview) -> None:
        """Start over between two buffers."""
        self._work.input, self._work.output = _address(given), _address(taken)
        self._work.phase = -1
        flows = (*self.out, *self.into)
        for flow, (piece, left) in zip(flows, self._begins, strict=True):
            flow.piece, flow.moved, flow.left = piece, 0, left

    def move(self, start: int = 0) -> None:
        """Wait for the start, in nanoseconds of the monotonic clock, and move all bytes."""
        self._work.start = start
        code = INTERRUPTED
        while code == INTERRUPTED:  # in between, Python hears of the signal
            code = self._library.a2a_move(ctypes.byref(self._work))
        if code == STOPPED:
            raise MoverStopped
        if code == BROKEN:
            raise self._broken()

    def _broken(self) -> BrokenFlowError:
        error = self._work.error
        why = os.strerror(error) if error else "ended too early, or brings too much"
        return BrokenFlowError(self._work.broken, why)


def _address(buffer: memoryview) -> int:
    return int(np.frombuffer(buffer, dtype=np.uint8).ctypes.data)


@lru_cache
def _library(path: str) -> ctypes.CDLL:
    library = ctypes.CDLL(path)
    library.a2a_move.restype, library.a2a_move.argtypes = ctypes.c_int, (POINTER(_Work),)
    return library
