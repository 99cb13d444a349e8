"""Files for simulators: what is read back is what was written, and what is not one is refused."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from lowering_cases import schedule_named

from a2aflow.check.program.traffic import check_traffic
from a2aflow.errors import FormatError, UsageError, VerificationError
from a2aflow.ir.chunks import Chunks
from a2aflow.ir.demand import Demand
from a2aflow.ir.problem import Problem
from a2aflow.ir.traffic import RankTraffic
from a2aflow.lowering import TARGETS, Options
from a2aflow.lowering.programs.chakra.read import read_chakra
from a2aflow.lowering.programs.goal.read import read_goal
from a2aflow.lowering.programs.traffic import traffic_of
from a2aflow.topologies.spec import build
from a2aflow.verification import verify_text
from hop_schedules import uneven_hops

GOAL = str(TARGETS["goal"].emit(schedule_named("hypercube:2"), Options()))

FOREIGN = """num_ranks 3
/// by hand
rank 0 {
send 10b to 1
a: send 5b to 1 cpu 0 nic 1
b_2: recv 15b from 2 tag 9
b_2 requires a
}
rank 1 {
x: recv 10b from 0
y: recv 5b from 0 tag 0
z: send 15b to 2 tag 0
z requires x
z irequires y
}
rank 2 {
   x: recv   15b from 1 tag 0
y:send 15b to 0 tag 9 cpu 3
y requires x
}
"""


def test_goal_is_read_back_as_it_was_meant() -> None:
    """Nothing of the traffic is lost in the text."""
    for name, chunks in (("hypercube:3", 2), ("torus:3x3x3 host", 1)):
        schedule = schedule_named(name, chunks)
        text = str(TARGETS["goal"].emit(schedule, Options(shard_bytes=999)))
        assert read_goal(text, "f") == traffic_of(schedule, Options(shard_bytes=999))


def test_goal_of_others() -> None:
    """Without a word on shards: matched, executed, and its steps are its depths."""
    found = verify_text(FOREIGN, "f.goal")
    assert (found["matched"], found["steps"], found["sent_bytes"]) == (True, 3, 45)
    traffic = read_goal(FOREIGN, "f")
    assert (traffic.unit, traffic.shard, traffic.name) == (None, None, "GOAL")
    assert check_traffic(traffic).loads == {(1, 0, 1): 15, (2, 1, 2): 15, (3, 2, 0): 15}


def test_a_deadlock_is_found() -> None:
    """A send that requires what is only received afterwards."""
    stuck = FOREIGN.replace("z requires x", "z requires x\nx requires z")
    with pytest.raises(VerificationError, match=r"deadlock: .* never end"):
        verify_text(stuck, "f.goal")


REFUSED = {
    "a computation": ("l1: recv 2097152b from 1 tag 0", "l1: calc 5", "not a line of GOAL"),
    "anybody": ("recv 2097152b from 1", "recv 2097152b from -1", "not a line of GOAL"),
    "no rank": ("recv 2097152b from 1", "recv 2097152b from 4", "no other one of the 4 ranks"),
    "itself": ("recv 2097152b from 1", "recv 2097152b from 0", "no other one of the 4 ranks"),
    "from for to": ("send 2097152b to 1", "send 2097152b from 1", "does not send to"),
    "nothing": ("send 2097152b to 1", "send 0b to 1", "has not 1 to"),
    "a large tag": ("to 1 tag 0", "to 1 tag 2147483648", "a tag up to 2147483647"),
    "a label twice": ("l2: recv", "l1: recv", "has already"),
    "an unknown label": ("l6 requires l2", "l6 requires l9", "no line before it gives"),
    "a later label": ("l1: recv", "l6 requires l2\nl1: recv", "no line before it gives"),
    "another order": ("rank 0 {", "rank 1 {", "is not rank 0 of 4"),
    "one rank": ("num_ranks 4", "num_ranks 1", "2 to 5,792"),
    "many ranks": ("num_ranks 4", "num_ranks 6000", "2 to 5,792"),
    "missing ranks": ("num_ranks 4", "num_ranks 5", "ends after 4 of 5 ranks"),
    "a word of ours": ("// a2aflow shard", "// a2aflow shards", "not a line of GOAL"),
    "shards twice": ("\nrank 0 {", "// a2aflow shard 7\nrank 0 {", "has been said"),
    "a shard to nobody": ("rank 0 {", "rank 0 {\n// a2aflow to 9 9", "no shard of the ranks"),
    "no shard": ("// a2aflow shard 1048576", "// a2aflow shard 0", "a shard of 0 bytes"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_goal_is_refused_by_name(case: str) -> None:
    """With the line, and what is expected."""
    old, new, problem = REFUSED[case]
    assert old in GOAL
    with pytest.raises(FormatError, match=re.escape(problem)):
        read_goal(GOAL.replace(old, new, 1), "f.goal")


def test_long_files_are_refused_before_they_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line costs more memory than its text."""
    monkeypatch.setattr("a2aflow.lowering.programs.goal.read.MAX_LINES", 10)
    with pytest.raises(FormatError, match="lines; expected at most 10"):
        read_goal(GOAL, "f.goal")


def test_shards_that_are_too_small_to_be_cut() -> None:
    """A message without bytes would be none to a simulator."""
    problem = Problem(build("ring:2"), Demand(2, np.array([[0, 1], [0.25, 0]])))
    schedule = uneven_hops(problem, Chunks.of_demand(problem.demand, 1))
    with pytest.raises(UsageError, match=r"shards of 1 bytes leave nothing.*--bytes"):
        TARGETS["goal"].emit(schedule, Options(shard_bytes=1))
    with pytest.raises(UsageError, match="shards of 0 bytes; expected 1 to"):
        Options(shard_bytes=0)


