"""Programs and plans as files: all of them comes back, and what is wrong with one is named."""

import json
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.errors import FormatError
from alltoall.ir.execution_plan import ExecutionPlan
from alltoall.ir.files.json.program import (
    program_from_json,
    program_to_json,
)
from alltoall.ir.messages import Messages
from alltoall.ir.program import Program
from alltoall.lowering import TARGETS, Lowered, Options, parse_lowered
from alltoall.lowering.tables.routed_file import RoutedFile
from hop_schedules import hop_schedule
from uneven_cases import CASES

SCHEDULES = {"even": hop_schedule(alltoall.topology("hypercube:2"), 2), "uneven": CASES["ring"]}
KINDS = {
    ("msccl", "even"): Program,
    ("oneccl", "even"): Program,
    ("oneccl", "uneven"): Program,
    ("mscclpp", "even"): ExecutionPlan,
    ("messages", "even"): Messages,
    ("messages", "uneven"): Messages,
}


def lowered(target: str, name: str) -> Lowered:
    """Return what the file of a target says."""
    found = parse_lowered(TARGETS[target].emit(SCHEDULES[name], Options()), "file")[1]
    assert type(found) is KINDS[target, name]
    assert not isinstance(found, RoutedFile)
    return found


@pytest.mark.parametrize(("target", "name"), KINDS)
def test_saved_and_loaded(target: str, name: str, tmp_path: Path) -> None:
    """It is equal to what was saved, and verified like the file that it came from."""
    noun, path = lowered(target, name), tmp_path / "lowered"
    noun.save(path)
    assert alltoall.load(path) == noun
    found = alltoall.verify(path, topology=SCHEDULES[name].problem.topology).facts
    expected = alltoall.verify(noun, topology=SCHEDULES[name].problem.topology).facts
    assert {key: found[key] for key in expected if key != "format"} == dict(expected)


PROGRAM = json.loads(json.dumps(program_to_json(lowered("msccl", "even"))))  # type: ignore[arg-type]
PLAN = json.loads(json.dumps(program_to_json(lowered("mscclpp", "even"))))  # type: ignore[arg-type]

BAD: list[tuple[dict[str, Any], tuple[str | int, ...], object, str]] = [
    (PROGRAM, ("name",), 3, "name is 3; expected a string"),
    (PROGRAM, ("ranks",), 1 << 40, "ranks is 1099511627776; expected an integer 0..65536"),
    (PROGRAM, ("chunks_per_shard",), None, "chunks_per_shard is missing"),
    (PROGRAM, ("fifo_slots",), 0, "0 FIFO slots"),
    (PROGRAM, ("chunks",), [[0, 1]], "other rows than"),
    (PROGRAM, ("code",), {}, "code is {}; expected an array"),
    (PROGRAM, ("code", 0), [4, 4], r"code\[0\] has 2 entries; expected input, output, scratch"),
    (PROGRAM, ("code", 0, 0), -1, r"code\[0\].input is -1; expected an integer 0"),
    (PROGRAM, ("code", 0, 3, 0, 1), True, r"threads\[0\].send_to is true; expected an integer"),
    (PROGRAM, ("code", 0, 3, 0, 1), 99, "99"),
    (PROGRAM, ("code", 0, 3, 0, 3, 0, 0), "sand", r"\[0\].op is \"sand\"; expected one"),
    (PROGRAM, ("code", 0, 3, 0, 3, 0, 0), [], r"op is \[\]; expected one of send"),
    (PROGRAM, ("code", 0, 3, 0, 3, 0, 2), [7, 0], "source.buffer is 7; expected one of 0, 1, 2"),
    (PLAN, ("code", 0, 3), [9], "channel 0: leads to rank 9"),
    (PLAN, ("code", 0, 4, 0, 0, 3), 1, "relaxed is 1; expected true or false"),
    (PLAN, ("code",), [], "a plan of 0 ranks"),
]  # fmt: skip


@pytest.mark.parametrize(("value", "place", "new", "message"), BAD)
def test_what_is_wrong_is_named(
    value: dict[str, Any], place: tuple[str | int, ...], new: object, message: str
) -> None:
    """Where it is, what was found and what was expected."""
    changed = json.loads(json.dumps(value))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = new
    with pytest.raises(FormatError, match=message):
        program_from_json(changed, "file")
