"""What a host does: thousands of TCP flows, one per route, by one loop over events.

A rank listens, connects the flows that it sends, and accepts those that it receives; which flow one
is, the address tells that it was made to. Then, again and again: wait for the common start, send
every flow's pieces from the input, receive into their places of the output, and tell when all is
there. Whom to wait for is told over a socket that the fabric knows nothing of.
"""

import ctypes
import fcntl
import json
import select
import socket
import struct
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from a2aflow.ir.chunks import PerShard
from a2aflow.runtime.bench import received_by, sent_by, wrong_bytes

PORT = 7000
"""Where all ranks listen."""

BACKLOG = 4096
"""Flows that may be waiting to be accepted."""

SO_MAX_PACING_RATE = 47
SIOCOUTQNSD = 0x894B
"""Of Linux: bytes a second of a socket at most; how many bytes it has not sent yet."""

UNPACED = 0xFFFFFFFF
"""No limit to the bytes a second of a socket."""

BUFFER = 16 * 1024
"""What a flow may have on its way before its size is known; what is set, the kernel keeps."""

AT_ONCE = 1 << 18
"""Bytes handed over at once; the socket takes what it has room for."""

UNSENT_SECONDS = 0.002
"""How often a rank looks whether all of a phase is on its way."""

Spans = list[tuple[int, int]]
"""Parts of a buffer, from and to."""


@dataclass
class Flow:
    """One direction of one route: a socket, and what is left to move through it."""

    number: int
    socket: socket.socket
    phase: int = 0
    spans: Spans = field(default_factory=list)
    at: int = 0
    view: memoryview = field(default_factory=lambda: memoryview(b""))
    left: int = 0

    def begin(self, buffer: memoryview, spans: Spans) -> None:
        """Start over with parts of a buffer."""
        self.spans, self.at = spans, 0
        self.left = sum(end - begin for begin, end in spans)
        self.view = buffer[slice(*spans[0])] if spans else memoryview(b"")

    def moved(self, buffer: memoryview, count: int) -> bool:
        """Count bytes as moved; return whether none is left."""
        self.left -= count
        self.view = self.view[count:]
        if not len(self.view) and self.left:
            self.at += 1
            self.view = buffer[slice(*self.spans[self.at])]
        return not self.left


class Stopped(Exception):  # noqa: N818 - nothing is wrong with who is told to stop
    """The others do not wait for this any more, or nothing came for too long."""


