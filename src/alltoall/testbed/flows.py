"""The work of a host: thousands of TCP flows, one per route.

A rank listens, connects its outgoing flows, and accepts incoming ones, identified by their two
addresses. Then it repeats: prepare, wait for the common start, move all bytes
(`moving.py`), and report the end time over a socket outside the fabric. Bytes are checked when all
have ended.
"""

import json
import select
import socket
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from alltoall.ir.chunks import PerShard
from alltoall.runtime.bench import received_by, sent_by, wrong_bytes
from alltoall.testbed.moving import BrokenFlowError, MoverStopped, Moves, Spans
from alltoall.testbed.ports import find_ports, shared

PORT = 7000
"""Port on which all ranks listen."""

BACKLOG = 4096
"""Flows that may be waiting to be accepted."""

SO_MAX_PACING_RATE = 47
"""Of Linux: bytes a second of a socket at most."""

UNPACED = 0xFFFFFFFF
"""No limit to the bytes a second of a socket."""

ONE_PACKET = 8192
"""Bytes that fit into one packet, whose acknowledgement may be delayed.

Otherwise acknowledgements are sent when bytes are read, a third of all work for shards of a
kilobyte. Linux resets the option after each delayed acknowledgement."""

BUFFER = 16 * 1024
"""Initial send buffer of a flow; the kernel keeps the first value."""


