"""The reference interpreter: what it computes, and that it finds what is broken."""

from dataclasses import replace

import numpy as np
import pytest

from alltoall.check.program.alltoall import check_all_to_all, first_wrong, numbered_inputs
from alltoall.check.program.interpret import interpret
from alltoall.errors import InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import (
    Buffer,
    Instruction,
    Op,
    Place,
    Program,
    RankProgram,
    Step,
    Thread,
)
from alltoall.lowering.programs.compile import program_of
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule

RING = program_of(hop_schedule(build("ring:4")))


def rank_of(*threads: Thread, scratch: int = 0) -> RankProgram:
    """Build one rank of a program of two."""
    return RankProgram(2, 2, scratch, threads)


def at(buffer: Buffer, offset: int) -> Place:
    """Name a place briefly."""
    return Place(buffer, offset)


def send(offset: int, count: int = 1, after: tuple[Step, ...] = ()) -> Instruction:
    """Send from the input."""
    return Instruction(Op.SEND, count, source=at(Buffer.INPUT, offset), after=after)


def receive(offset: int, count: int = 1, after: tuple[Step, ...] = ()) -> Instruction:
    """Receive into the output."""
    return Instruction(Op.RECEIVE, count, target=at(Buffer.OUTPUT, offset), after=after)


def copy(offset: int) -> Instruction:
    """Copy from input to output."""
    return Instruction(Op.COPY, source=at(Buffer.INPUT, offset), target=at(Buffer.OUTPUT, offset))


def exchange(rank: int, *instructions: Instruction) -> RankProgram:
    """Build a rank that does all in one thread, after copying its own shard."""
    return rank_of(Thread(0, 1 - rank, 1 - rank, (copy(rank), *instructions)))


def test_bytes_end_where_they_belong() -> None:
    """Any bytes, of any width, arrive unchanged."""
    given = np.random.default_rng(1).integers(0, 256, (4, 4, 37), dtype=np.uint8)
    outputs = interpret(RING, list(given)).outputs
    for rank, output in enumerate(outputs):
        assert np.array_equal(output, given[:, rank])


def test_report_of_a_correct_program() -> None:
    """Sends per pair and the longest chain are counted."""
    report = check_all_to_all(RING)
    assert report.correct
    assert report.problems() == []
    assert report.steps == 2
    assert report.sends.sum() == 4 * (1 + 1 + 2)
    assert np.all(report.sends.diagonal() == 0)


@pytest.mark.parametrize("slots", [1, 2, 100])
def test_lowered_programs_need_one_slot(slots: int) -> None:
    """However few chunks a FIFO holds, our programs do not deadlock."""
    program = program_of(hop_schedule(build("torus:3x3"), 3))
    assert check_all_to_all(program, fifo_slots=slots).correct


def test_full_fifos_deadlock() -> None:
    """Two ranks that both send before they receive need a FIFO that holds what they send."""
    ranks = tuple(
        RankProgram(
            6,
            6,
            0,
            (
                Thread(
                    0,
                    1 - rank,
                    1 - rank,
                    (
                        Instruction(Op.SEND, 3, source=at(Buffer.INPUT, 3 - 3 * rank)),
                        Instruction(Op.RECEIVE, 3, target=at(Buffer.OUTPUT, 3 - 3 * rank)),
                        Instruction(
                            Op.COPY,
                            3,
                            source=at(Buffer.INPUT, 3 * rank),
                            target=at(Buffer.OUTPUT, 3 * rank),
                        ),
                    ),
                ),
            ),
        )
        for rank in range(2)
    )
    program = Program("head to head", Chunks(len(ranks), 3), ranks)
    assert check_all_to_all(program, fifo_slots=3).correct
    report = check_all_to_all(program, fifo_slots=2)
    assert not report.correct
    assert report.violations[0].startswith(
        "deadlock: rank 0, thread block 0, step 0 (send of 3) waits for room to send to rank 1"
    )