class Rank:
    """One host: its flows, its buffers, and the line to who says when."""

    def __init__(self, job: dict[str, Any], rank: int, line: socket.socket) -> None:
        self.job, self.rank, self.line = job, rank, line
        self.flows: list[list[Any]] = job["flows"]
        self.events = select.epoll()
        self.heard = 0.0
        self.connecting: dict[int, Flow] = {}
        self.out: dict[int, Flow] = {}
        self.into: dict[int, Flow] = {}
        self.size: dict[str, Any] = {}
        self.shard = PerShard(1, 1)
        self.input, self.output = memoryview(b""), memoryview(bytearray())

    def serve(self) -> None:
        """Do what one is told until the line is closed."""
        deeds = {"connect": self.connect, "size": self._prepare, "go": self._exchange}
        self.listen()
        self._tell({"listens": True})
        while said := self.line.recv(1 << 16):
            order = json.loads(said)
            if order["do"] in deeds:
                self.heard = time.monotonic()
                try:
                    told = deeds[order["do"]](order)
                except Stopped:
                    told = {"missing": self._missing()}
                self._tell(told)

    def _missing(self) -> list[list[int]]:
        """Return the flows that are not connected, or have not brought all, and what is left."""
        late = [[flow.number, 0] for flow in self.connecting.values()]
        return late + [[number, flow.left] for number, flow in self.into.items() if flow.left]

    def _tell(self, value: dict[str, Any]) -> None:
        self.line.send(json.dumps(value).encode())

    def listen(self) -> None:
        """Open the door for flows."""
        self.door = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        self.door.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.door.bind(("::", PORT))
        self.door.listen(BACKLOG)
        self.door.setblocking(False)
        self.events.register(self.line.fileno(), select.EPOLLIN)

    def connect(self, _: dict[str, Any]) -> dict[str, Any]:
        """Make all flows that leave, and take all that arrive."""
        waiting = self.connecting
        for number, (source, _to, own, address, phase) in enumerate(self.flows):
            if source != self.rank:
                continue
            made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            made.bind((own, 0))
            with suppress(BlockingIOError):
                made.connect((address, PORT))
            waiting[made.fileno()] = self.out[number] = Flow(number, made, phase)
            self.events.register(made.fileno(), select.EPOLLOUT)
        known = {
            _packed(address): number
            for number, (_source, to, _own, address, _phase) in enumerate(self.flows)
            if to == self.rank
        }
        self.events.register(self.door.fileno(), select.EPOLLIN)
        while waiting or len(self.into) < len(known):
            for file, _event in self._happened(-1):
                if file == self.door.fileno():
                    self._accept(known)
                elif file in waiting:
                    flow = waiting.pop(file)
                    self.events.unregister(file)
                    _require_connected(flow.socket, self.flows[flow.number])
        self.events.unregister(self.door.fileno())
        self.receiving = {flow.socket.fileno(): flow for flow in self.into.values()}
        for file in self.receiving:
            self.events.register(file, select.EPOLLIN)
        return {"flows": len(self.out)}

    def _accept(self, known: dict[bytes, int]) -> None:
        with suppress(BlockingIOError):
            while True:
                made, _ = self.door.accept()
                made.setblocking(False)
                number = known[_packed(made.getsockname()[0])]
                self.into[number] = Flow(number, made)

    def _prepare(self, order: dict[str, Any]) -> dict[str, Any]:
        """Get ready for shards of another size."""
        self.size = self.job["sizes"][order["index"]]
        counts = self.size["counts"]
        ranks = self.job["ranks"]
        even = isinstance(counts, int)
        self.shard = (
            PerShard(ranks, counts)
            if even
            else PerShard(ranks, counts=np.array(counts, dtype=np.int64))
        )
        self.input = sent_by(self.rank, self.shard).data
        wrong = ~received_by(self.rank, self.shard)
        # What a rank has for itself never leaves it.
        self.wrong = wrong
        self.received = wrong.copy()
        self.output = self.received.data
        self.lay_out()
        return {"ready": True}

    def lay_out(self) -> None:
        """Give every flow its parts of the buffers, its room, and its rate."""
        self.spans = {number: self._spans(number) for number in (*self.out, *self.into)}
        for number, flow in self.out.items():
            rate = min(self.size["pace"][number] or UNPACED, UNPACED)
            room = self.size["buffer"][number]
            flow.socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
            flow.socket.setsockopt(
                socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=I", int(rate))
            )

    def _spans(self, number: int) -> Spans:
        source, to = self.flows[number][:2]
        ends = (np.array(source), np.array(to))
        place = self.shard.in_input if source == self.rank else self.shard.in_output
        first = int(place(*ends))
        return [(first + at, first + at + length) for at, length in self.size["pieces"][number]]

    def _exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        """Exchange once from a common start; return when all was there, and what is wrong."""
        self.received[:] = self.wrong
        self._begin()
        _sleep_until(order["at"])
        used = time.process_time()
        self._move()
        ended = time.monotonic_ns()
        used = time.process_time() - used
        told = wrong_bytes(self.received, self.rank, self.shard, self.size["bytes"])
        return {"ended": ended, "cpu": used, "wrong": told}

    def exchange(self) -> None:
        """Exchange once what the buffers have; others have to have ended the last one."""
        self._begin()
        self._move()

    def _begin(self) -> None:
        self._copy_own()
        for number, flow in self.into.items():
            flow.begin(self.output, self.spans[number])
        for number, flow in self.out.items():
            flow.begin(self.input, self.spans[number])

    def _copy_own(self) -> None:
        own = (np.array(self.rank), np.array(self.rank))
        length = int(self.shard.of(*own))
        begin, end = int(self.shard.in_input(*own)), int(self.shard.in_output(*own))
        self.output[end : end + length] = self.input[begin : begin + length]

    def _move(self) -> None:
        self.heard = time.monotonic()
        phases = sorted({flow.phase for flow in self.out.values() if flow.left}, reverse=True)
        sending: dict[int, Flow] = {}
        begun: list[Flow] = []
        expected = sum(flow.left > 0 for flow in self.into.values())
        while expected or sending or phases:
            if phases and not sending and not any(_unsent(flow) for flow in begun):
                phase = phases.pop()
                begun = [x for x in self.out.values() if x.phase == phase and x.left]
                # Most small shards leave at once, and their sockets need not be watched.
                sending = {flow.socket.fileno(): flow for flow in begun if not self._send(flow)}
                for file in sending:
                    self.events.register(file, select.EPOLLOUT)
                if not sending:
                    continue
            waits = UNSENT_SECONDS if phases and not sending else -1
            for file, _event in self._happened(waits):
                if file in sending:
                    if self._send(sending[file]):
                        del sending[file]
                        self.events.unregister(file)
                elif file in self.receiving:
                    expected -= self._receive(self.receiving[file])

    def _happened(self, seconds: float) -> list[tuple[int, int]]:
        """Wait for events, if need be until it has been silent for too long."""
        found = self.events.poll(self.job["silence"] if seconds < 0 else seconds)
        now = time.monotonic()
        if not found and now - self.heard >= self.job["silence"]:
            raise Stopped
        self.heard = now if found else self.heard
        if any(file == self.line.fileno() for file, _ in found):
            # Nobody speaks to us while we are at work, but to say that it is over.
            self.line.recv(1 << 16)
            raise Stopped
        return found

    def _send(self, flow: Flow) -> bool:
        try:
            count = flow.socket.send(flow.view[:AT_ONCE])
        except BlockingIOError:
            return False
        return flow.moved(self.input, count)

    def _receive(self, flow: Flow) -> bool:
        if not flow.left:
            raise ConnectionError(f"flow {self.flows[flow.number]} ended, or brings too much")
        count = flow.socket.recv_into(flow.view)
        if not count:
            raise ConnectionError(f"flow {self.flows[flow.number]} ended too early")
        return flow.moved(self.output, count)


def _packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, address)


def _require_connected(made: socket.socket, flow: list[Any]) -> None:
    code = made.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
    if code:
        raise OSError(code, f"no connection from {flow[2]} to {flow[3]}")


def _unsent(flow: Flow) -> bool:
    found = fcntl.ioctl(flow.socket.fileno(), SIOCOUTQNSD, b"\0" * ctypes.sizeof(ctypes.c_int))
    return bool(struct.unpack("=i", found)[0])


def _sleep_until(moment: int) -> None:
    left = moment - time.monotonic_ns()
    if left > 0:
        time.sleep(left * 1e-9)
