from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from alltoall.errors import InputError, UsageError
from alltoall.ir.chunks import PerShard
from alltoall.ir.messages import RankMessages
from alltoall.ir.program import Buffer
from alltoall.ir.schedule import Schedule
from alltoall.lowering.programs.messages import REST, messages_of, rank_messages
from alltoall.runtime.spans import Span, shard_bytes_of, spans_of
from alltoall.topologies.operators import with_host_bandwidth
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule
from saved import with_sends

SPECS = ("hypercube:3", "twisted-hypercube:3", "bipartite:4x4", "torus:3x3", "ring:11")


def plans_of(schedule: Schedule) -> list[RankMessages]:
    """Return the messages of all ranks."""
    return list(messages_of(schedule).ranks)


class Progress:
    """What each message of a rank still waits for; messages of a peer start one after another."""

    def __init__(self, plan: RankMessages) -> None:
        self.plan, self.unfinished = plan, plan.messages
        self.waiting = list(plan.waiting)
        for after in plan.next_alike:
            if after is not None:
                self.waiting[after] += 1

    def ready(self) -> list[int]:
        """Return the messages that start first."""
        return self.started([each for each, count in enumerate(self.waiting) if count == 0])

    def finish(self, message: int) -> list[int]:
        """Return the messages that may start once this one has ended."""
        self.unfinished -= 1
        return self.started([each for each in self.plan.followers[message] if self.meet(each)])

    def started(self, messages: list[int]) -> list[int]:
        """Return messages that start now, with those that waited for their turn only."""
        for message in messages:
            after = self.plan.next_alike[message]
            if after is not None and self.meet(after):
                messages.append(after)
        return messages

    def meet(self, message: int) -> bool:
        """Count down what a message waits for; return whether it may start."""
        self.waiting[message] -= 1
        return self.waiting[message] == 0


