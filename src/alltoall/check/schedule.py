"""The independent check of a schedule: every chunk arrives, and is sent only after its arrival.

Like `check.flow`, this shares no code with what produces schedules. Chunks do not depend on each
other, so they are checked in blocks of chunks, each with all of its sends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from alltoall.check.flow import TOLERANCE, recompute_bound
from alltoall.check.sums import raise_if, runs
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.schedule import Schedule

BLOCK = 1_000_000
"""Sends of a block: some thirty arrays of this length exist at a time."""


@dataclass(frozen=True)
class ScheduleReport:
    """The values that a check of a schedule recomputed."""

    time: float
    bound: float
    gap: float
    steps: int
    chunks_per_shard: int
    sends: int


def check_schedule(schedule: Schedule, tolerance: float = TOLERANCE) -> ScheduleReport:
    """Check that a schedule is a correct all-to-all, and that its bound holds."""
    subject = f"schedule on {schedule.problem.topology.name}"
    if schedule.chunks.total > schedule.sends:  # a small file may claim any number of them
        found = f"{schedule.sends} sends cannot deliver {schedule.chunks.total} chunks"
        raise_if(subject, [f"{found} of all shards; each has to be sent at least once"])
    matrix, terminals = schedule.problem.demand.matrix, schedule.problem.demand.terminals
    pair = np.flatnonzero(~np.eye(terminals, dtype=np.bool_) if matrix is None else matrix)
    first = starts_of(schedule.chunks.of(*np.divmod(pair, terminals)))
    violations = list(_check_moves(schedule, _Chunks(schedule, pair, first)))
    bound, trouble = recompute_bound(schedule.problem, schedule.certificate.lengths)
    violations += trouble
    if not schedule.bound <= bound * (1 + tolerance):
        violations.append(f"claims the bound {schedule.bound:.12g}; its lengths prove {bound:.12g}")
    time = 0.0 if violations else _time(schedule)
    if not time >= bound * (1 - tolerance) and not violations:
        violations.append(f"the time {time:.12g} is below the proven bound {bound:.12g}")
    raise_if(subject, violations)
    return ScheduleReport(
        time, bound, time / bound - 1, schedule.steps, schedule.chunks_per_shard, schedule.sends
    )


@dataclass(frozen=True, eq=False)
class _Chunks:
    """All chunks, numbered by source, destination and chunk.

    `pair` is source * terminals + destination of every shard in ascending order, `first` the number
    of its first chunk, and at the end that of all chunks.
    """

    schedule: Schedule
    pair: Ints
    first: Ints

    @property
    def total(self) -> int:
        """The number of chunks."""
        return int(self.first[-1])

    def of_sends(self) -> Ints:
        """Return the chunk that each send moves."""
        s, terminals = self.schedule, len(self.schedule.problem.topology.terminals)
        place = np.searchsorted(self.pair, s.source * terminals + s.destination)
        return self.first[place] + s.chunk

    def ends(self, chunk: Ints) -> tuple[Ints, Ints]:
        """Return the source and the destination of each chunk, as nodes."""
        terminals = self.schedule.problem.topology.terminals
        pair = self.pair[np.searchsorted(self.first, chunk, side="right") - 1]
        return terminals[pair // len(terminals)], terminals[pair % len(terminals)]

    def name(self, chunk: int) -> str:
        """Name a chunk by the ends of its shard."""
        topology = self.schedule.problem.topology
        shard = int(np.searchsorted(self.first, chunk, side="right")) - 1
        pair = divmod(int(self.pair[shard]), len(topology.terminals))
        return f"chunk {chunk - self.first[shard]} {topology.pair_name(*pair)}"


def _check_moves(schedule: Schedule, chunks: _Chunks) -> Iterator[str]:
    """Check every chunk; count the wrong sends and chunks, and name the first."""
    number = chunks.of_sends()
    # Every step ends at a terminal that is new to the chunk, and passes a switch at most once.
    terminals, nodes = len(schedule.problem.topology.terminals), schedule.problem.topology.nodes
    sends, most = np.bincount(number), (terminals - 1) * (nodes - terminals + 1)
    if sends.max() > most:
        often = int(sends.argmax())
        yield f"{chunks.name(often)} is sent {sends[often]} times; a path has at most {most} links"
        return
    del sends
    # The number of wrong sends or chunks, and the first: a list of all could be long.
    found: dict[str, tuple[int, int]] = {}
    for moves in _blocks(chunks, number):
        held = moves.held_since(np.arange(moves.chunks), moves.end)
        wrong = {words: moves.send[find(moves)] for words, find in FAULTS.items()}
        wrong[LOST] = moves.first + np.flatnonzero(held == schedule.steps)
        for words, each in wrong.items():
            count, first = found.get(words, (0, np.iinfo(np.int64).max))
            found[words] = count + len(each), int(each.min(initial=first))
    for words, (count, first) in found.items():
        if not count:
            continue
        if words == LOST:
            yield f"{count} of {chunks.total} {words}; the first: {chunks.name(first)}"
            continue
        link = schedule.problem.topology.link_name(int(schedule.link[first]))
        yield (
            f"{count} {words}; the first: step {schedule.step[first]} sends "
            f"{chunks.name(int(number[first]))} over {link}"
        )


@dataclass(frozen=True, eq=False)
class _ChunkMoves:
    """The sends of some chunks in order of their steps; `chunk` is counted from `first`."""

    schedule: Schedule
    first: int
    start: Ints
    end: Ints
    send: Ints
    chunk: Ints

    @property
    def chunks(self) -> int:
        """The number of chunks."""
        return len(self.start)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self.schedule.problem.topology.nodes

    @cached_property
    def step(self) -> Ints:
        """The step of each send."""
        return self.schedule.step[self.send]

    @cached_property
    def tail(self) -> Ints:
        """The node that each send leaves."""
        return self.schedule.problem.topology.tail[self.schedule.link[self.send]]

    @cached_property
    def head(self) -> Ints:
        """The node at which each send arrives."""
        return self.schedule.problem.topology.head[self.schedule.link[self.send]]

    @cached_property
    def moment(self) -> Ints:
        """One number for chunk and step of each send, from 1: sends are in order of both."""
        new = (np.diff(self.chunk, prepend=-1) != 0) | (np.diff(self.step, prepend=-1) != 0)
        return np.cumsum(new)

    @cached_property
    def stores(self) -> NDArray[np.bool_]:
        """Whether each node keeps chunks: terminals do."""
        return self.schedule.problem.topology.position >= 0

    def held_since(self, chunk: Ints, node: Ints) -> Ints:
        """Return the step in which each chunk first reaches each node: -1 at its source.

        Where it never does, the number of steps. Only pairs that occur are ever stored.
        """
        start = np.arange(self.chunks) * self.nodes + self.start
        keys = np.concatenate((start, self.chunk * self.nodes + self.head))
        steps = np.concatenate((np.full(self.chunks, -1), self.step))
        order = np.lexsort((steps, keys))
        keys, steps = keys[order], steps[order]
        wanted = chunk * self.nodes + node
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, steps[place], self.schedule.steps)


def _blocks(chunks: _Chunks, number: Ints) -> Iterator[_ChunkMoves]:
    """Cut the chunks into blocks of about `BLOCK` sends; `number` is the chunk of each send."""
    order = np.argsort(number, kind="stable")
    number = number[order]
    before = np.searchsorted(number, np.arange(chunks.total + 1))
    for block in runs(before, BLOCK):
        some = slice(before[block.start], before[block.stop])
        start, end = chunks.ends(np.arange(block.start, block.stop))
        sends, chunk = order[some], number[some] - block.start
        yield _ChunkMoves(chunks.schedule, block.start, start, end, sends, chunk)


def _find_absent(moves: _ChunkMoves) -> Ints:
    """Find sends of chunks that are neither stored since an earlier step nor passing a switch."""
    held = moves.held_since(moves.chunk, moves.tail) < moves.step
    fine = moves.stores[moves.tail] & held
    passing = ~moves.stores[moves.tail]
    key = moves.moment * moves.nodes
    arrived = key + moves.head
    while True:
        left = np.flatnonzero(passing & ~fine)
        into = fine & ~moves.stores[moves.head]
        more = left[np.isin(key[left] + moves.tail[left], arrived[into])]
        if not len(more):
            return np.flatnonzero(~fine)
        fine[more] = True


def _places(moves: _ChunkMoves, node: Ints) -> Ints:
    """Return a number of each chunk's place: a terminal, or a switch in a step."""
    row = np.where(moves.stores[node], moves.chunk, moves.chunks + moves.moment)
    return np.asarray(row * moves.nodes + node)


