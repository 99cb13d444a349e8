"""The time of a program in steps."""

import pytest

from a2aflow.ir.topology import Topology
from a2aflow.lower.compile import program_of
from a2aflow.runtime.levels import Levels
from a2aflow.runtime.pacing import paced_time
from a2aflow.topologies.spec import build
from schedules import hop_schedule


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
