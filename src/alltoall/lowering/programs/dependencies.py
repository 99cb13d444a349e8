"""Dependency insertion: what an instruction of a rank has to wait for, and no more.

Walking a rank's instructions in the order of the schedule, an instruction waits for those that it
conflicts with (`hazards`). A wait is left out where the order within a thread, or other waits,
imply it.
"""

from dataclasses import replace

from alltoall.ir.program import Place, Step, Thread
from alltoall.lowering.programs.hazards import Hazards, Spot
from alltoall.lowering.programs.streams import Stream

Clock = dict[int, int]
"""For each thread of the rank, the index of its last instruction known to have finished."""


def threads_of(streams: list[Stream]) -> tuple[Thread, ...]:
    """Return one rank's threads, each instruction with the least set of steps to wait for."""
    hazards, clocks = Hazards[Step](), _Clocks(len(streams))
    after: dict[Step, tuple[Step, ...]] = {}
    for step in _in_order(streams):
        instruction = streams[step.thread].instructions[step.number]
        places = [_chunks(at, instruction.count) for at in (instruction.source, instruction.target)]
        after[step] = clocks.needed(step, hazards.touch(step, *places))
    return tuple(
        Thread(
            stream.channel,
            stream.send_to,
            stream.receive_from,
            tuple(
                replace(instruction, after=after[Step(thread, index)])
                for index, instruction in enumerate(stream.instructions)
            ),
        )
        for thread, stream in enumerate(streams)
    )


def _in_order(streams: list[Stream]) -> list[Step]:
    steps = [
        (order, Step(thread, index))
        for thread, stream in enumerate(streams)
        for index, order in enumerate(stream.order)
    ]
    return [step for _, step in sorted(steps)]


def _chunks(place: Place | None, count: int) -> list[Spot]:
    if place is None:
        return []
    return [(place.buffer, place.offset + each) for each in range(count)]


class _Clocks:
    """What each instruction knows to have finished when it finishes."""

    def __init__(self, threads: int) -> None:
        self._at: list[list[Clock]] = [[] for _ in range(threads)]

    def needed(self, step: Step, conflicts: set[Step]) -> tuple[Step, ...]:
        """Return which conflicts `step` has to wait for itself."""
        line = self._at[step.thread]
        clock = dict(line[-1]) if line else {}
        chosen: list[Step] = []
        # The latest first: what it knows covers many of the earlier ones.
        for other in sorted(conflicts, key=self._rank_of, reverse=True):
            if clock.get(other.thread, -1) < other.number:
                chosen.append(other)
                _join(clock, self._at[other.thread][other.number])
        chosen = [each for each in chosen if not self._implied(each, chosen)]
        clock[step.thread] = step.number
        line.append(clock)
        return tuple(sorted(chosen))

    def _implied(self, step: Step, chosen: list[Step]) -> bool:
        return any(
            other != step
            and self._at[other.thread][other.number].get(step.thread, -1) >= step.number
            for other in chosen
        )

    def _rank_of(self, step: Step) -> tuple[int, Step]:
        return len(self._at[step.thread][step.number]), step


def _join(clock: Clock, other: Clock) -> None:
    for thread, index in other.items():
        if clock.get(thread, -1) < index:
            clock[thread] = index