TRACES = TARGETS["chakra"].emit(schedule_named("hypercube:2"), Options())


def chakra(change: Callable[[bytes], bytes]) -> dict[str, bytes]:
    """Return traces of which that of rank 0 is changed."""
    return {**TRACES, "alltoall.0.et": change(TRACES["alltoall.0.et"])}


def test_traces_are_read_back_as_they_were_meant() -> None:
    """Sizes, ends, tags and order; what comes beside another operation comes after it here."""
    schedule = schedule_named("torus:3x3x3 host")
    told = traffic_of(schedule, Options(shard_bytes=999))
    found = read_chakra(TARGETS["chakra"].emit(schedule, Options(shard_bytes=999)), "f")
    assert (found.name, found.unit, found.shard) == (told.name, told.unit, told.shard)
    for mine, other in zip(told.ranks, found.ranks, strict=True):
        for key in ("sends", "peer", "tag", "bytes"):
            assert np.array_equal(getattr(mine, key), getattr(other, key))
        for each in range(mine.operations):
            before = {*others(mine, "after", each), *others(mine, "beside", each)}
            assert set(others(other, "after", each)) == before


def others(part: RankTraffic, kind: str, operation: int) -> list[int]:
    """Return what an operation comes after, or beside."""
    first = getattr(part, f"{kind}_first")
    found: list[int] = getattr(part, kind)[first[operation] : first[operation + 1]].tolist()
    return found


def test_a_trace_byte_by_byte() -> None:
    """The first two messages as protobuf says they are, written out by hand."""
    head = (
        b"\x12\x1d\x0a\x06schema\xea\x01\x121.0.2-chakra.0.0.4"
        b"\x12\x1e\x0a\x0ca2aflow_name\xea\x01\x0dhypercube:2\x00"
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


def sized(data: bytes) -> bytes:
    """Return a short message after its length."""
    return bytes([len(data)]) + data


def attribute(name: bytes, field: bytes) -> bytes:
    """Return an attribute of a node."""
    return b"\x52" + sized(b"\x0a" + sized(name) + field)


SIZE = attribute(b"comm_size", b"\x48\x01")
TO, TAG = attribute(b"comm_dst", b"\x38\x01"), attribute(b"comm_tag", b"\x38\x00")

BROKEN = {
    "a computation": (b"\x08\x63\x18\x04", "a node of type 4"),
    "no type": (b"\x08\x63", "a node of type 0"),
    "no size": (b"\x08\x63\x18\x05" + TO + TAG, "comm_size is missing"),
    "no peer": (b"\x08\x63\x18\x05" + SIZE + TAG, "comm_dst is missing"),
    "an unknown peer": (
        b"\x08\x63\x18\x05" + SIZE + TAG + attribute(b"comm_dst", b"\x38\x04"),
        "comm_dst is 4; expected 0 to 3",
    ),
    "a negative tag": (
        b"\x08\x63\x18\x05" + SIZE + TO + attribute(b"comm_tag", b"\x38" + b"\xff" * 9 + b"\x01"),
        "comm_tag is 18446744073709551615",
    ),
    "another's": (
        b"\x08\x63\x18\x05" + SIZE + TO + TAG + attribute(b"comm_src", b"\x38\x02"),
        "comm_src is 2; expected 0, whose trace it is",
    ),
    "another type of number": (
        b"\x08\x63\x18\x05" + TO + TAG + attribute(b"comm_size", b"\x68\x01"),
        "comm_size has no int64 value",
    ),
    "an attribute twice": (b"\x08\x63\x18\x05" + SIZE + SIZE, "'comm_size' is there twice"),
    "an id twice": (b"\x18\x05" + SIZE + TO + TAG, "its id 0 is that of another node"),
    "a field twice": (b"\x08\x63\x08\x64\x18\x05", "field 1 is there 2 times"),
    "an unknown dependency": (
        b"\x08\x63\x18\x05\x2a\x01\x77" + SIZE + TO + TAG,
        "depends on id 119, which no node has",
    ),
    "a long number": (b"\x08" + b"\xff" * 10 + b"\x01", "begins no number of 64 bits"),
    "too large a number": (b"\x08" + b"\xff" * 9 + b"\x02", "begins no number of 64 bits"),
    "a group": (b"\x0b\x0c", "wire type 3 does not fit"),
    "a field without a number": (b"\x02\x00", "field 0 of wire type 2"),
    "a field beyond its message": (b"\x52\x7f", "does not fit into its message"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_no_trace_is_refused_by_name(case: str) -> None:
    """A node too many, with something wrong about it."""
    node, problem = BROKEN[case]
    with pytest.raises(FormatError, match=re.escape(problem)):
        read_chakra(chakra(lambda data: data + sized(node)), "folder")


def test_traces_that_do_not_belong_together() -> None:
    """Other names, other shards, too many nodes."""
    with pytest.raises(FormatError, match=r"expected NAME\.0\.et, NAME\.1\.et"):
        read_chakra({**TRACES, "other.4.et": b""}, "folder")
    with pytest.raises(FormatError, match="do not tell the same"):
        read_chakra(chakra(lambda data: data.replace(b"hypercube:2", b"hypercube:3")), "folder")


def test_long_traces_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node costs more memory than its bytes."""
    monkeypatch.setattr("a2aflow.lowering.programs.chakra.read.MAX_NODES", 9)
    with pytest.raises(FormatError, match="expected at most 9 nodes in all traces"):
        read_chakra(TRACES, "folder")
