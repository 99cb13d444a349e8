"""Files for simulators: what is read back is what was written, and what is not one is refused."""

import re

import numpy as np
import pytest
from lowering_cases import schedule_named

from a2aflow.check.program.traffic import check_traffic
from a2aflow.errors import FormatError, UsageError, VerificationError
from a2aflow.ir.chunks import Chunks
from a2aflow.ir.demand import Demand
from a2aflow.ir.problem import Problem
from a2aflow.lowering import TARGETS, Options
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
