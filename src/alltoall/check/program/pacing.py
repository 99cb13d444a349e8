"""How long a program takes if it runs in steps, each as long as its busiest link."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from alltoall.check.program.levels import Levels, Node
from alltoall.ir.program import Program

Hop = tuple[int, int]
SLACK = 1e-9
"""What rounding may add to the length of a step, as a share of it."""


@dataclass
class _Line:
    """A FIFO under way: its sends with their chunks, and how much of them has gone."""

    sends: list[tuple[Node, int]]
    path: list[Hop]
    at: int = 0
    gone: int = 0

    @property
    def done(self) -> bool:
        """Whether everything has gone."""
        return self.at == len(self.sends)

    @property
    def head(self) -> Node:
        """The send that is under way or next."""
        return self.sends[self.at][0]


@dataclass
class _Pace:
    """What has gone in which step, the load of each hop in the present one, and in all of them."""

    capacity: Mapping[Hop, float]
    chunk: float
    total: dict[Hop, float]
    fixed: dict[Node, int] = field(default_factory=dict)
    loads: dict[Hop, float] = field(default_factory=dict)

    def fits(self, line: _Line, length: float) -> bool:
        """Whether one more chunk leaves the step no longer than `length`."""
        return all(
            self.loads.get(hop, 0.0) + self.chunk / self.capacity[hop] <= length * (1 + SLACK)
            for hop in line.path
        )

    def send(self, line: _Line, step: int) -> None:
        """Let one chunk go; a send belongs to the step of its last chunk."""
        for hop in line.path:
            self.loads[hop] = self.loads.get(hop, 0.0) + self.chunk / self.capacity[hop]
        line.gone += 1
        if line.gone == line.sends[line.at][1]:
            self.fixed[line.head] = step
            line.at, line.gone = line.at + 1, 0


def paced_time(
    program: Program, hops: Mapping[tuple[int, int], list[Hop]], capacity: Mapping[Hop, float]
) -> float:
    """Return the sum over the steps of the largest load of a hop over its capacity, in shards.

    There are as many steps as the longest chain of transfers has. A step is as long as the chunks
    take that cannot go in a later one; in that time others go ahead too, those that are due first
    before the others, in the order of their FIFOs, where nothing keeps them. So the time is that
    of a valid execution in steps; where FIFOs share links there may be a faster one. `hops` are the
    links between each two ranks that send. All chunks are taken to be of one size, and the shard of
    most chunks is one.
    """
    levels = Levels(program)
    steps = max(levels.earliest().values(), default=0)
    latest = levels.latest(steps)
    lines = [_Line(queue, hops[fifo[:2]]) for fifo, queue in levels.sends.items()]
    pace = _Pace(capacity, 1.0 / program.chunks.most, {})
    for line in lines:
        for hop in line.path:
            load = sum(chunks for _, chunks in line.sends) * pace.chunk / capacity[hop]
            pace.total[hop] = pace.total.get(hop, 0.0) + load
    total = 0.0
    for step in range(1, steps + 1):
        pace.loads.clear()
        for line in lines:
            while not line.done and latest[line.head] <= step:
                pace.send(line, step)
        length = max(pace.loads.values())  # of the longest chain, one send is due in every step
        _go_ahead(lines, pace, step, length, latest, levels.earliest(pace.fixed, least=step))
        total += length
    return total


def _go_ahead(
    lines: list[_Line],
    pace: _Pace,
    step: int,
    length: float,
    latest: Mapping[Node, int],
    earliest: Mapping[Node, int],
) -> None:
    """Let chunks that could go later go in this step, one by one, as far as its length allows."""

    def urgency(line: _Line) -> tuple[int, float]:
        return latest[line.head], -sum(pace.total[hop] for hop in line.path)

    ready = lines
    while ready:
        ready = [
            line
            for line in ready
            if not line.done and earliest[line.head] <= step and pace.fits(line, length)
        ]
        for line in sorted(ready, key=urgency):
            if pace.fits(line, length):
                pace.send(line, step)
