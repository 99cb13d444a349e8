"""The interpreter of plans: what signals, waits, barriers and nops order, and what they do not."""

from collections.abc import Sequence

import pytest

from alltoall.check.program import memory as shadow
from alltoall.check.program.alltoall import (
    AllToAllReport,
    check_all_to_all,
    check_plan,
    numbered_inputs,
)
from alltoall.check.program.interpret import interpret_plan
from alltoall.check.program.memory import MAX_NAMED
from alltoall.errors import InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.execution_plan import Copy, ExecutionPlan, Operation, PlanOp, RankPlan
from alltoall.ir.program import Buffer, Instruction, Op, Place, Program, RankProgram, Thread

IN, OUT, SCRATCH = Buffer.INPUT, Buffer.OUTPUT, Buffer.SCRATCH
NOP = Operation(PlanOp.NOP)
Block = tuple[Operation, ...]


def put(source: tuple[Buffer, int], rank: int, target: tuple[Buffer, int]) -> Operation:
    """Write one chunk into the memory of a rank."""
    return Operation(PlanOp.PUT, (Copy(Place(*source), rank, Place(*target), 1),))


def signal(*channels: int, relaxed: bool = False, ordered: bool = False) -> Operation:
    """Signal on some channels."""
    return Operation(PlanOp.SIGNAL, channels=channels, relaxed=relaxed, ordered=ordered)


def wait(*channels: int) -> Operation:
    """Wait for a signal on each of some channels."""
    return Operation(PlanOp.WAIT, channels=channels)


def barrier(parties: int, number: int = 0) -> Operation:
    """Wait for other blocks of the rank."""
    return Operation(PlanOp.BARRIER, barrier=number, parties=parties)


def plan_of(
    one: Sequence[Block], two: Sequence[Block], channels: tuple[int, int] = (1, 1), scratch: int = 1
) -> ExecutionPlan:
    """Return a plan of two ranks with so many channels to each other."""
    ranks = (
        RankPlan(2, 2, scratch, (1,) * channels[0], tuple(one)),
        RankPlan(2, 2, scratch, (0,) * channels[1], tuple(two)),
    )
    return ExecutionPlan("by hand", Chunks(len(ranks), 1), ranks)


def exchange(rank: int, *told: Operation) -> Block:
    """Return a block that copies its own shard, puts the other, tells of it and waits."""
    own, other = put((IN, rank), rank, (OUT, rank)), put((IN, 1 - rank), 1 - rank, (OUT, rank))
    return (other, own, *told, wait(0))


def judged(plan: ExecutionPlan) -> AllToAllReport:
    """Execute a plan."""
    return check_plan(plan)


def race(here: str, what: str, other: str) -> str:
    """Return the words for a race."""
    return (
        f"race: {here} {what}, which {other} touches without an order between the two; one must "
        "wait for the other"
    )


