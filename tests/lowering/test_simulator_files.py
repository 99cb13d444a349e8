"""Files for simulators: they read back as they were meant, and are simulated."""

import re
from dataclasses import replace

import numpy as np
import pytest
from lowering_cases import schedule_named

from alltoall.errors import UsageError
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.lowering import TARGETS, Options
from alltoall.lowering.programs.simulators import traffic_of
from alltoall.topologies.spec import build
from hop_schedules import uneven_hops
from simulator_files import READERS, check_traffic, read_chakra, read_goal, simulate
from uneven_cases import CASES

SMALL = schedule_named("hypercube:2")
GOAL = str(TARGETS["goal"].emit(SMALL, Options()))
TRACES = TARGETS["chakra"].emit(SMALL, Options())
LOWERED = {
    "even": schedule_named("hypercube:3", 2),
    "hosts": schedule_named("torus:3x3x3 host"),
    **{f"uneven {name}": schedule for name, schedule in CASES.items()},
}


@pytest.mark.parametrize("name", LOWERED)
def test_files_are_read_back_as_they_were_meant(name: str) -> None:
    """Nothing is lost; in traces, what comes beside another operation comes after it."""
    schedule, options = LOWERED[name], Options(shard_bytes=9999)
    told = traffic_of(schedule, options)
    assert read_goal(str(TARGETS["goal"].emit(schedule, options))) == told
    merged = [
        [each._replace(after=sorted({*each.after, *each.beside}), beside=[]) for each in part]
        for part in told.ranks
    ]
    found = read_chakra(TARGETS["chakra"].emit(schedule, options))
    assert found == replace(told, ranks=merged)


WRONG = {
    "a message of another size": (r"send 2097152b to 1 tag 0", "send 2097151b to 1 tag 0"),
    "a message that nobody receives": (r"recv 1048576b from 1 tag 1", "recv 1048576b from 2 tag 1"),
    "a circle": (r"(l5: recv .*\n)", r"\1l5 requires l5\n"),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_simulation_finds_what_is_wrong(case: str) -> None:
    """Or it would prove nothing."""
    wrong, count = re.subn(*WRONG[case], GOAL, count=1)
    assert count == 1
    with pytest.raises(AssertionError):
        simulate(read_goal(wrong))


def test_other_bytes_than_those_of_the_schedule_are_found() -> None:
    """Even if both ends agree on them."""
    with pytest.raises(AssertionError):
        check_traffic(read_goal(GOAL.replace("2097152b", "2097153b")), SMALL)


def test_shards_that_are_too_small_to_be_cut() -> None:
    """A message without bytes would be none to a simulator."""
    problem = Problem(build("ring:2"), Demand(2, np.array([[0, 1], [0.25, 0]])))
    schedule = uneven_hops(problem, Chunks.of_demand(problem.demand, 1))
    for target in READERS:
        with pytest.raises(UsageError, match=r"shards of 1 bytes leave nothing.*--bytes"):
            TARGETS[target].emit(schedule, Options(shard_bytes=1))
    with pytest.raises(UsageError, match="shards of 0 bytes; expected 1 to"):
        Options(shard_bytes=0)


def test_a_trace_byte_by_byte() -> None:
    """The first two messages as protobuf says they are, written out by hand."""
    head = (
        b"\x12\x1d\x0a\x06schema\xea\x01\x121.0.2-chakra.0.0.4"
        b"\x12\x1e\x0a\x0calltoall_name\xea\x01\x0dhypercube:2\x00"
    )
    assert TRACES["alltoall.0.et"][1:32] == head[:31]
    node = (
        b"\x12\x0dreceive 1 0 0\x18\x06"
        b"\x52\x10\x0a\x09comm_size\x48\x80\x80\x80\x01"
        b"\x52\x0c\x0a\x08comm_src\x38\x01"
        b"\x52\x0c\x0a\x08comm_dst\x38\x00"
        b"\x52\x0c\x0a\x08comm_tag\x38\x00"
    )
    assert bytes([len(node)]) + node in TRACES["alltoall.0.et"]
