"""The loop over events in Python, for machines without a C compiler: `moving.c`, line for line."""

import ctypes
import fcntl
import os
import select
import struct
import time
from ctypes import c_int32, c_int64
from dataclasses import dataclass, field

DONE, STOPPED, INTERRUPTED, BROKEN = range(4)
"""How a call may end: all is there; told to stop, or silence; a signal came; a flow failed."""

SIOCOUTQNSD = 0x894B
"""Of Linux: how many bytes a socket has not sent yet."""

UNSENT_SECONDS = 0.002
"""How often a rank looks whether all of a phase is on its way."""


class Flow(ctypes.Structure):
    """One direction of one route: a socket, its phase, and what is left to move through it.

    `piece` is the one under way, of which `moved` bytes have been; `watched` is whether the socket
    was full when there was more to send.
    """

    _fields_ = (
        *((name, c_int32) for name in ("file", "phase")),
        *((name, c_int64) for name in ("watched", "piece", "moved", "left")),
    )


@dataclass
class Table:
    """What there is to move: `Work` of moving.c."""

    events: select.epoll
    line: int
    out: list[Flow]
    into: list[Flow]
    silence: float
    pieces: list[tuple[int, int]] = field(default_factory=list)
    input: memoryview = field(default_factory=lambda: memoryview(b""))
    output: memoryview = field(default_factory=lambda: memoryview(b""))
    phase: int = -1
    broken: int = -1
    error: int = 0


class _Broken(Exception):  # noqa: N818 - becomes a code
    """A flow failed."""


def move(table: Table, start: int) -> int:
    """Wait for the start and move all bytes; return how it ended."""
    time.sleep(max(0, start - time.monotonic_ns()) * 1e-9)
    try:
        return _loop(table)
    except _Broken:
        return BROKEN


def _loop(table: Table) -> int:
    sending = {flow.file: flow for flow in table.out}
    receiving = {flow.file: flow for flow in table.into}
    to_come = _left(table.into)
    heard = time.monotonic()
    while (to_send := _left(table.out)) or to_come:
        more = bool(to_send) and _next_phase(table)
        if not to_come and not _left(table.out):
            break
        found = table.events.poll(UNSENT_SECONDS if more else table.silence)
        moment = time.monotonic()
        if not found and moment - heard >= table.silence:
            return STOPPED
        heard = moment if found else heard
        for file, _ in found:
            # Nobody speaks to us while we are at work, but to say that it is over.
            if file == table.line:
                return STOPPED
            if file in sending:
                _send_some(table, sending[file])
            elif file in receiving:
                _receive_some(table, receiving[file])
                to_come -= not receiving[file].left
    return DONE


def _left(flows: list[Flow]) -> int:
    return sum(flow.left > 0 for flow in flows)


def _next_phase(table: Table) -> bool:
    """Begin the next phase, if there is one whose turn it is; return whether any was left."""
    waiting = [flow.phase for flow in table.out if flow.left and flow.phase > table.phase]
    if waiting and not any(_under_way(flow, table.phase) for flow in table.out):
        table.phase = min(waiting)
        for flow in table.out:
            if flow.left and flow.phase == table.phase:
                _send_some(table, flow)
    return bool(waiting)


def _under_way(flow: Flow, phase: int) -> bool:
    """Whether a flow is still to be sent, or lies in its socket."""
    if flow.watched or flow.phase != phase:
        return bool(flow.watched)
    found = fcntl.ioctl(flow.file, SIOCOUTQNSD, b"\0" * ctypes.sizeof(ctypes.c_int))
    return bool(struct.unpack("=i", found)[0])


def _send_some(table: Table, flow: Flow) -> None:
    """Hand over what the socket has room for; watch it while there is more."""
    try:
        while flow.left:
            begin, end = table.pieces[flow.piece]
            _moved(table, flow, os.write(flow.file, table.input[begin + flow.moved : end]))
    except BlockingIOError:
        pass
    except OSError as error:
        _break(table, flow, error)
    if flow.watched != (flow.left > 0):
        flow.watched = not flow.watched
        if flow.watched:
            table.events.register(flow.file, select.EPOLLOUT)
        else:
            table.events.unregister(flow.file)


def _receive_some(table: Table, flow: Flow) -> None:
    """Take what is there of the piece under way; who has nothing left must say nothing."""
    begin, end = table.pieces[flow.piece]
    count = 0
    try:
        if flow.left:
            count = os.readv(flow.file, [table.output[begin + flow.moved : end]])
    except BlockingIOError:
        return
    except OSError as error:
        _break(table, flow, error)
    if not count:
        _break(table, flow)
    _moved(table, flow, count)


def _moved(table: Table, flow: Flow, count: int) -> None:
    """Count bytes as moved; the next piece follows if one has ended."""
    begin, end = table.pieces[flow.piece]
    flow.left -= count
    flow.moved += count
    if flow.moved == end - begin:
        flow.piece, flow.moved = flow.piece + 1, 0


def _break(table: Table, flow: Flow, error: OSError | None = None) -> None:
    table.broken, table.error = flow.file, error.errno or 0 if error else 0
    raise _Broken
