"""The engine's exchange for Python, by ctypes: `engine.h` in the words of another language."""

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int32, c_int64, c_void_p
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError, VerificationError
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import PerShard
from alltoall.ir.messages import RANGE, RankMessages

ERROR_BYTES = 256
Bytes = NDArray[np.uint8]
LARGEST_SHARD = 2**31 - 1
"""Most bytes of a shard: the engine counts the bytes of a run in 31 bits."""


class _Call(ctypes.Structure):
    _fields_ = (
        ("input", c_void_p),
        ("output", c_void_p),
        ("in_", c_void_p),
        ("out", c_void_p),
        ("shard", c_int64),
        ("matrix", c_void_p),
        ("scratch", c_void_p),
    )


class EngineExchange:
    """The exchange of one rank, one all-to-all at a time, with a barrier after each step or none.

    `comm` is the handle of a private communicator with the ranks of the messages, which outlives
    the exchange; `handle_bytes` is the size of the handle, which depends on the library.
    """

    def __init__(
        self, engine: Path, part: RankMessages, comm: int, handle_bytes: int, by_step: bool
    ) -> None:
        self._library = _library(engine, handle_bytes)
        self._peers = np.arange(part.chunks.ranks, dtype=np.int32)
        self._plan = self._plan_of(part)
        self._exchange = self._library.a2a_exchange_new(self._plan, comm, _at(self._peers))
        if not self._exchange or (by_step and self._library.a2a_exchange_by_step(self._exchange)):
            raise MemoryError("the engine has no memory for an exchange")
        self._layout: tuple[PerShard, tuple[Ints, Ints]] | None = None
        self._call = _Call()
        self._kept: tuple[object, ...] = ()
        self._turn = 0
        self._done = c_int(0)

    def _plan_of(self, part: RankMessages) -> int:
        chunks = part.chunks
        counts = None if chunks.per_shard else _int32(chunks.counts)
        messages = np.stack(
            (part.sends, part.peer, part.step, np.diff(part.first), np.diff(part.waits_first)), 1
        )
        ranges = np.stack([getattr(part, key) for key in RANGE], 1)
        rows, spans, waits = _int32(messages), _int32(ranges), _int32(part.waits)
        error = ctypes.create_string_buffer(ERROR_BYTES)
        plan = self._library.a2a_plan_new(
            *(chunks.ranks, part.rank, part.steps, chunks.per_shard or 0),
            *(None if counts is None else _at(counts), part.scratch),
            *(part.messages, _at(rows), len(spans), _at(spans), len(waits), _at(waits), error),
        )
        if not plan:
            raise InputError(error.value.decode(errors="replace"))
        return int(plan)

    def start(
        self, given: Bytes, taken: Bytes, shard: PerShard, offsets: tuple[Ints, Ints]
    ) -> None:
        """Start an all-to-all; `offsets` are where the shards to and from each rank begin."""
        if self._layout is None or self._layout[0] is not shard or self._layout[1] is not offsets:
            self._call, self._kept = _call_of(shard, offsets)
            self._layout = (shard, offsets)
        self._call.input, self._call.output = _at(given), _at(taken)
        self._turn += 1
        _check(self._library.a2a_start(self._exchange, ctypes.byref(self._call), self._turn))

    def test(self) -> bool:
        """Make progress without waiting; return whether the all-to-all is complete."""
        _check(self._library.a2a_test(self._exchange, ctypes.byref(self._done)))
        return bool(self._done.value)

    def wait(self) -> None:
        """Wait until the all-to-all is complete."""
        _check(self._library.a2a_wait(self._exchange))

    def free(self) -> None:
        """Free the memory of the exchange; the last call."""
        self._library.a2a_exchange_free(self._exchange)
        self._library.a2a_plan_free(self._plan)


def _call_of(shard: PerShard, offsets: tuple[Ints, Ints]) -> tuple[_Call, tuple[object, ...]]:
    """Return a call between no buffers yet, and the arrays that it points to."""
    begins, ends = (np.ascontiguousarray(each, dtype=np.int64) for each in offsets)
    matrix = None if shard.counts is None else np.ascontiguousarray(shard.counts)
    pointer = None if matrix is None else _at(matrix)
    return _Call(None, None, _at(begins), _at(ends), shard.most, pointer), (begins, ends, matrix)


def _check(code: int) -> None:
    if code:
        raise VerificationError("an exchange", [f"MPI failed in the engine, with code {code}"])


def _int32(values: object) -> NDArray[np.int32]:
    return np.ascontiguousarray(values, dtype=np.int32)


def _at(values: NDArray[Any]) -> int:
    return int(values.__array_interface__["data"][0])


@lru_cache
def _library(path: Path, handle_bytes: int) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    comm = c_int if handle_bytes == ctypes.sizeof(c_int) else c_void_p
    numbers = (c_int32,) * 4
    functions = {
        "a2a_plan_new": (
            c_void_p,
            *numbers,
            *(c_void_p, c_int32, c_int32, c_void_p, c_int32, c_void_p, c_int32, c_void_p),
            c_char_p,
        ),
        "a2a_plan_free": (None, c_void_p),
        "a2a_exchange_new": (c_void_p, c_void_p, comm, c_void_p),
        "a2a_exchange_by_step": (c_int, c_void_p),
        "a2a_exchange_free": (None, c_void_p),
        "a2a_start": (c_int, c_void_p, POINTER(_Call), c_int64),
        "a2a_test": (c_int, c_void_p, POINTER(c_int)),
        "a2a_wait": (c_int, c_void_p),
    }
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