def test_counts_of_sends_and_receives_may_differ() -> None:
    """A FIFO carries chunks; one send of two may be received one by one."""
    ranks = (
        RankProgram(
            4,
            4,
            0,
            (
                Thread(0, 1, None, (Instruction(Op.SEND, 2, source=at(Buffer.INPUT, 2)),)),
                Thread(0, None, 1, (receive(2), receive(3))),
                Thread(0, None, None, (copy(0), copy(1))),
            ),
        ),
        RankProgram(
            4,
            4,
            0,
            (
                Thread(0, 0, None, (Instruction(Op.SEND, 2, source=at(Buffer.INPUT, 0)),)),
                Thread(0, None, 0, (receive(0), receive(1))),
                Thread(0, None, None, (copy(2), copy(3))),
            ),
        ),
    )
    assert check_all_to_all(Program("split", Chunks(len(ranks), 2), ranks)).correct


def test_forwarding_pops_writes_and_pushes() -> None:
    """What is forwarded is stored and sent on."""
    middle = Instruction(Op.FORWARD, target=at(Buffer.SCRATCH, 0))
    first = rank_of(
        Thread(
            0,
            1,
            1,
            (copy(0), send(1), receive(1), Instruction(Op.RECEIVE, target=at(Buffer.SCRATCH, 0))),
        ),
        scratch=1,
    )
    second = rank_of(
        Thread(0, 0, 0, (copy(1), send(0), middle)),
        Thread(
            1,
            None,
            None,
            (
                Instruction(
                    Op.COPY,
                    source=at(Buffer.SCRATCH, 0),
                    target=at(Buffer.OUTPUT, 0),
                    after=(Step(0, 2),),
                ),
            ),
        ),
        scratch=1,
    )
    report = check_all_to_all(Program("echo", Chunks(2, 1), (first, second)))
    assert report.correct
    assert report.steps == 2


def mutated(program: Program, rank: int, thread: int, number: int, new: Instruction) -> Program:
    """Replace one instruction."""
    code = program.ranks[rank]
    line = code.threads[thread]
    instructions = (*line.instructions[:number], new, *line.instructions[number + 1 :])
    threads = (
        *code.threads[:thread],
        replace(line, instructions=instructions),
        *code.threads[thread + 1 :],
    )
    ranks = list(program.ranks)
    ranks[rank] = replace(code, threads=threads)
    return replace(program, ranks=tuple(ranks))


def waiting(program: Program) -> list[tuple[int, int, int]]:
    """Return the rank, thread and number of all instructions that wait for others."""
    return [
        (rank, thread, number)
        for rank, code in enumerate(program.ranks)
        for thread, line in enumerate(code.threads)
        for number, each in enumerate(line.instructions)
        if each.after
    ]


@pytest.mark.parametrize("spec", ["ring:8", "hypercube:3", "genkautz:n=12,d=3"])
def test_every_dropped_dependency_is_a_race(spec: str) -> None:
    """Our programs have no wait too many: without any one of them there is a race."""
    program = program_of(hop_schedule(build(spec)))
    for rank, thread, number in waiting(program)[::5]:
        each = program.ranks[rank].threads[thread].instructions[number]
        for wait in each.after:
            rest = tuple(other for other in each.after if other != wait)
            weaker = mutated(program, rank, thread, number, replace(each, after=rest))
            problems = check_all_to_all(weaker).problems()
            assert any("race" in each or "nothing has been written" in each for each in problems)


def test_swapped_sends_end_in_the_wrong_place() -> None:
    """Two sends in the wrong order give a wrong chunk, named with what was expected."""
    line = RING.ranks[0].threads[1].instructions
    assert [each.op for each in line[:2]] == [Op.SEND, Op.SEND]
    swapped = mutated(mutated(RING, 0, 1, 0, line[1]), 0, 1, 1, line[0])
    report = check_all_to_all(swapped)
    assert not report.correct
    assert report.violations == ()
    assert report.wrong is not None
    assert "expected chunk 0 of the shard from rank 0 to rank" in report.wrong


def test_a_wrong_offset_is_found() -> None:
    """A receive into the wrong place leaves nothing where the chunk belongs."""
    ranks = (exchange(0, send(1), receive(1)), exchange(1, send(0), receive(1)))
    report = check_all_to_all(Program("wrong", Chunks(len(ranks), 1), ranks))
    assert report.wrong == (
        "rank 1, output chunk 0: found nothing; expected chunk 0 of the shard from rank 0 to rank 1"
    )


