"""Threads that send and receive: fewer of them, and still no deadlock, no race, no time lost."""

from dataclasses import replace

import numpy as np
import pytest
from lowering_cases import TOPOLOGIES, schedule_named

from alltoall.check.program.alltoall import check_all_to_all
from alltoall.check.program.timing import paced_time
from alltoall.ir.arrays import Ints
from alltoall.ir.program import FIFO_SLOTS, Op, Program
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering.options import Options
from alltoall.lowering.programs.compile import Share, program_of
from alltoall.lowering.programs.msccl_emit import check_limits, emit_msccl
from alltoall.lowering.programs.msccl_read import read_msccl
from hop_schedules import hop_schedule

FREE = Share(steps=10_000, threads=10_000)
ALL = Share(steps=10_000, threads=1, slower=True)


def _threads(program: Program) -> int:
    return max(len(code.threads) for code in program.ranks)


def _count(program: Program, op: Op) -> int:
    threads = (thread for code in program.ranks for thread in code.threads)
    return sum(each.op is op for thread in threads for each in thread.instructions)


def _time(program: Program, schedule: Schedule) -> float:
    topology = schedule.problem.topology
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    capacity = dict(zip(ends, topology.capacity.tolist(), strict=True))
    return paced_time(program, {hop: [hop] for hop in capacity}, capacity)


def _in_steps(schedule: Schedule, step: Ints) -> Schedule:
    """Return a schedule with its sends in other steps."""
    columns = {"step": step} | {
        key: getattr(schedule, key) for key in ("source", "destination", "chunk", "link")
    }
    order = np.lexsort(tuple(reversed(columns.values())))
    return replace(
        schedule,
        steps=int(step.max()) + 1,
        **{key: column[order] for key, column in columns.items()},
    )


@pytest.mark.parametrize("share", [FREE, ALL], ids=["free", "all"])
@pytest.mark.parametrize("chunks", [1, 3])
@pytest.mark.parametrize("name", [*TOPOLOGIES, "ring:5", "genkautz:n=12,d=2"])
def test_shared_threads_neither_block_nor_race(name: str, chunks: int, share: Share) -> None:
    """Whatever is paired, the interpreter sees every chunk arrive in FIFOs of two slots."""
    schedule = schedule_named(name, chunks)
    program = program_of(schedule, 1, 71, share=share)
    assert program.fifo_slots == FIFO_SLOTS
    assert check_all_to_all(program).correct
    assert _threads(program) <= _threads(program_of(schedule, 1, 71))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", ["hypercube:3", "ring:6", "genkautz:n=12,d=2"])
def test_forwards_of_chunks_that_wait(name: str, seed: int) -> None:
    """Slots are used again while chunks wait, and a forward still sends what it received."""
    plain = schedule_named(name, 2)
    late = np.random.default_rng(seed).integers(0, 3, len(plain.step))
    slow = _in_steps(plain, 3 * plain.step + late)
    for share in (FREE, ALL):
        assert check_all_to_all(program_of(slow, 2, 71, 2, share)).correct


@pytest.mark.parametrize("name", ["hypercube:3", "complete:8", "torus:3x3", "bipartite:4x4"])
def test_free_sharing_takes_no_time(name: str) -> None:
    """Where only free ends are paired, the program takes as long as with threads of their own."""
    schedule = schedule_named(name)
    alone, together = program_of(schedule), program_of(schedule, share=FREE)
    assert _time(together, schedule) == pytest.approx(_time(alone, schedule))
    assert _threads(together) < _threads(alone)


def test_all_ends_are_paired_if_need_be() -> None:
    """A rank of a ring has two links: two threads do all its work, and some of it is forwarding."""
    program = program_of(schedule_named("ring:6"), share=ALL)
    assert _threads(program) == 2
    assert _count(program, Op.FORWARD) > 0
    assert _count(program, Op.COPY) == 6


def test_forwards_leave_room_for_each_other() -> None:
    """Where everybody's FIFO is full, not everybody can push before it pops: one stays apart."""
    nodes = np.arange(3)
    around = Topology("around", 3, nodes, (nodes + 1) % 3, np.ones(3), nodes)
    plain = hop_schedule(around, FIFO_SLOTS)
    near = (plain.source + 1) % 3 == plain.destination
    program = program_of(_in_steps(plain, np.where(near, 2, plain.step)), share=ALL)
    assert check_all_to_all(program).correct
    assert _count(program, Op.FORWARD) < 3


def test_no_more_steps_than_a_thread_may_have() -> None:
    """Ends are left alone if their instructions do not fit one thread."""
    program = program_of(schedule_named("ring:6"), share=Share(8, 1, slower=True))
    assert (
        max(
            len(thread.instructions)
            for code in program.ranks
            for thread in code.threads
            if thread.send_to is not None and thread.receive_from is not None
        )
        <= 8
    )


@pytest.mark.parametrize(
    ("name", "chunks", "separate"), [("dgx2", 2, 121), ("jellyfish:n=20,d=4", 8, 65)]
)
def test_four_channels_fit_rccl(name: str, chunks: int, separate: int) -> None:
    """With a thread block for every end these have one too many, or many; shared, they fit."""
    schedule = schedule_named(name, chunks)
    parts = 1 if name == "dgx2" else 2
    assert _threads(program_of(schedule, 4, 71, parts)) >= separate
    text = emit_msccl(schedule, Options(channels=4, runtime="rccl"))
    program = read_msccl(text, "f")
    check_limits(program, "rccl")
    assert check_all_to_all(program).correct