def _find_returning(moves: _ChunkMoves) -> Ints:
    """Return the sends to a source, or to a place that the chunk has entered before."""
    again = moves.head == moves.start[moves.chunk]
    first = np.unique(_places(moves, moves.head), return_index=True)[1]
    again[np.delete(np.arange(len(again)), first)] = True
    return np.flatnonzero(again)


def _find_stranded(moves: _ChunkMoves) -> Ints:
    """Return the sends to a place, other than the destination, that the chunk never leaves."""
    entered, left = _places(moves, moves.head), np.sort(_places(moves, moves.tail))
    # Far faster than `np.isin`, as sends are in the order of their chunks.
    place = np.minimum(np.searchsorted(left, entered), len(left) - 1)
    return np.flatnonzero((left[place] != entered) & (moves.head != moves.end[moves.chunk]))


LOST = "chunks never arrive"
FAULTS = {
    "sends of chunks that are not there": _find_absent,
    "useless sends of chunks to a node that has them already": _find_returning,
    "useless sends of chunks that are at their destination already": lambda moves: np.flatnonzero(
        moves.tail == moves.end[moves.chunk]
    ),
    "useless sends of chunks to a node that does not send them on": _find_stranded,
}
"""Each fault of a send, and its check.

Together, the sends of a chunk must be one simple path. A terminal is one place, a switch one in
each step. If no place is entered twice, nothing enters the source or leaves the destination, and
every other place that is entered is left, then the sends of a chunk that starts at its source
cannot branch, meet or end anywhere else.
"""


def _time(schedule: Schedule) -> float:
    """Return the sum over the steps of the largest load over capacity, some steps at a time."""
    before = np.append(np.flatnonzero(np.diff(schedule.step, prepend=-1)), schedule.sends)
    blocks = (slice(before[some.start], before[some.stop]) for some in runs(before, BLOCK))
    return sum(float(_step_times(schedule, block).sum()) for block in blocks)


def _step_times(schedule: Schedule, some: slice) -> Floats:
    """Return the times of some steps."""
    capacity, links = schedule.problem.topology.capacity, schedule.problem.topology.links
    key = np.cumsum(np.diff(schedule.step[some], prepend=-1) != 0) * links + schedule.link[some]
    order = np.argsort(key, kind="stable")
    key = key[order]
    pairs = schedule.source[some], schedule.destination[some]
    size = schedule.problem.demand.of(*pairs) / schedule.chunks.of(*pairs)
    first = np.flatnonzero(np.diff(key, prepend=-1))
    load = np.add.reduceat(size[order], first) / capacity[key[first] % links]
    steps = np.flatnonzero(np.diff(key[first] // links, prepend=-1))
    return np.asarray(np.maximum.reduceat(load, steps))