def test_waiting_for_each_other_is_a_deadlock() -> None:
    """Receiving first on both sides blocks, and both blocked steps are named."""
    ranks = (exchange(0, receive(1), send(1)), exchange(1, receive(0), send(0)))
    report = check_all_to_all(Program("shy", Chunks(len(ranks), 1), ranks))
    assert [each.split(" (")[0] for each in report.violations] == [
        "deadlock: rank 0, thread block 0, step 1",
        "deadlock: rank 1, thread block 0, step 1",
    ]


def test_circular_waits_are_a_deadlock() -> None:
    """Two threads of a rank that wait for each other block."""
    threads = (
        Thread(0, 1, None, (send(1, after=(Step(1, 0),)),)),
        Thread(0, None, 1, (receive(1, after=(Step(0, 0),)),)),
        Thread(0, None, None, (copy(0),)),
    )
    ranks = (rank_of(*threads), exchange(1, send(0), receive(0)))
    report = check_all_to_all(Program("circle", Chunks(len(ranks), 1), ranks))
    assert any("waits for step 0 of thread block 1" in each for each in report.violations)


def test_what_is_never_received_is_found() -> None:
    """A chunk that stays in a FIFO is a violation even if the outputs are right."""
    ranks = (exchange(0, send(1), receive(1), send(1)), exchange(1, send(0), receive(0)))
    report = check_all_to_all(Program("extra", Chunks(len(ranks), 1), ranks))
    assert report.wrong is None
    assert "sends 1 chunks to rank 1 on channel 0 that are never received" in report.violations[0]


def test_order_through_another_rank_is_order() -> None:
    """A buffer used again after an answer came back from another rank is no race."""
    slot = at(Buffer.SCRATCH, 0)
    fill = Instruction(Op.COPY, source=at(Buffer.INPUT, 1), target=slot)
    ranks = (
        rank_of(
            Thread(0, 1, None, (fill, Instruction(Op.SEND, source=slot))),
            Thread(
                0,
                None,
                1,
                (
                    Instruction(Op.RECEIVE, target=slot),
                    Instruction(Op.COPY, source=slot, target=at(Buffer.OUTPUT, 1)),
                    copy(0),
                ),
            ),
            scratch=1,
        ),
        exchange(1, receive(0), send(0)),
    )
    assert check_all_to_all(Program("ping", Chunks(len(ranks), 1), ranks)).correct
    hasty = (ranks[0], exchange(1, send(0), receive(0)))
    assert any(
        "race" in each
        for each in check_all_to_all(Program("p", Chunks(len(hasty), 1), hasty)).violations
    )


def test_two_unordered_readers_and_a_writer() -> None:
    """A writer must be ordered after every reader, not only the last one."""
    slot = at(Buffer.SCRATCH, 0)
    fill = Instruction(Op.COPY, source=at(Buffer.INPUT, 1), target=slot)
    read = Instruction(Op.COPY, source=slot, target=at(Buffer.OUTPUT, 0), after=(Step(0, 0),))
    also = Instruction(Op.COPY, source=slot, target=at(Buffer.OUTPUT, 1), after=(Step(0, 0),))
    again = replace(fill, after=(Step(2, 0),))
    threads = [Thread(0, None, None, (each,)) for each in (fill, read, also, again)]
    program = Program("readers", Chunks(2, 1), (rank_of(*threads, scratch=1), rank_of()))
    races = [each for each in check_all_to_all(program).violations if "race" in each]
    assert len(races) == 1
    assert "rank 0, thread block 3, step 0 writes scratch chunk 0" in races[0]
    assert "thread block 1, step 0 touches" in races[0]


def test_inputs_must_fit() -> None:
    """Wrong shapes and slots are refused."""
    with pytest.raises(InputError, match=r"inputs of \[4, 4, 4\] chunks; expected \[4, 4, 4, 4\]"):
        interpret(RING, list(np.zeros((3, 4, 8), dtype=np.uint8)))
    with pytest.raises(InputError, match="0 FIFO slots"):
        interpret(RING, numbered_inputs(Chunks(4, 1)), fifo_slots=0)


