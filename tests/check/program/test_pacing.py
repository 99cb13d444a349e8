"""The time of a program in steps."""

from dataclasses import replace

import pytest

from alltoall.check.program.timing import Levels, paced_time
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import Buffer, Instruction, Op, Place, Program, RankProgram, Step, Thread
from alltoall.ir.topology import Topology
from alltoall.lowering.programs.compile import program_of
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule


def time_of(topology: Topology, chunks: int, channels: int) -> float:
    """Lower a simple schedule on a topology without switches and time it."""
    program = program_of(hop_schedule(topology, chunks), channels)
    ends = list(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    capacity = dict(zip(ends, topology.capacity.tolist(), strict=True))
    return paced_time(program, {hop: [hop] for hop in ends}, capacity)


@pytest.mark.parametrize("spec", ["ring:7", "hypercube:3", "torus:3x3x3", "genkautz:n=16,d=4"])
@pytest.mark.parametrize("channels", [1, 2])
def test_the_time_is_between_the_busiest_link_and_the_schedule(spec: str, channels: int) -> None:
    """No faster than the busiest link, and no slower than the steps that the program came from."""
    topology = build(spec)
    schedule = hop_schedule(topology, 2)
    time = time_of(topology, 2, channels)
    assert time >= schedule.loads().sum(axis=0).max() - 1e-9
    assert time <= schedule.time + 1e-9


def test_sends_have_room_between_first_and_last_step() -> None:
    """On a ring of 4 what is sent directly may go in either step, forwarded chunks may not."""
    levels = Levels(program_of(hop_schedule(build("ring:4"))))
    earliest = levels.earliest()
    latest = levels.latest(max(earliest.values()))
    assert set(earliest.values()) == {1, 2}
    assert all(earliest[node] <= latest[node] for node in earliest)
    assert any(earliest[node] < latest[node] for node in earliest)
    assert any(latest[node] == 1 for node in earliest)


@pytest.mark.parametrize(
    ("spec", "bandwidth", "chunks", "time"),
    [("ring:6", 1.5, 1, 25 / 3), ("mesh:3x3", 0.7, 2, 425 / 7), ("mesh:3x3", 1.5, 2, 85 / 3)],
)
def test_of_what_is_due_together_the_busier_path_goes_first(
    spec: str, bandwidth: float, chunks: int, time: float
) -> None:
    """Behind hosts many FIFOs share a link; the times as they are, to notice if they change."""
    topology = with_host_bandwidth(build(spec), bandwidth)
    program = program_of(hop_schedule(topology, chunks))
    nodes, ranks = len(topology.terminals), range(len(topology.terminals))
    ends = zip(topology.tail.tolist(), topology.head.tolist(), strict=True)
    capacity = dict(zip(ends, topology.capacity.tolist(), strict=True))
    into, out = nodes, 2 * nodes
    if (0, out) not in capacity:
        into, out = out, into
    hops = {
        (u, v): [(u, out + u), (out + u, into + v), (into + v, v)]
        for u in ranks
        for v in ranks
        if (out + u, into + v) in capacity
    }
    assert paced_time(program, hops, capacity) == pytest.approx(time)


def relay(direct: int = 1) -> Program:
    """Return three ranks in a row: 0 sends two chunks to 1, which sends its own and one of them on.

    Rank 1 sends `direct` chunks of its own, and then the second chunk that it has received.
    """
    own = (
        Instruction(Op.SEND, source=Place(Buffer.INPUT, 1)),
        Instruction(Op.SEND, source=Place(Buffer.INPUT, 2)),
    )
    taken = (
        Instruction(Op.RECEIVE, target=Place(Buffer.OUTPUT, 0)),
        Instruction(Op.RECEIVE, target=Place(Buffer.SCRATCH, 0)),
    )
    onward = (
        Instruction(Op.SEND, direct, source=Place(Buffer.INPUT, 0)),
        Instruction(Op.SEND, source=Place(Buffer.SCRATCH, 0), after=(Step(0, 1),)),
    )
    last = Instruction(Op.RECEIVE, direct + 1, target=Place(Buffer.OUTPUT, 0))
    ranks = (
        RankProgram(3, 3, 0, (Thread(0, 1, None, own),)),
        RankProgram(3, 3, 1, (Thread(0, None, 0, taken), Thread(0, 2, None, onward))),
        RankProgram(3, 3, 0, (Thread(0, None, 1, (last,)),)),
    )
    return Program("relay", Chunks(len(ranks), 1), ranks)


def test_what_follows_a_receive_follows_all_that_it_took() -> None:
    """A receive of two chunks from two sends ends with the later one; only sends are sends."""
    program = relay()
    (last,) = program.ranks[2].threads[0].instructions
    echo = Instruction(Op.SEND, source=Place(Buffer.OUTPUT, 0))
    both = RankProgram(3, 3, 0, (Thread(0, 0, 1, (last, echo)),))
    end = RankProgram(
        3,
        3,
        0,
        (
            *program.ranks[0].threads,
            Thread(0, None, 2, (Instruction(Op.RECEIVE, target=Place(Buffer.OUTPUT, 0)),)),
        ),
    )
    levels = Levels(Program("echo", Chunks(3, 1), (end, program.ranks[1], both)))
    assert levels.earliest()[2, 0, 1] == 3
    assert levels.latest(3)[DIRECT] == levels.latest(3)[RELAYED] == 2
    assert {fifo: len(queue) for fifo, queue in levels.sends.items()} == {
        (0, 1, 0): 2,
        (1, 2, 0): 2,
        (2, 0, 0): 1,
    }


FIRST, SECOND, DIRECT, RELAYED = (0, 0, 0), (0, 0, 1), (1, 1, 0), (1, 1, 1)


def test_first_and_last_steps_follow_the_chain() -> None:
    """What is relayed comes a step after it was sent; what is before it comes no later."""
    levels = Levels(relay())
    assert levels.earliest() == {FIRST: 1, SECOND: 1, DIRECT: 1, RELAYED: 2}
    assert levels.latest(2) == {FIRST: 1, SECOND: 1, DIRECT: 2, RELAYED: 2}
    assert levels.latest(3) == {FIRST: 2, SECOND: 2, DIRECT: 3, RELAYED: 3}


def test_what_is_fixed_moves_the_rest() -> None:
    """A fixed send is where it is, those after it not before it, and others not before `least`."""
    levels = Levels(relay())
    assert levels.earliest({FIRST: 2}) == {FIRST: 2, SECOND: 2, DIRECT: 1, RELAYED: 3}
    assert levels.earliest({SECOND: 1, FIRST: 1}, least=3) == {
        FIRST: 1,
        SECOND: 1,
        DIRECT: 3,
        RELAYED: 3,
    }


@pytest.mark.parametrize(
    ("near", "far", "direct", "time"),
    [
        (1.0, 1.0, 1, 3.0),  # two chunks over the first link, meanwhile one over the second; one
        (2.0, 1.0, 1, 2.0),
        (1.0, 0.5, 1, 4.0),  # the direct chunk takes as long as the first step
        (1.0, 0.4, 1, 7.0),  # or longer, and has to wait for the second
        (1.0, 1.0, 2, 3.0),
        (1.0, 0.5, 2, 6.0),  # a send of two chunks goes in two steps
    ],
)
def test_chunks_go_ahead_as_far_as_the_step_is_long(
    near: float, far: float, direct: int, time: float
) -> None:
    """By hand: the step is as long as what must go in it, and others go along if they fit."""
    hops = {(0, 1): [(0, 1)], (1, 2): [(1, 2)]}
    found = paced_time(relay(direct), hops, {(0, 1): near, (1, 2): far})
    assert found == pytest.approx(time)


def test_what_is_due_first_goes_ahead_first() -> None:
    """Where two FIFOs share a link, the one whose chunks are due earlier has the room."""
    hops = {(0, 1): [(0, 9), (9, 1)], (1, 2): [(1, 9), (9, 2)]}
    wide = dict.fromkeys([(0, 9), (9, 1), (1, 9), (9, 2)], 1.0)
    assert paced_time(relay(), hops, wide) == pytest.approx(3.0)
    shared = {(0, 1): [(0, 9)], (1, 2): [(0, 9)]}
    assert paced_time(relay(), shared, {(0, 9): 1.0}) == pytest.approx(4.0)


def test_the_unit_of_capacity_does_not_matter() -> None:
    """Links of 25 Gbit/s pace like links of 1."""
    topology = build("genkautz:n=16,d=4")
    fast = replace(topology, capacity=topology.capacity * 2.5e10)
    assert time_of(fast, 2, 1) * 2.5e10 == pytest.approx(time_of(topology, 2, 1))
