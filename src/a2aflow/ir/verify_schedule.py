"""The independent check of a schedule: every chunk arrives, and nothing is sent before it is there.

Like `ir.verify`, this shares no code with what produces schedules.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from a2aflow.errors import VerificationError
from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.schedule import Schedule
from a2aflow.ir.verify import TOLERANCE, recompute_bound


@dataclass(frozen=True)
class ScheduleReport:
    """What a check of a schedule recomputed from its sends."""

    time: float
    bound: float
    gap: float
    steps: int
    chunks_per_shard: int
    sends: int


def check_schedule(schedule: Schedule, tolerance: float = TOLERANCE) -> ScheduleReport:
    """Check that a schedule is a correct all-to-all, and that its bound holds."""
    moves = _Moves(schedule)
    violations = [*_check_sends(moves), *_check_delivery(moves), *_check_use(moves)]
    bound, trouble = recompute_bound(schedule.problem, schedule.certificate.lengths)
    violations += trouble
    time = float(moves.step_times().sum())
    if not schedule.bound <= bound * (1 + tolerance):
        violations.append(f"claims the bound {schedule.bound:.12g}; its lengths prove {bound:.12g}")
    if not time >= bound * (1 - tolerance) and not violations:
        violations.append(f"the time {time:.12g} is below the proven bound {bound:.12g}")
    if violations:
        raise VerificationError(f"schedule on {schedule.problem.topology.name}", violations)
    return ScheduleReport(
        time, bound, time / bound - 1, schedule.steps, schedule.chunks_per_shard, schedule.sends
    )


class _Moves:
    """The sends with one number per chunk, numbered by source, destination and chunk."""

    def __init__(self, schedule: Schedule) -> None:
        topology = schedule.problem.topology
        terminals = len(topology.terminals)
        self.schedule, self.nodes = schedule, topology.nodes
        matrix = schedule.problem.demand.rows(np.arange(terminals))
        counts = np.where(
            matrix > 0, np.maximum(np.rint(matrix * schedule.chunks_per_shard), 1), 0
        ).astype(np.int64)
        first = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
        self.chunks = int(counts.sum())
        self.id = first[schedule.source, schedule.destination] + schedule.chunk
        pair = np.repeat(np.arange(counts.size), counts.ravel())
        self.start = topology.terminals[pair // terminals]
        self.end = topology.terminals[pair % terminals]
        self.pair_size = np.divide(matrix, counts, out=np.zeros_like(matrix), where=counts > 0)
        self.tail, self.head = topology.tail[schedule.link], topology.head[schedule.link]
        stores = np.zeros(topology.nodes, dtype=np.bool_)
        stores[topology.terminals] = True
        self.stores = stores

    def name(self, send: int) -> str:
        """Name a send for a message."""
        s = self.schedule
        link = s.problem.topology.link_name(int(s.link[send]))
        chunk = self.chunk_name(int(self.id[send]))
        return f"step {s.step[send]} sends {chunk} over {link}"

    def chunk_name(self, chunk: int) -> str:
        """Name a chunk by the ends of its shard."""
        first = int(
            np.flatnonzero((self.start == self.start[chunk]) & (self.end == self.end[chunk]))[0]
        )
        return f"chunk {chunk - first} from node {self.start[chunk]} to node {self.end[chunk]}"

    def held_since(self, chunk: Ints, node: Ints) -> Ints:
        """Return the step in which each chunk first reaches each node: -1 at its source.

        Where it never does, the number of steps. Only pairs that occur are ever stored.
        """
        start = np.arange(self.chunks) * self.nodes + self.start
        keys = np.concatenate((start, self.id * self.nodes + self.head))
        steps = np.concatenate((np.full(self.chunks, -1), self.schedule.step))
        order = np.lexsort((steps, keys))
        keys, steps = keys[order], steps[order]
        wanted = chunk * self.nodes + node
        place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.where(keys[place] == wanted, steps[place], self.schedule.steps)

    def step_times(self) -> Floats:
        """Return the largest load over capacity of each step."""
        s = self.schedule
        topology = s.problem.topology
        loads = np.zeros((s.steps, topology.links))
        np.add.at(loads, (s.step, s.link), self.pair_size[s.source, s.destination])
        return np.asarray((loads / topology.capacity).max(axis=1))


def _check_sends(moves: _Moves) -> Iterator[str]:
    """Find sends of what is not there: stored since an earlier step, or just passing a switch."""
    step = moves.schedule.step
    held = moves.held_since(moves.id, moves.tail) < step
    fine = moves.stores[moves.tail] & held
    passing = ~moves.stores[moves.tail]
    key = (step * moves.chunks + moves.id) * moves.nodes
    arrived = key + moves.head
    while True:
        left = np.flatnonzero(passing & ~fine)
        into = fine & ~moves.stores[moves.head]
        more = left[np.isin(key[left] + moves.tail[left], arrived[into])]
        if not len(more):
            break
        fine[more] = True
    wrong = np.flatnonzero(~fine)
    if len(wrong):
        first = moves.name(int(wrong[0]))
        yield f"{len(wrong)} sends of chunks that are not there; the first: {first}"


def _check_delivery(moves: _Moves) -> Iterator[str]:
    every = np.arange(moves.chunks)
    arrived = moves.held_since(every, moves.end) < moves.schedule.steps
    missing = np.flatnonzero(~arrived)
    if len(missing):
        first = moves.chunk_name(int(missing[0]))
        yield f"{len(missing)} of {moves.chunks} chunks never arrive; the first: {first}"


def _check_use(moves: _Moves) -> Iterator[str]:
    """Find sends that no delivery needs: together, the sends of a chunk must be one simple path.

    A terminal is one place, a switch one in each step. Where no place is entered twice, nothing
    enters the source or leaves the destination, and what enters any other place leaves it, the
    sends of a chunk that starts at its source cannot branch, meet or end anywhere else.
    """
    for words, find in USELESS.items():
        found = find(moves)
        if len(found):
            yield f"{len(found)} useless sends {words}; the first: {moves.name(int(found[0]))}"


def _places(moves: _Moves, node: Ints) -> Ints:
    """Return a number for where each chunk is at a node: a terminal, or a switch in a step."""
    moment = np.where(moves.stores[node], 0, moves.schedule.step + 1)
    return np.asarray((moment * moves.chunks + moves.id) * moves.nodes + node)


def _returning(moves: _Moves) -> Ints:
    """Return the sends to a source, or to a place that the chunk has entered before."""
    again = moves.head == moves.start[moves.id]
    first = np.unique(_places(moves, moves.head), return_index=True)[1]
    again[np.delete(np.arange(len(again)), first)] = True
    return np.flatnonzero(again)


def _leaving(moves: _Moves) -> Ints:
    """Return the sends from a destination."""
    return np.flatnonzero(moves.tail == moves.end[moves.id])


def _stranding(moves: _Moves) -> Ints:
    """Return the sends to a place, other than the destination, that the chunk never leaves."""
    left = np.isin(_places(moves, moves.head), _places(moves, moves.tail))
    return np.flatnonzero(~left & (moves.head != moves.end[moves.id]))


USELESS = {
    "of chunks to a node that has them already": _returning,
    "of chunks that are at their destination already": _leaving,
    "of chunks to a node that does not send them on": _stranding,
}
"""The kinds of useless sends, and who finds them."""
