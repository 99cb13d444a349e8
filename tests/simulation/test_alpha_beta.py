"""The alpha-beta model of schedules: closed forms, messages as chunks, and what is refused."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.errors import InputError, UsageError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.simulation.alpha_beta import messages_of_schedule


@cache
def schedule_of(spec: str, host_bandwidth: float | None = None) -> Schedule:
    """Return a schedule of a topology, whose links have no rate yet."""
    topology = replace(alltoall.topology(spec), bytes_per_second=None)
    return alltoall.schedule(alltoall.topology(topology, host_bandwidth=host_bandwidth))


CASES = [("ring:4", None), ("hypercube:3", None), ("torus:3x3", 2.0), ("dgx2", None)]


@pytest.mark.parametrize(("spec", "host"), CASES)
def test_with_barriers_a_schedule_takes_its_time_and_a_latency_per_step(
    spec: str, host: float | None
) -> None:
    """Terminals next to each other: alpha for every step, and beta for the time of the schedule."""
    schedule = schedule_of(spec, host)
    found = alltoall.simulate(schedule, link_bandwidth=1e9, bytes=10**6, sync="step")
    assert found.seconds == pytest.approx(schedule.time * 1e-3)
    later = alltoall.simulate(schedule, link_bandwidth=1e9, bytes=10**6, sync="step", latency=1e-3)
    hops = 1 if spec in ("ring:4", "hypercube:3") else {"torus:3x3": 3, "dgx2": 3}[spec]
    assert later.seconds == pytest.approx((schedule.time + hops * schedule.steps) * 1e-3)


@pytest.mark.parametrize(("spec", "host"), CASES)
def test_dataflow_is_never_slower_than_barriers(spec: str, host: float | None) -> None:
    """What has arrived need not wait."""
    asked: dict[str, Any] = {"bytes": 10**4, "latency": 1e-6, "overhead": 1e-6}
    schedule = schedule_of(spec, host)
    dataflow, step = (
        alltoall.simulate(schedule, link_bandwidth=1e9, sync=sync, **asked)
        for sync in ("dataflow", "step")
    )
    assert dataflow.bound_seconds <= dataflow.seconds <= step.seconds * (1 + 1e-9)


def by_hand(steps: list[list[tuple[int, int, int, int]]], topology: Topology) -> Schedule:
    """Return the schedule of sends (source, destination, chunk, link) by step, one a pair."""
    rows = [(step, *send) for step, sends in enumerate(steps) for send in sends]
    step, source, destination, chunk, link = np.array(rows).T
    matrix = np.zeros((len(topology.terminals),) * 2)
    matrix[source, destination] = 1.0
    counts = matrix.astype(np.int64)
    return Schedule(
        problem=Problem(topology, Demand(len(matrix), matrix)),
        chunks=Chunks(len(matrix), counts=counts),
        steps=len(steps),
        step=step,
        source=source,
        destination=destination,
        chunk=chunk,
        link=link,
        certificate=Certificate(np.ones(topology.links), 0.0),
        fractional_time=1.0,
        method="by hand",
    )


LINE = Topology.from_links(
    "line", 4, [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 2, 1), (2, 1, 1), (1, 0, 1)]
)


def test_a_chunk_is_forwarded_when_it_is_there() -> None:
    """Link 2 carries in step 2 what link 1 brings; link 0 goes on meanwhile, without a barrier."""
    sends = [[(0, 2, 0, 0), (2, 3, 0, 2)], [(0, 2, 0, 1), (0, 1, 0, 0)], [(1, 3, 0, 1)]]
    schedule = by_hand([*sends, [(1, 3, 0, 2)]], LINE)
    asked: dict[str, Any] = {"link_bandwidth": 1.0, "bytes": 10, "latency": 3.0}
    # Link 0 ends at 10 and at 20; link 1 begins with what is there at 13, is free at 23 and 33;
    # link 2 has the last chunk from 36 on.
    assert alltoall.simulate(schedule, **asked).seconds == pytest.approx(36 + 10 + 3)
    assert alltoall.simulate(schedule, sync="step", **asked).seconds == pytest.approx(4 * 13)


def test_overheads_of_a_sender_follow_each_other() -> None:
    """Two messages of node 1 in one step: the second begins an overhead later."""
    schedule = by_hand([[(1, 0, 0, 5), (1, 2, 0, 1)]], LINE)
    asked: dict[str, Any] = {"link_bandwidth": 1.0, "bytes": 10, "overhead": 2.0}
    assert alltoall.simulate(schedule, **asked).seconds == pytest.approx(2 + 2 + 10)
    assert alltoall.simulate(schedule, **asked, start=[0, 5, 0, 0]).seconds == pytest.approx(19)
    limited = alltoall.simulate(schedule, link_bandwidth=1.0, bytes=10, injection=0.5)
    assert limited.seconds == pytest.approx(40)
    assert limited.bound_seconds == pytest.approx(40)


BEHIND_A_NIC = Topology.from_links(
    "behind a NIC",
    5,
    [(0, 3, 1.5), (3, 1, 1), (3, 2, 1), (1, 4, 1), (2, 4, 1), (4, 0, 1.5)],
    [0, 1, 2],
)


def uneven_behind_a_nic() -> Schedule:
    """Return two messages of one step through one NIC, the second of half the size."""
    sends = [(0, 1, 0, 0), (0, 1, 0, 1), (0, 2, 0, 0), (0, 2, 0, 2)]
    matrix = np.array([[0, 1, 0.5], [0, 0, 0], [0, 0, 0]])
    schedule = by_hand([sends], BEHIND_A_NIC)
    return replace(schedule, problem=Problem(BEHIND_A_NIC, Demand(3, matrix)))


def test_a_fair_nic_ends_late_what_has_more_to_carry() -> None:
    """Both get 0.75 until the smaller has gone; then the other is held up by its link."""
    schedule = uneven_behind_a_nic()
    asked: dict[str, Any] = {"link_bandwidth": 1.0, "bytes": 10}
    assert alltoall.simulate(schedule, **asked).seconds == pytest.approx(10)
    for sync in ("dataflow", "step"):
        fair = alltoall.simulate(schedule, sharing="fair", sync=sync, **asked)
        assert fair.seconds == pytest.approx(5 / 0.75 + (10 - 5))
        assert fair.model.startswith("fair messages, ")
    # By injection the same: what leaves is limited by the host, not by a link.
    limited = alltoall.simulate(schedule, sharing="fair", injection=1.2, **asked)
    assert limited.seconds == pytest.approx(5 / 0.6 + (10 - 5))
    late = alltoall.simulate(schedule, sharing="fair", latency=1.0, overhead=2.0, **asked)
    # The second is issued at 4, when the first has had its link for 2 seconds.
    assert late.seconds == pytest.approx(4 + 5 / 0.75 + (10 - 2 - 5) + 2)


@pytest.mark.parametrize(("spec", "host"), CASES)
@pytest.mark.parametrize("sync", ["dataflow", "step"])
def test_where_links_are_loaded_alike_fair_is_as_good_as_due(
    spec: str, host: float | None, sync: str
) -> None:
    """What `schedule` makes behind NICs was made so; and barriers cost a latency each, as ever."""
    schedule = schedule_of(spec, host)
    for latency in (0.0, 1e-3):
        asked: dict[str, Any] = {"link_bandwidth": 1e9, "bytes": 10**6, "latency": latency}
        due, fair = (
            alltoall.simulate(schedule, sync=sync, sharing=each, **asked).seconds
            for each in ("due", "fair")
        )
        assert fair == pytest.approx(due)


def test_fair_messages_of_a_connection_keep_their_order() -> None:
    """Two steps over one link: the second message waits for the first to leave, not to arrive."""
    schedule = by_hand([[(0, 1, 0, 0)], [(0, 2, 0, 0)], [(0, 2, 0, 1)]], LINE)
    asked: dict[str, Any] = {"link_bandwidth": 1.0, "bytes": 10, "latency": 3.0}
    fair = alltoall.simulate(schedule, sharing="fair", **asked)
    assert fair.seconds == pytest.approx(10 + 13 + 13)
    barrier = alltoall.simulate(schedule, sharing="fair", sync="step", **asked)
    assert barrier.seconds == pytest.approx(3 * 13)


SWITCHED = Topology.from_links(
    "switched",
    5,
    [*((node, 3, 1) for node in (0, 1, 2)), (3, 4, 2), *((4, node, 1) for node in (0, 1, 2))],
    [0, 1, 2],
)


def test_switches_pass_on_within_the_step() -> None:
    """Three links deep, one latency each; what shares the middle link ends together."""
    sends = [(0, 1, 0, 0), (0, 1, 0, 3), (0, 1, 0, 5), (1, 2, 0, 1), (1, 2, 0, 3), (1, 2, 0, 6)]
    schedule = by_hand([sends], SWITCHED)
    found = messages_of_schedule(schedule)
    assert (found.sender.tolist(), found.receiver.tolist()) == ([0, 1], [1, 2])
    asked: dict[str, Any] = {"link_bandwidth": 1.0, "bytes": 10, "latency": 1.0}
    assert alltoall.simulate(schedule, **asked).seconds == pytest.approx(10 + 3)
    third = [(2, 0, 0, 2), (2, 0, 0, 3), (2, 0, 0, 4)]
    assert alltoall.simulate(by_hand([sends + third], SWITCHED), **asked).seconds == pytest.approx(
        18
    )


@pytest.mark.parametrize(("spec", "host"), CASES)
def test_the_messages_of_a_schedule_take_as_long(
    spec: str, host: float | None, tmp_path: Path
) -> None:
    """Lowered, read back and put on the links of the topology."""
    schedule = schedule_of(spec, host)
    alltoall.lower(schedule, to="messages").save(tmp_path / "messages")
    path, topology = tmp_path / "messages", schedule.problem.topology
    asked: dict[str, Any] = {"bytes": [10**6], "latency": 1e-5, "overhead": 1e-6}
    for sync in ("dataflow", "step"):
        ours = alltoall.simulate(schedule, link_bandwidth=1e9, sync=sync, **asked)
        theirs = alltoall.simulate(path, link_bandwidth=1e9, sync=sync, topology=topology, **asked)
        # Messages say no link: where several ways through switches are, they may take another.
        assert theirs.bound_seconds == pytest.approx(ours.bound_seconds)
        if spec != "dgx2":
            assert theirs.seconds == pytest.approx(ours.seconds)


def test_what_has_no_time_on_links_is_refused(tmp_path: Path) -> None:
    """Flows, programs, messages without or on another topology, and schedules that are wrong."""
    schedule = schedule_of("ring:4")
    with pytest.raises(UsageError, match="a Flow; expected a Schedule, a Routes, a Messages"):
        alltoall.simulate(alltoall.solve("ring:4"), link_bandwidth=1e9)  # type: ignore[arg-type]
    alltoall.lower(schedule, to="msccl").save(tmp_path / "ring.xml")
    with pytest.raises(UsageError, match="give the topology too"):
        alltoall.simulate(tmp_path / "ring.xml", link_bandwidth=1e9)
    alltoall.lower(schedule, to="messages").save(tmp_path / "messages")
    with pytest.raises(UsageError, match="give the topology too"):
        alltoall.simulate(tmp_path / "messages", link_bandwidth=1e9)
    with pytest.raises(InputError, match="demand between 4 terminals on a topology with 5"):
        alltoall.simulate(tmp_path / "messages", link_bandwidth=1e9, topology="ring:5")
    with pytest.raises(UsageError, match="with a schedule; expected routes"):
        alltoall.simulate(schedule, link_bandwidth=1e9, flows=2)
    wrong = by_hand([[(0, 2, 0, 1)]], LINE)
    with pytest.raises(VerificationError, match="schedule"):
        alltoall.simulate(wrong, link_bandwidth=1e9)
    with pytest.raises(InputError, match="never arrives"):
        messages_of_schedule(wrong)
    switched = by_hand([[(0, 1, 0, 3)]], SWITCHED)
    with pytest.raises(InputError, match="whose tail stores nothing"):
        messages_of_schedule(switched)
    with pytest.raises(InputError, match="for each of the 4 terminals"):
        alltoall.simulate(schedule, link_bandwidth=1e9, start=[0.0])
