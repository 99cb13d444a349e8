"""Who may touch a chunk: exact clashes, and no others."""

import numpy as np
import pytest

from alltoall.check.program.interpret import Runner
from alltoall.check.program.memory import (
    MAX_NAMED,
    MAX_THREADS,
    Access,
    Clash,
    Clock,
    Memory,
    Shadow,
    check_threads,
)
from alltoall.errors import InputError
from alltoall.ir.program import Buffer, Place


def knows(*ticks: int) -> Clock:
    """Return a clock."""
    return np.array(ticks, dtype=np.int32)


def test_threads_are_limited() -> None:
    """As many as there is memory for, and no more."""
    check_threads(MAX_THREADS)
    with pytest.raises(InputError, match=f"takes up to {MAX_THREADS:,}, use fewer channels"):
        check_threads(MAX_THREADS + 1)


def test_a_read_of_nothing_names_its_chunk() -> None:
    """Chunks that were never written, by their offset in the buffer."""
    shadow, one = Shadow(5, filled=False), Access(0, 1)
    assert shadow.write(2, 3, one, knows(0, 0)) == []
    assert shadow.read(1, 4, Access(0, 2), knows(9, 0)) == [
        Clash(1, Access(0, 2), None, writes=False),
        Clash(3, Access(0, 2), None, writes=False),
    ]
    assert Shadow(3, filled=True).read(0, 3, one, knows(0, 0)) == []


def test_unordered_accesses_clash_both_ways() -> None:
    """A read after a write, a write after a write and a write after a read, each by its chunk."""
    shadow, writer, reader = Shadow(4, filled=True), Access(0, 3), Access(1, 2)
    assert shadow.write(1, 3, writer, knows(0, 0, 0)) == []
    assert shadow.read(2, 4, reader, knows(2, 0, 0)) == [Clash(2, reader, writer, writes=False)]
    assert shadow.read(1, 2, reader, knows(3, 0, 0)) == []
    last = Access(2, 1)
    assert shadow.write(0, 4, last, knows(2, 1, 0)) == [
        Clash(1, last, writer, writes=True),
        Clash(2, last, writer, writes=True),
        Clash(1, last, reader, writes=True),
        Clash(2, last, reader, writes=True),
        Clash(3, last, reader, writes=True),
    ]


def test_a_write_makes_an_end_of_earlier_reads() -> None:
    """Who is ordered after the write need not know of the readers before it."""
    shadow = Shadow(1, filled=True)
    shadow.read(0, 1, Access(1, 5), knows(0, 0, 0))
    shadow.read(0, 1, Access(2, 5), knows(0, 0, 0))
    assert shadow.write(0, 1, Access(0, 1), knows(0, 5, 5)) == []
    assert shadow.write(0, 1, Access(0, 2), knows(9, 0, 0)) == []
    assert shadow.read(0, 1, Access(2, 9), knows(2, 0, 0)) == []


def test_every_reader_counts() -> None:
    """Of several unordered readers each clashes with a writer that does not know it, once."""
    shadow = Shadow(3, filled=True)
    readers = [Access(thread, 4) for thread in range(3)]
    for reader in readers:
        assert shadow.read(1, 3, reader, knows(0, 0, 0, 0)) == []
    writer = Access(3, 1)
    found = shadow.write(1, 2, writer, knows(4, 3, 3, 0))
    assert sorted(found, key=lambda clash: clash.other.thread if clash.other else -1) == [
        Clash(1, writer, readers[1], writes=True),
        Clash(1, writer, readers[2], writes=True),
    ]
    assert shadow.write(1, 2, Access(3, 2), knows(0, 0, 0, 9)) == []
    assert len(shadow.write(2, 3, Access(3, 3), knows(0, 0, 0, 9))) == 3


def memory(scratch: int) -> Memory:
    """Return the memory of two ranks with inputs of one and outputs of two chunks."""
    inputs = list(np.array([[[7, 8]], [[9, 10]]], dtype=np.uint8))
    return Memory([[1, 2, scratch]] * 2, inputs, lambda access: f"<{access.thread}>")


def test_memory_holds_what_was_written_and_hands_out_copies() -> None:
    """A chunk that was read does not change when its place is written again."""
    own, clock = memory(0), knows(9, 9)
    data = own.read(1, Place(Buffer.INPUT, 0), 1, Access(0, 1), clock)
    own.write(0, Place(Buffer.OUTPUT, 1), data, Access(0, 2), clock)
    own.write(1, Place(Buffer.INPUT, 0), data * 0, Access(0, 3), clock)
    assert data.tolist() == [[9, 10]]
    assert [each.tolist() for each in own.outputs()] == [[[0, 0], [9, 10]], [[0, 0], [0, 0]]]
    assert list(own.violations()) == []


def test_memory_words_what_is_wrong_and_not_without_end() -> None:
    """Reads of nothing and races by rank, buffer and chunk; so many, and no more."""
    own = memory(MAX_NAMED + 5)
    own.write(1, Place(Buffer.OUTPUT, 1), np.zeros((1, 2), np.uint8), Access(0, 1), knows(0, 0))
    own.read(1, Place(Buffer.OUTPUT, 1), 1, Access(1, 1), knows(0, 0))
    own.write(1, Place(Buffer.OUTPUT, 1), np.zeros((1, 2), np.uint8), Access(0, 2), knows(9, 0))
    own.read(0, Place(Buffer.SCRATCH, 0), 2, Access(1, 1), knows(0, 0))
    for _ in range(2):
        own.read(0, Place(Buffer.SCRATCH, 0), MAX_NAMED + 5, Access(1, 1), knows(0, 9))
    found = list(own.violations())
    end = "touches without an order between the two; one must wait for the other"
    assert found[:4] == [
        f"race: <1> reads output chunk 1 of rank 1, which <0> {end}",
        f"race: <0> writes output chunk 1 of rank 1, which <1> {end}",
        "<1> reads scratch chunk 0 of rank 0, to which nothing has been written",
        "<1> reads scratch chunk 1 of rank 0, to which nothing has been written",
    ]
    assert len(found) == MAX_NAMED


def test_what_is_known_is_joined() -> None:
    """All that the other knew, and what it did last; nothing if that is known already."""
    runner = Runner(0, 0, 0, (), knows(99, 3, 5))
    before = runner.clock
    runner.learn(knows(0, 9, 7), Access(1, 4))
    assert runner.clock.tolist() == [99, 4, 7]
    assert before.tolist() == [99, 3, 5]
    runner.learn(knows(0, 9, 99), Access(1, 3))
    assert runner.clock.tolist() == [99, 4, 7]
    runner.learn(knows(0, 0, 8), Access(1, 4))
    assert runner.clock.tolist() == [99, 4, 8]