class Fabric:
    """Ranks whose messages take any time: data moves and requests end in random order.

    A message is copied only when both its ends have started, as with a rendezvous protocol.
    """

    def __init__(self, plans: list[RankMessages], shard: int, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.plans, self.shard, ranks = plans, shard, len(plans)
        self.spans = [spans_of(plan, PerShard(ranks, shard)) for plan in plans]
        self.send = self.random.integers(0, 256, (ranks, ranks * shard), dtype=np.uint8)
        self.recv = np.zeros_like(self.send)
        self.scratch = [np.zeros(span.scratch_bytes, np.uint8) for span in self.spans]
        self.progress = [Progress(plan) for plan in plans]
        self.started: dict[tuple[int, int, int], int] = {}
        self.moving: list[tuple[tuple[int, int], tuple[int, int]]] = []

    def run(self) -> None:
        """Run until nothing can go on."""
        for rank, progress in enumerate(self.progress):
            self.start(rank, progress.ready())
        while self.moving:
            ends = self.moving.pop(int(self.random.integers(len(self.moving))))
            self.copy(*ends)
            for rank, message in ends:
                self.start(rank, self.progress[rank].finish(message))

    def start(self, rank: int, messages: list[int]) -> None:
        """Start messages; those whose other end waits already begin to move."""
        plan = self.plans[rank]
        for message in messages:
            pair = (rank, int(plan.peer[message]))
            key = (int(plan.step[message]), *(pair if plan.sends[message] else pair[::-1]))
            if key in self.started:
                mine, other = (rank, message), (pair[1], self.started.pop(key))
                self.moving.append((mine, other) if plan.sends[message] else (other, mine))
            else:
                self.started[key] = message

    def copy(self, sender: tuple[int, int], receiver: tuple[int, int]) -> None:
        """Move a message run by run; both ends cut it alike."""
        for source, target in zip(*(self.runs(*end) for end in (sender, receiver)), strict=True):
            target[:] = source

    def runs(self, rank: int, message: int) -> list[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
        """Return the memory of a message."""
        memory = {
            Buffer.INPUT: self.send[rank],
            Buffer.OUTPUT: self.recv[rank],
            Buffer.SCRATCH: self.scratch[rank],
        }
        return [
            memory[b][begin : begin + count] for b, begin, count in self.spans[rank].of(message)
        ]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("chunks", "shard"), [(1, 4), (2, 7), (3, 2), (3, 9)])
def test_any_order_of_messages_is_an_all_to_all(spec: str, chunks: int, shard: int) -> None:
    """Whatever arrives when, waits alone make every byte arrive, and nothing is left over."""
    plans = plans_of(hop_schedule(build(spec), chunks))
    for seed in range(5):
        fabric = Fabric(plans, shard, seed)
        fabric.run()
        assert all(progress.unfinished == 0 for progress in fabric.progress)
        shape = (len(plans), len(plans), shard)
        expected = fabric.send.reshape(shape).swapaxes(0, 1).copy()
        found = fabric.recv.reshape(shape)
        own = np.arange(len(plans))
        found[own, own] = expected[own, own]
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("spec", SPECS)
def test_messages_go_over_links_only(spec: str) -> None:
    """Ranks talk to neighbours, in one message per step and direction."""
    topology = build(spec)
    links = set(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    for plan in plans_of(hop_schedule(topology, 3)):
        ends = list(zip(plan.step, plan.sends, plan.peer, strict=True))
        assert len(ends) == len(set(ends))
        for _, sends, peer in ends:
            assert ((plan.rank, peer) if sends else (peer, plan.rank)) in links


def test_waits_are_for_earlier_steps() -> None:
    """What rules out a deadlock: nothing waits for its own step or a later one."""
    waited = 0
    for plan in plans_of(hop_schedule(build("ring:11"), 2)):
        waiting = np.repeat(np.arange(plan.messages), np.diff(plan.waits_first))
        assert (plan.waits_first[0], plan.waits_first[-1]) == (0, len(plan.waits))
        assert np.all(plan.step[plan.waits] < plan.step[waiting])
        waited += len(plan.waits)
    assert waited > 0


def test_scratch_is_reused_only_after_it_was_read() -> None:
    """On a ring slots are used again, after a rest, so some receive waits for a send."""
    plans = plans_of(hop_schedule(build(f"ring:{4 * REST}"), 1))
    kinds = {
        (bool(plan.sends[later]), bool(plan.sends[earlier]))
        for plan in plans
        for earlier, followers in enumerate(plan.followers)
        for later in followers
    }
    assert (True, False) in kinds
    assert (False, True) in kinds


def test_switches_are_passed_within_a_message() -> None:
    """Nodes that are not terminals are no ranks."""
    topology = with_host_bandwidth(build("hypercube:3"), 2)
    schedule = hop_schedule(topology, 2)
    fabric = Fabric(plans_of(schedule), 6, 0)
    fabric.run()
    assert len(fabric.plans) == 8
    assert all(progress.unfinished == 0 for progress in fabric.progress)


def test_a_chunk_lost_in_a_switch() -> None:
    """A schedule that leaves a chunk in a switch cannot be run."""
    schedule = hop_schedule(with_host_bandwidth(build("hypercube:3"), 2), 1)
    topology = schedule.problem.topology
    tail, head = topology.tail[schedule.link], topology.head[schedule.link]
    enters = np.isin(tail, topology.terminals) & ~np.isin(head, topology.terminals)
    lost = with_sends(schedule, np.flatnonzero(enters)[:1])
    with pytest.raises(InputError, match="does not leave it"):
        rank_messages(lost, 0)


@pytest.mark.parametrize("spec", SPECS)
def test_every_message_is_in_its_step(spec: str) -> None:
    """The steps share out all messages, the last one too, receives before sends."""
    for plan in plans_of(hop_schedule(build(spec), 2)):
        assert len(plan.by_step) == plan.steps
        assert [each for messages in plan.by_step for each in messages] == list(
            range(plan.messages)
        )
        for step, messages in enumerate(plan.by_step):
            assert plan.step[messages].tolist() == [step] * len(messages)
            order = [(bool(plan.sends[each]), int(plan.peer[each])) for each in messages]
            assert order == sorted(order)


def test_plans_and_spans_cannot_be_changed() -> None:
    """What all calls share is read only."""
    plan = plans_of(hop_schedule(build("ring:4")))[0]
    with pytest.raises(ValueError, match="read-only"):
        plan.step[0] = 1
    with pytest.raises(FrozenInstanceError):
        plan.rank = 1  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        spans_of(plan, PerShard(4, 1)).scratch_bytes = 1  # type: ignore[misc]


def test_a_rank_without_messages() -> None:
    """Where nothing is sent there is nothing to wait for, and no byte to lay out."""
    schedule = hop_schedule(build("ring:4"))
    plan = rank_messages(with_sends(schedule, np.flatnonzero(schedule.source < 0)), 1)
    assert (plan.messages, plan.waits.tolist(), plan.first.tolist()) == (0, [], [0])
    assert all(len(messages) == 0 for messages in plan.by_step)
    assert spans_of(plan, PerShard(4, 5)).first.tolist() == [0]


def runs_by_hand(plan: RankMessages, message: int, shard: int) -> list[Span]:
    """Lay out a message chunk by chunk; join what is adjacent at both of its ends."""
    chunks = plan.chunks.most
    slot, sends = -(-shard // chunks), bool(plan.sends[message])
    found: list[tuple[int, ...]] = []
    for each in range(plan.first[message], plan.first[message + 1]):
        for piece in range(int(plan.count[each])):
            chunk = int(plan.chunk[each]) + piece
            begin, end = (one * shard // chunks for one in (chunk, chunk + 1))
            at = {
                Buffer.INPUT: int(plan.destination[each]) * shard + begin,
                Buffer.OUTPUT: int(plan.source[each]) * shard + begin,
            }
            places: list[int] = []
            for buffer, first in (
                (int(plan.from_buffer[each]), int(plan.from_slot[each])),
                (int(plan.to_buffer[each]), int(plan.to_slot[each])),
            ):
                places += [buffer, at.get(Buffer(buffer), (first + piece) * slot)]
            last = found[-1] if found else None
            if end == begin:
                continue
            if last and [last[0], last[1] + last[4], last[2], last[3] + last[4]] == places:
                found[-1] = (*last[:4], last[4] + end - begin)
            else:
                found.append((*places, end - begin))
    here = 0 if sends else 2
    runs = [(Buffer(run[here]), run[here + 1], run[4]) for run in found]
    return runs or [(Buffer.INPUT, 0, 0)]


@pytest.mark.parametrize("spec", SPECS)
@pytest.mark.parametrize(("chunks", "shard"), [(1, 4), (2, 7), (3, 2), (4, 12), (4, 11)])
def test_runs_are_as_long_as_both_ends_allow(spec: str, chunks: int, shard: int) -> None:
    """Bytes are where they are by hand, and what lies together travels together."""
    lengths: set[int] = set()
    for plan in plans_of(hop_schedule(build(spec), chunks)):
        spans = spans_of(plan, PerShard(plan.chunks.ranks, shard))
        assert spans.scratch_bytes == plan.scratch * -(-shard // chunks)
        for message in range(plan.messages):
            runs = spans.of(message)
            assert runs == runs_by_hand(plan, message, shard)
            lengths.update(count for _, _, count in runs)
    assert max(lengths) >= shard or spec == "ring:11"


def test_one_shard_per_rank() -> None:
    """Both buffers are as large, and have one equal shard for each rank."""
    assert shard_bytes_of(4, 96, 12, 96) == 24
    assert shard_bytes_of(4, 0, 0, 0) == 0
    for received in (95, 97):
        with pytest.raises(UsageError, match=f"has 96 bytes, the receive buffer {received}"):
            shard_bytes_of(4, 96, 12, received)
    for items in (11, 13, 1):
        with pytest.raises(UsageError, match=f"{items} elements for 4 ranks"):
            shard_bytes_of(4, 96, items, 96)