def test_first_wrong_of_right_outputs_is_none() -> None:
    """The transpose of the numbered inputs is an all-to-all."""
    inputs = np.stack(numbered_inputs(Chunks(3, 2))).reshape(3, 3, 2, 8)
    outputs = tuple(inputs[:, rank].reshape(6, 8) for rank in range(3))
    assert first_wrong(outputs, Chunks(3, 2)) is None


def test_a_wrong_chunk_is_told_by_its_shard() -> None:
    """Rank, place, what was found and what was expected, of any rank and chunk."""
    inputs = np.stack(numbered_inputs(Chunks(3, 2))).reshape(3, 3, 2, 8)
    outputs = [np.array(inputs[:, rank].reshape(6, 8)) for rank in range(3)]
    outputs[1][3] = inputs[2, 0, 1]
    wrong = first_wrong(outputs, Chunks(3, 2))
    assert str(wrong) == (
        "rank 1, output chunk 3: found chunk 1 of the shard from rank 2 to rank 0; "
        "expected chunk 1 of the shard from rank 1 to rank 1"
    )


def test_blocked_threads_are_counted_beyond_some() -> None:
    """Twenty are named and the others counted."""
    threads = [Thread(channel, None, 1, (receive(0),)) for channel in range(23)]
    report = check_all_to_all(Program("starved", Chunks(2, 1), (rank_of(*threads), rank_of())))
    stuck = [each for each in report.violations if each.startswith("deadlock")]
    assert len(stuck) == 21
    assert stuck[0] == (
        "deadlock: rank 0, thread block 0, step 0 (receive of 1) waits for a chunk from rank 1, "
        "which never comes"
    )
    assert stuck[-1] == "deadlock: 3 more thread blocks are blocked"


@pytest.mark.parametrize("slots", [None, 1, 3])
def test_chunks_are_counted_by_depth(slots: int | None) -> None:
    """A send after a receive, waited for from another thread, is one deeper than what came."""
    onward = Instruction(Op.SEND, 2, source=at(Buffer.OUTPUT, 0), after=(Step(0, 0),))
    one = rank_of(
        Thread(0, 1, None, (send(0, count=2),)), Thread(1, None, 1, (receive(0, count=2),))
    )
    two = rank_of(Thread(0, None, 0, (receive(0, count=2),)), Thread(1, 0, None, (onward,)))
    found = interpret(
        Program("there and back", Chunks(2, 1), (one, two)), numbered_inputs(Chunks(2, 1)), slots
    )
    assert found.violations == ()
    assert found.loads == {(1, 0, 1): 2, (2, 1, 0): 2}
    assert found.steps == 2
    assert found.sends(2).tolist() == [[0, 2], [2, 0]]


@pytest.mark.parametrize(
    ("thread", "message"),
    [
        (Thread(0, 1, None, (receive(0),)), "no rank to receive from"),
        (Thread(0, None, 1, (send(0),)), "no rank to send to"),
        (Thread(0, 0, None, ()), "its send_to peer is rank 0"),
        (Thread(0, 1, None, (send(1, count=2),)), r"input chunks 1..2, outside of the buffer of 2"),
        (Thread(0, 1, None, (send(1, count=0),)), "send of 0 chunks"),
        (Thread(0, 1, None, (send(1, after=(Step(3, 0),)),)), "thread block 3, which does not"),
        (Thread(0, 1, None, (send(1, after=(Step(0, 9),)),)), "step 9 of thread block 0"),
        (Thread(0, 1, None, (Instruction(Op.SEND),)), "send without a source"),
        (Thread(-1, None, None, ()), "channel -1 is negative"),
    ],
)
def test_programs_are_checked_when_made(thread: Thread, message: str) -> None:
    """What cannot be a program is refused with the rank, thread block and step."""
    with pytest.raises(InputError, match=f"rank 0, thread block 0.*{message}"):
        Program("bad", Chunks(2, 1), (rank_of(thread), rank_of()))