def test_an_exchange_is_an_all_to_all() -> None:
    """Two puts over the link either way, at depth 1; copies within a rank are no load."""
    report = judged(plan_of([exchange(0, NOP, signal(0))], [exchange(1, NOP, signal(0))]))
    assert report.problems() == []
    assert report.loads == {(1, 0, 1): 1, (1, 1, 0): 1}
    assert (report.steps, report.sends.tolist()) == (1, [[0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ((NOP, signal(0)), True),
        ((barrier(1), signal(0)), True),
        ((signal(0, ordered=True),), True),
        ((signal(0),), False),
        ((NOP, signal(0, relaxed=True)), False),
    ],
)
def test_a_signal_tells_of_what_is_complete(told: Block, known: bool) -> None:
    """After a nop or a barrier, or on an ordered channel; else the receiver may be too early."""
    report = judged(plan_of([exchange(0, *told)], [exchange(1, NOP, signal(0))]))
    late = race(
        "the end of rank 1", "reads output chunk 0 of rank 1", "rank 0, thread block 0, step 0"
    )
    assert report.problems() == ([] if known else [late])


def relay(*told: Operation, between: Block = (NOP,)) -> ExecutionPlan:
    """Let rank 0 send a chunk by the scratch of rank 1 back into its own output."""
    there = (put((IN, 0), 1, (SCRATCH, 0)), *told, wait(0))
    back = (wait(0), *between, put((SCRATCH, 0), 0, (OUT, 0)), NOP, signal(0))
    return plan_of([there], [back])


def test_depth_grows_from_put_to_put() -> None:
    """What is put after a wait is one deeper than what the signal told of."""
    found = interpret_plan(relay(NOP, signal(0)), numbered_inputs(Chunks(2, 1)))
    assert found.loads == {(1, 0, 1): 1, (2, 1, 0): 1}
    assert found.steps == 2
    nothing = "the end of rank {0} reads output chunk {1} of rank {0}, to which nothing has been"
    assert [each.removesuffix(" written") for each in found.violations] == [
        nothing.format(0, 1),
        nothing.format(1, 0),
        nothing.format(1, 1),
    ]


def test_a_relaxed_signal_adds_no_depth_and_no_order() -> None:
    """It only lets the wait pass."""
    found = interpret_plan(relay(NOP, signal(0, relaxed=True)), numbered_inputs(Chunks(2, 1)))
    assert found.loads == {(1, 0, 1): 1, (1, 1, 0): 1}
    assert found.violations[0] == race(
        "rank 1, thread block 0, step 2",
        "reads scratch chunk 0 of rank 1",
        "rank 0, thread block 0, step 0",
    )


def test_what_a_wait_was_told_is_known_after_a_nop() -> None:
    """The threads of a block do not know what one of them has waited for."""
    found = interpret_plan(relay(NOP, signal(0), between=()), numbered_inputs(Chunks(2, 1)))
    assert found.violations[0].startswith("race: rank 1, thread block 0, step 1 reads scratch")


FILL, USE = put((IN, 0), 0, (SCRATCH, 0)), put((SCRATCH, 0), 0, (OUT, 0))


def test_a_race_names_the_blocks_that_race() -> None:
    """Also where there are more than two, on several ranks."""
    found = interpret_plan(
        plan_of([(NOP,), (FILL,), (USE,)], [(NOP,)]), numbered_inputs(Chunks(2, 1))
    )
    assert found.violations[0] == race(
        "rank 0, thread block 2, step 0",
        "reads scratch chunk 0 of rank 0",
        "rank 0, thread block 1, step 0",
    )


@pytest.mark.parametrize("parties", [1, 2])
def test_a_barrier_orders_its_blocks(parties: int) -> None:
    """What one block did before it, the other may use after it; alone it orders nothing."""
    blocks = [(FILL, barrier(parties)), (barrier(parties), USE)]
    found = interpret_plan(plan_of(blocks, []), numbered_inputs(Chunks(2, 1))).violations
    races = [each for each in found if each.startswith("race")]
    where = ("rank 0, thread block 1, step 1", "reads scratch chunk 0 of rank 0")
    assert races == ([] if parties == 2 else [race(*where, "rank 0, thread block 0, step 0")])


def test_a_barrier_is_used_again_and_again() -> None:
    """The second meeting is another one, and a block that comes alone to it is stuck."""
    blocks = [(barrier(2), barrier(2), barrier(2)), (barrier(2), barrier(2))]
    found = interpret_plan(plan_of(blocks, []), numbered_inputs(Chunks(2, 1))).violations
    assert found == (
        "deadlock: rank 0, thread block 0, step 2 (barrier) waits for 2 thread blocks at barrier "
        "0, which never comes",
    )
    apart = [(barrier(2, 0), FILL), (barrier(2, 1), FILL)]
    stuck = interpret_plan(plan_of(apart, []), numbered_inputs(Chunks(2, 1))).violations
    assert [each.partition(" waits for ")[2] for each in stuck] == [
        "2 thread blocks at barrier 0, which never comes",
        "2 thread blocks at barrier 1, which never comes",
    ]


def test_depth_is_shared_at_a_barrier() -> None:
    """A block that has waited passes its depth on to the others."""
    one = [(put((IN, 1), 1, (OUT, 0)), NOP, signal(0))]
    two = [(wait(0), barrier(2)), (barrier(2), put((IN, 0), 0, (OUT, 1)))]
    assert interpret_plan(plan_of(one, two), numbered_inputs(Chunks(2, 1))).loads == {
        (1, 0, 1): 1,
        (2, 1, 0): 1,
    }


def test_channels_are_joined_in_their_order() -> None:
    """The second channel of one rank leads to the second of the other."""
    one, two = [(signal(1),)], [(wait(1),), (wait(0),)]
    found = interpret_plan(plan_of(one, two, (2, 2)), numbered_inputs(Chunks(2, 1))).violations
    assert found == (
        "deadlock: rank 1, thread block 1, step 0 (wait) waits for a signal from rank 0 on "
        "channel 0, which never comes",
    )


def test_a_wait_for_several_takes_all_or_none() -> None:
    """A signal that came first is still there for the time when the other comes."""
    one = [(signal(0), wait(0), signal(1))]
    two = [(wait(0, 1),), (signal(0),)]
    plan = plan_of(one, two, (2, 2))
    assert not any("deadlock" in each for each in judged(plan).problems())
    short = plan_of([(signal(0),)], two[:1], (2, 2))
    (found,) = interpret_plan(short, numbered_inputs(Chunks(2, 1))).violations
    assert found.startswith("deadlock: rank 1, thread block 0, step 0 (wait) waits for a signal")
    assert "on channel 1" in found


def test_signals_without_a_partner_or_a_wait_are_told() -> None:
    """Each by its channel."""
    lonely = interpret_plan(plan_of([(NOP, signal(0))], [], (1, 0)), numbered_inputs(Chunks(2, 1)))
    assert "rank 0, thread block 0, step 1 signals on channel 0, which has no partner" in (
        lonely.violations
    )
    beside = interpret_plan(
        plan_of([(signal(1, 0),)], [(wait(0),)], (2, 1)), numbered_inputs(Chunks(2, 1))
    )
    lost = "rank 0, thread block 0, step 0 signals on channel 1, which has no partner"
    assert lost in beside.violations
    assert not any("deadlock" in each for each in beside.violations)
    extra = interpret_plan(plan_of([(signal(0), signal(0))], []), numbered_inputs(Chunks(2, 1)))
    assert "rank 1 never waits for 2 signals on its channel 0; every signal needs a wait" in (
        extra.violations
    )


def test_only_some_are_named() -> None:
    """Of many that are stuck or have no partner."""
    many = MAX_NAMED + 3
    stuck = interpret_plan(plan_of([(wait(0),)] * many, []), numbered_inputs(Chunks(2, 1)))
    assert stuck.violations[MAX_NAMED:] == ("deadlock: 3 more thread blocks are blocked",)
    lonely = plan_of([(signal(0), wait(0))] * many, [], (1, 0))
    found = interpret_plan(lonely, numbered_inputs(Chunks(2, 1))).violations
    assert sum("no partner" in each for each in found) == MAX_NAMED


def test_threads_are_counted_before_anything_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of plans and of programs: as many as allowed, and one more."""
    send = Instruction(Op.SEND, source=Place(IN, 0))
    code = RankProgram(2, 2, 0, (Thread(0, None, None, ()), Thread(0, 1, None, (send,))))
    idle = RankProgram(2, 2, 0, (Thread(0, None, None, ()),))
    for limit in (3, 2):
        monkeypatch.setattr(shadow, "MAX_THREADS", limit)
        if limit == 3:
            check_all_to_all(Program("p", Chunks(2, 1), (code, idle)))
            judged(plan_of([(NOP,), (NOP,)], [(NOP,)]))
            continue
        with pytest.raises(InputError, match="3 thread blocks in all ranks"):
            check_all_to_all(Program("p", Chunks(2, 1), (code, idle)))
        with pytest.raises(InputError, match="3 thread blocks in all ranks"):
            judged(plan_of([(NOP,), (NOP,)], [(NOP,)]))


def test_a_signal_on_several_channels_reaches_those_with_a_partner() -> None:
    """One without a partner is told, and the others are heard all the same."""
    plan = plan_of([(signal(1, 0),)], [(wait(0),)], (2, 1))
    found = interpret_plan(plan, numbered_inputs(Chunks(2, 1))).violations
    assert [each for each in found if "no partner" in each]
    assert not [each for each in found if "deadlock" in each]
