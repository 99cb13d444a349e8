"""Schedules of random fabrics through every target to the runtimes: verified, and run."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall.check.schedule import check_schedule
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.lowering import targets_for
from alltoall.runtime.in_process import Alltoall
from alltoall.schedules.methods import find_schedule
from alltoall.settings import ScheduleSettings
from alltoall.topologies.spec import build
from lowered_files import check_lowered
from strategies import fabrics, hosts_in_a_ring, topologies


def check_everywhere(schedule: Schedule) -> None:
    """Check a schedule, lower it to all targets, check what they say, and run it."""
    topology = schedule.problem.topology
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    for target in targets_for(Schedule):
        check_lowered(target, schedule)
    ranks = len(topology.terminals)
    send = np.random.default_rng(0).integers(0, 256, (ranks, ranks * 7), dtype=np.uint8)
    recv = np.zeros_like(send)
    Alltoall(schedule)(send, recv)
    shape = (ranks, ranks, 7)
    assert np.array_equal(recv.reshape(shape), send.reshape(shape).swapaxes(0, 1))


def scheduled(topology: Topology, chunks: int) -> Schedule:
    """Return the schedule of a number of chunks."""
    settings = ScheduleSettings(chunks=chunks)
    return find_schedule(Problem.all_to_all(topology), "tsmcf", settings).schedule


@pytest.mark.parametrize("ring", ["first", "each", "switch", "last to first"])
@pytest.mark.parametrize("fast", [4.0, 100.0])
def test_no_chunk_returns_to_its_sender(fast: float, ring: str) -> None:
    """Hosts of two behind a fast switch: it costs nothing to send there and back, nor helps."""
    check_everywhere(scheduled(hosts_in_a_ring(3, 2, fast, ring), 2))


def test_no_chunk_leaves_its_destination() -> None:
    """Where links have time to spare it costs nothing to send on what has arrived."""
    topology = build("genkautz:n=7,d=2")
    check_everywhere(
        find_schedule(Problem.all_to_all(topology), "tsmcf", ScheduleSettings()).schedule
    )


@given(topology=fabrics(), chunks=st.integers(1, 2))
@settings(max_examples=15)
def test_random_hosts_and_switches(topology: Topology, chunks: int) -> None:
    """Hosts of several behind switches, rings of hosts of all kinds."""
    check_everywhere(scheduled(topology, chunks))


@given(topology=topologies(max_nodes=6), chunks=st.integers(1, 2))
@settings(max_examples=15)
def test_random_digraphs(topology: Topology, chunks: int) -> None:
    """Any digraph, with any nodes as switches."""
    check_everywhere(scheduled(topology, chunks))
