"""The passes between a schedule and a program, one by one."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from lowering_cases import TOPOLOGIES, schedule_named

from alltoall.check.program.alltoall import check_all_to_all
from alltoall.errors import InputError
from alltoall.ir.program import Buffer, Op, RankProgram, Step
from alltoall.lowering.programs.compile import moves_of, program_of
from alltoall.lowering.programs.moves import balance, place, transfers_of


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_merging_moves_the_same_chunks_in_fewer_instructions(name: str) -> None:
    """Merged moves cover exactly the unmerged ones, and are at most as long as asked."""
    schedule = schedule_named(name, 2)
    single, longer = moves_of(schedule, most=1), moves_of(schedule, most=3)
    assert len(longer.step) < len(single.step)
    assert longer.count.max() <= 3
    rows = Counter(
        (step, sender, receiver, from_ + each, to + each)
        for step, sender, receiver, from_, to, count in zip(
            longer.step.tolist(),
            longer.sender.tolist(),
            longer.receiver.tolist(),
            longer.from_offset.tolist(),
            longer.to_offset.tolist(),
            longer.count.tolist(),
            strict=True,
        )
        for each in range(count)
    )
    columns = (single.step, single.sender, single.receiver, single.from_offset, single.to_offset)
    assert rows == Counter(zip(*(column.tolist() for column in columns), strict=True))


def test_scratch_is_reused_only_where_allowed() -> None:
    """With reuse a rank needs less scratch than what passes through it; without, exactly that."""
    transfers = transfers_of(schedule_named("ring:12"))
    stored = transfers.receiver != transfers.destination
    passing = np.bincount(transfers.receiver[stored], minlength=transfers.ranks)
    assert np.array_equal(place(transfers, reuse=False).scratch, passing)
    at_once, rested = place(transfers), place(transfers, rest=2)
    assert at_once.scratch.sum() < rested.scratch.sum() < passing.sum()
    assert np.array_equal(place(transfers, rest=transfers.steps).scratch, passing)


def test_a_chunk_that_passes_a_rank_twice_is_read_where_it_last_came() -> None:
    """A detour through the same rank gets its own slot each time."""
    schedule = schedule_named("ring:4")
    link = {
        (int(u), int(v)): index
        for index, (u, v) in enumerate(
            zip(schedule.problem.topology.tail, schedule.problem.topology.head, strict=True)
        )
    }
    direct = (schedule.source == 0) & (schedule.destination == 1)
    walk = [(0, 3), (3, 2), (2, 3), (3, 2), (2, 1)]
    rows = [
        (step, source, destination, chunk, number)
        for step, source, destination, chunk, number in zip(
            *(
                getattr(schedule, key)[~direct].tolist()
                for key in ("step", "source", "destination", "chunk", "link")
            ),
            strict=True,
        )
    ] + [(step, 0, 1, 0, link[hop]) for step, hop in enumerate(walk)]
    columns = np.array(sorted(rows)).T
    keys = ("step", "source", "destination", "chunk", "link")
    wandering = replace(schedule, steps=len(walk), **dict(zip(keys, columns, strict=True)))
    assert check_all_to_all(program_of(wandering)).correct


def test_sending_what_has_not_arrived_is_refused() -> None:
    """A schedule that is not causal cannot be lowered; the message says which chunk."""
    schedule = schedule_named("ring:4")
    early = replace(schedule, steps=1, step=np.zeros_like(schedule.step))
    with pytest.raises(InputError, match=r"in step 0 rank \d sends chunk 0 .* before it has rec"):
        program_of(early)


def test_high_degrees_use_more_channels() -> None:
    """No rank has more than 31 FIFO ends on a channel, and every FIFO keeps its own."""
    moves = moves_of(schedule_named("complete:20"))
    spread_out = balance(moves, 31)
    ends = Counter(zip(spread_out.sender.tolist(), spread_out.channel.tolist(), strict=True))
    ends += Counter(zip(spread_out.receiver.tolist(), spread_out.channel.tolist(), strict=True))
    assert max(ends.values()) <= 31
    assert spread_out.channel.max() == 1


@pytest.mark.parametrize("name", TOPOLOGIES)
def test_every_dependency_is_needed(name: str) -> None:
    """No wait is implied by the order within threads and the other waits of the rank."""
    program = program_of(schedule_named(name, 2))
    for code in program.ranks[:4]:
        known = _reach(code)
        for thread, line in enumerate(code.threads):
            for number, each in enumerate(line.instructions):
                others = [known[Step(thread, number - 1)]] if number else []
                for wait in each.after:
                    rest = [known[other] for other in each.after if other != wait]
                    assert not any(wait in reach for reach in others + rest)


def _reach(code: RankProgram) -> dict[Step, frozenset[Step]]:
    """Return every instruction of a rank with all that is ordered before it, and itself."""
    known: dict[Step, frozenset[Step]] = {}
    left = {
        Step(thread, number): each
        for thread, line in enumerate(code.threads)
        for number, each in enumerate(line.instructions)
    }
    while left:
        for step, each in list(left.items()):
            before = [*each.after, *([Step(step.thread, step.number - 1)] if step.number else [])]
            if all(other in known for other in before):
                known[step] = frozenset({step}).union(*(known[other] for other in before))
                del left[step]
    return known


def test_own_shards_are_copied() -> None:
    """Every rank copies its own shard, in pieces that runtimes take."""
    program = program_of(schedule_named("ring:4", 100), most=71)
    for rank, code in enumerate(program.ranks):
        copies = [each for each in code.threads[0].instructions if each.op is Op.COPY]
        assert [each.count for each in copies] == [71, 29]
        assert copies[0].source == (Buffer.INPUT, 100 * rank)
        assert copies[0].target == (Buffer.OUTPUT, 100 * rank)