class Rank:
    """A host: its flows, its buffers, and the control line."""

    def __init__(self, job: dict[str, Any], rank: int, line: socket.socket) -> None:
        self.job, self.rank, self.line = job, rank, line
        self.flows: list[list[Any]] = job["flows"]
        self.events = select.epoll()
        self.connecting: dict[int, int] = {}
        self.out: dict[int, socket.socket] = {}
        self.into: dict[int, socket.socket] = {}
        self.moves: Moves | None = None
        self.small: list[socket.socket] = []
        self.size: dict[str, Any] = {}
        self.shard = PerShard(1, 1)
        self.input, self.output = memoryview(b""), memoryview(bytearray())

    def serve(self) -> None:
        """Carry out commands until the control line closes."""
        deeds: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "connect": lambda _: self.connect(),
            "size": self._prepare,
            "reset": lambda _: self._reset(),
            "go": self._exchange,
            "check": self._check,
        }
        self.listen()
        self._tell({"listens": True})
        while said := self.line.recv(1 << 16):
            order = json.loads(said)
            if order["do"] in deeds:
                try:
                    told = deeds[order["do"]](order)
                except MoverStopped:
                    told = {"missing": self._missing()}
                self._tell(told)

    def _missing(self) -> list[list[int]]:
        """Return the unfinished flows and their remaining bytes."""
        late = [[number, 0] for number in self.connecting.values()]
        if self.moves is None:
            return late
        coming = zip(self.into, self.moves.into, strict=True)
        return late + [[number, flow.left] for number, flow in coming if flow.left]

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

    def connect(self) -> dict[str, Any]:
        """Connect all outgoing flows and accept all incoming ones."""
        waiting, ports = self.connecting, self._ports()
        for number, (source, _to, own, address, _phase) in enumerate(self.flows):
            if source != self.rank:
                continue
            made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
            made.setblocking(False)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, BUFFER)
            made.bind((own, ports.get(number, 0)))
            with suppress(BlockingIOError):
                made.connect((shared(address) if ports else address, PORT))
            self.out[number] = made
            waiting[made.fileno()] = number
            self.events.register(made.fileno(), select.EPOLLOUT)
        # Routes of a pair may share an address, but each is answered by another.
        known = {
            (_packed(own), _packed(shared(address) if self.job.get("ways") else address)): number
            for number, (_source, to, own, address, _phase) in enumerate(self.flows)
            if to == self.rank
        }
        self.events.register(self.door.fileno(), select.EPOLLIN)
        while waiting or len(self.into) < len(known):
            for file in self._happened():
                if file == self.door.fileno():
                    self._accept(known)
                elif file in waiting:
                    number = waiting.pop(file)
                    self.events.unregister(file)
                    if code := self.out[number].getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        _, _, own, address, _ = self.flows[number]
                        raise OSError(code, f"no connection from {own} to {address}")
        self.events.unregister(self.door.fileno())
        for each in self.into.values():
            self.events.register(each.fileno(), select.EPOLLIN)
        self.moves = Moves(
            self.job["mover"],
            self.events,
            self.line.fileno(),
            [(each.fileno(), self.flows[number][-1]) for number, each in self.out.items()],
            [each.fileno() for each in self.into.values()],
            self.job["silence"],
        )
        return {"flows": len(self.out)}

    def _happened(self) -> list[int]:
        """Wait for events; return the ready files."""
        found = [file for file, _ in self.events.poll(self.job["silence"])]
        if not found or self.line.fileno() in found:
            raise MoverStopped
        return found

    def _ports(self) -> dict[int, int]:
        """Return the source ports that make the kernel's hash pick each flow's route."""
        ways = self.job.get("ways")
        if not ways:
            return {}
        mine = [number for number, flow in enumerate(self.flows) if flow[0] == self.rank]
        flows = [(self.flows[n][2], shared(self.flows[n][3]), ways[n]) for n in mine]
        return dict(zip(mine, find_ports(flows, PORT), strict=True))

    def _accept(self, known: dict[tuple[bytes, bytes], int]) -> None:
        with suppress(BlockingIOError):
            while True:
                made, (own, *_) = self.door.accept()
                made.setblocking(False)
                self.into[known[_packed(own), _packed(made.getsockname()[0])]] = made

    def _prepare(self, order: dict[str, Any]) -> dict[str, Any]:
        """Get ready for shards of another size."""
        self.size = self.job["sizes"][order["index"]]
        counts, ranks = self.size["counts"], self.job["ranks"]
        if isinstance(counts, int):
            self.shard = PerShard(ranks, counts)
        else:
            self.shard = PerShard(ranks, counts=np.array(counts, dtype=np.int64))
        self.input = sent_by(self.rank, self.shard).data
        self.received = received_by(self.rank, self.shard)
        self.output = self.received.data
        self.lay_out()
        return {"ready": True}

    def lay_out(self) -> None:
        """Give every flow its parts of the buffers, its room, and its rate."""
        assert self.moves is not None
        coming = [self._spans(each) for each in self.into]
        self.moves.lay_out([self._spans(each) for each in self.out], coming)
        self.small = [
            each
            for each, spans in zip(self.into.values(), coming, strict=True)
            if sum(end - begin for begin, end in spans) <= ONE_PACKET
        ]
        for number, flow in self.out.items():
            rate = min(self.size["pace"][number] or UNPACED, UNPACED)
            room = self.size["buffer"][number]
            flow.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, room)
            flow.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=I", int(rate)))

    def _spans(self, number: int) -> Spans:
        source, to = self.flows[number][:2]
        ends = (np.array(source), np.array(to))
        place = self.shard.in_input if source == self.rank else self.shard.in_output
        first = int(place(*ends))
        return [(first + at, first + at + length) for at, length in self.size["pieces"][number]]

    def _reset(self) -> dict[str, Any]:
        """Overwrite the receive buffer with wrong bytes."""
        np.invert(received_by(self.rank, self.shard), out=self.received)
        self._begin()
        return {"ready": True}

    def _exchange(self, order: dict[str, Any]) -> dict[str, Any]:
        """Exchange once from a common start; return the end time."""
        self._move(order["at"])
        return {"ended": time.monotonic_ns()}

    def _check(self, _: dict[str, Any]) -> dict[str, Any]:
        return {"wrong": wrong_bytes(self.received, self.rank, self.shard, self.size["bytes"])}

    def exchange(self) -> None:
        """Exchange the buffers once; all ranks must have ended the previous exchange."""
        self._begin()
        self._move()

    def _move(self, start: int = 0) -> None:
        assert self.moves is not None
        try:
            self.moves.move(start)
        except BrokenFlowError as error:
            files = {each.fileno(): number for number, each in (self.out | self.into).items()}
            source, to, own, address, _ = self.flows[files[error.file]]
            raise ConnectionError(
                f"the flow from rank {source} ({own}) to {to} ({address}): {error}"
            ) from None

    def _begin(self) -> None:
        """Copy a rank's own shard, and reset."""
        assert self.moves is not None
        own = (np.array(self.rank), np.array(self.rank))
        length = int(self.shard.of(*own))
        begin, end = int(self.shard.in_input(*own)), int(self.shard.in_output(*own))
        self.output[end : end + length] = self.input[begin : begin + length]
        self.moves.begin(self.input, self.output)
        for each in self.small:
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 0)


def _packed(address: str) -> bytes:
    return socket.inet_pton(socket.AF_INET6, address)
