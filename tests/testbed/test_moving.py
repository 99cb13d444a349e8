"""The loop over events: flows over this machine's own addresses, no fabric."""

import contextlib
import select
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from alltoall.errors import MissingComponentError
from alltoall.runtime.engine import build
from alltoall.testbed import moving
from alltoall.testbed.moving import BrokenFlowError, MoverStopped, Moves, mover

Pair = tuple[socket.socket, socket.socket]


def connected(stack: ExitStack) -> Pair:
    """Return two ends of a connection that never block, with little room in between."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        one = stack.enter_context(socket.create_connection(door.getsockname()))
        other = stack.enter_context(door.accept()[0])
    one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    for each in (one, other):
        each.setblocking(False)
    return one, other


@pytest.fixture
def wires() -> Iterator[tuple[list[Pair], Pair]]:
    """Give six connections, and a line."""
    with ExitStack() as stack:
        pairs = [connected(stack) for _ in range(6)]
        line = [stack.enter_context(each) for each in socket.socketpair()]
        yield pairs, (line[0], line[1])


def moves(wires: tuple[list[Pair], Pair], phases: list[int], **asked: Any) -> Moves:
    """Return the flows of a host that sends itself what it sends."""
    pairs, line = wires
    events = select.epoll()
    for file in (line[0], *(into for _, into in pairs)):
        events.register(file.fileno(), select.EPOLLIN)
    out = [(each.fileno(), phase) for (each, _), phase in zip(pairs, phases, strict=True)]
    into = [each.fileno() for _, each in pairs]
    return Moves(mover(), events, line[0].fileno(), out, into, asked.get("silence", 20.0))


def cut(total: int, parts: int, seed: int) -> list[tuple[int, int]]:
    """Return spans that cover so many bytes, in a random order."""
    rng = np.random.default_rng(seed)
    inner = rng.choice(np.arange(1, total), parts - 1, replace=False)
    ends = np.sort([0, *inner, total])
    order = rng.permutation(parts)
    return [(int(ends[k]), int(ends[k + 1])) for k in order]


@pytest.mark.parametrize("phases", [[0] * 6, [0, 2, 2, 5, 0, 1]], ids=["at once", "phases"])
def test_every_piece_arrives_where_it_belongs(
    wires: tuple[list[Pair], Pair], phases: list[int]
) -> None:
    """Pieces of any order and size; flow 4 carries nothing; twice, with other buffers."""
    host = moves(wires, phases)
    total = 600_000
    spans = cut(total, 35, 1)
    out = [spans[k:35:5] for k in range(5)]
    into = [[(total - end, total - begin) for begin, end in each] for each in out]
    host.lay_out([*out[:4], [], out[4]], [*into[:4], [], into[4]])
    for seed in (2, 3):
        given = np.random.default_rng(seed).integers(0, 256, total, dtype=np.uint8)
        taken = np.zeros_like(given)
        host.begin(given.data, taken.data)
        host.move()
        for begin, end in spans:
            np.testing.assert_array_equal(taken[total - end : total - begin], given[begin:end])
        assert not any(flow.left for flow in (*host.out, *host.into))


def waiting(wires: tuple[list[Pair], Pair], **asked: Any) -> tuple[Moves, Any]:
    """Return flows of which one expects 10 bytes that nobody sends, and where they are to go."""
    host = moves(wires, [0] * 6, **asked)
    host.lay_out([[]] * 6, [[(0, 10)], *[[]] * 5])
    taken = np.zeros(10, dtype=np.uint8)
    host.begin(memoryview(b""), taken.data)
    return host, taken


def test_silence_and_a_word_are_the_end(wires: tuple[list[Pair], Pair]) -> None:
    """What is left is known."""
    host, taken = waiting(wires, silence=0.05)
    wires[0][0][0].send(b"123")
    with pytest.raises(MoverStopped):
        host.move()
    assert [flow.left for flow in host.into] == [7, 0, 0, 0, 0, 0]
    wires[1][1].send(b"stop")
    host, taken = waiting(wires)
    with pytest.raises(MoverStopped):
        host.move()
    assert not taken.any()


def test_a_flow_that_ends_or_brings_too_much(wires: tuple[list[Pair], Pair]) -> None:
    """The error has the file of the flow."""
    host, _ = waiting(wires)
    wires[0][3][0].send(b"unasked")
    with pytest.raises(BrokenFlowError, match="ended too early, or brings too much") as told:
        host.move()
    assert told.value.file == wires[0][3][1].fileno()
    assert wires[0][3][1].recv(10) == b"unasked"
    host, _ = waiting(wires)
    wires[0][0][0].close()
    with pytest.raises(BrokenFlowError) as told:
        host.move()
    assert told.value.file == wires[0][0][1].fileno()


def test_a_signal_is_heard_and_work_goes_on(wires: tuple[list[Pair], Pair]) -> None:
    """Python's handler runs while the loop waits: here it sends what the loop waits for."""
    host, taken = waiting(wires)
    before = signal.signal(signal.SIGALRM, lambda *_: wires[0][0][0].send(b"0123456789") and None)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        host.move()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert bytes(taken) == b"0123456789"


def test_without_a_compiler_nothing_moves(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """The error says what to install; what has been built before is taken as it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(MissingComponentError, match=r"no C compiler.*; install one") as refused:
        mover()
    assert refused.value.exit_code == 5
    monkeypatch.delenv("CC")
    first = mover()
    monkeypatch.setattr(build, "_run", lambda *_: contextlib.nullcontext(1 / 0))
    assert mover() == first == str(build.build_library(moving.SOURCE))
