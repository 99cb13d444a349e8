"""Puts, signals and waits: races and deadlocks are found, and what is no such list is refused."""

import json
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from lowering_cases import schedule_named

from a2aflow.errors import FormatError, VerificationError
from a2aflow.lowering.options import Options
from a2aflow.lowering.programs.compile import moves_of
from a2aflow.lowering.programs.nccl_put.emit import emit_nccl_put
from a2aflow.lowering.programs.nccl_put.read import read_nccl_put
from a2aflow.verification import verify_text

RING = emit_nccl_put(schedule_named("ring:8"), Options())
SMALL = emit_nccl_put(schedule_named("ring:4"), Options())

Plan = dict[str, Any]


def changed(text: str, change: Callable[[Plan, list[Any]], Any]) -> str:
    """Return a file after a change to it, given its top and the operations of rank 0."""
    plan = json.loads(text)
    change(plan, plan["programs"][0])
    return json.dumps(plan)


def without_releases(plan: Plan, _: list[Any]) -> None:
    """Remove the signals that say that scratch is free, and the waits for them."""
    for index, program in enumerate(plan["programs"]):
        kept = program[:2]
        for before, each in pairwise(program[1:]):
            release = each[0] == "signal" or (each[0] == "wait" and before[0] in ("wait", "signal"))
            if not release:
                kept.append(each)
        plan["programs"][index] = kept


def test_scratch_is_used_again_and_that_is_ordered() -> None:
    """Less scratch than chunks that pass; without the signals in between it is a race."""
    apart = moves_of(schedule_named("ring:8"), reuse=False).scratch.max()
    assert verify_text(RING, "f")["scratch_chunks"] < apart
    assert RING.count('"signal"') > 8
    with pytest.raises(VerificationError, match=r"race: .* writes scratch chunk \d+ of rank"):
        verify_text(changed(RING, without_releases), "f")


def test_a_signal_to_one_rank_says_nothing_of_puts_to_another() -> None:
    """Puts of one operation to several ranks run at once: only their own targets are told."""
    put = ["put", [[1, "i", 1, "o", 0, 1], [2, "i", 2, "s", 0, 1]]]
    programs = [
        [["copy", "i", 0, "o", 0, 1], put, ["wait", [[1, 1], [2, 1]]]],
        [
            ["copy", "i", 1, "o", 1, 1],
            ["wait", [[0, 1]]],
            ["put", [[0, "i", 0, "o", 1, 1], [2, "i", 2, "s", 0, 1]]],
            ["wait", [[2, 1]]],
        ],
        [
            ["copy", "i", 2, "o", 2, 1],
            ["wait", [[0, 1], [1, 1]]],
            ["put", [[0, "i", 0, "o", 2, 1], [1, "i", 1, "o", 2, 1]]],
        ],
    ]
    head = {"format": "a2aflow.nccl-put/1", "name": "x", "ranks": 3, "chunks_per_shard": 1}
    text = json.dumps(head | {"scratch": 1, "programs": programs})
    with pytest.raises(VerificationError, match=r"race: .* writes scratch chunk 0 of rank 2"):
        verify_text(text, "f")


def test_a_wait_before_its_cause_is_a_deadlock() -> None:
    """All ranks wait for data before anybody has put any."""

    def early(plan: Plan, _: list[Any]) -> None:
        for program in plan["programs"]:
            program[3], program[4] = program[4], program[3]

    with pytest.raises(VerificationError, match="deadlock"):
        verify_text(changed(SMALL, early), "f")


def test_a_signal_too_many_is_found() -> None:
    """The next call would take it for one of its own."""
    with pytest.raises(VerificationError, match="never waits for 1 signals"):
        verify_text(changed(SMALL, lambda _, ops: ops.append(["signal", [1]])), "f")


REFUSED: dict[str, tuple[Callable[[Plan, list[Any]], Any], str]] = {
    "another format": (lambda plan, _: plan.update(format="a2aflow.nccl-put/2"), "format is"),
    "ranks": (lambda plan, _: plan.update(ranks=5), "4 programs for 5 ranks"),
    "no chunks": (lambda plan, _: plan.pop("chunks_per_shard"), "chunks_per_shard is missing"),
    "0 chunks": (lambda plan, _: plan.update(chunks_per_shard=0), "0 chunks per shard"),
    "many chunks": (lambda plan, _: plan.update(chunks_per_shard=2**24), "chunks in all buffers"),
    "much scratch": (lambda plan, _: plan.update(scratch=2**30), "chunks in all buffers"),
    "bad shards": (lambda plan, _: plan.update(shards=[[0, 1]]), "expected 3 numbers"),
    "no list": (lambda plan, _: plan.update(programs=[1, 2, 3, 4]), "program is 1"),
    "no name": (lambda _, ops: ops.append([]), "begins with one of put, copy, signal, wait"),
    "another name": (lambda _, ops: ops.append(["get", []]), "begins with one of"),
    "an unhashable name": (lambda _, ops: ops.append([["put"]]), "begins with one of"),
    "an empty put": (lambda _, ops: ops.append(["put", []]), "expected one array, not empty"),
    "a short put": (lambda _, ops: ops.append(["put", [[1, "i", 0]]]), "two places and a count"),
    "a put to itself": (
        lambda _, ops: ops.append(["put", [[0, "i", 0, "o", 0, 1]]]),
        "names rank 0; expected another one of 0..3",
    ),
    "a put to nobody": (
        lambda _, ops: ops.append(["put", [[4, "i", 0, "o", 0, 1]]]),
        "names rank 4; expected another one of 0..3",
    ),
    "a window": (
        lambda _, ops: ops.append(["put", [[1, "x", 0, "o", 0, 1]]]),
        "expected i, o, s",
    ),
    "the input": (
        lambda _, ops: ops.append(["put", [[1, "s", 0, "i", 0, 1]]]),
        "writes to the window i",
    ),
    "outside": (
        lambda _, ops: ops.append(["put", [[1, "i", 4, "o", 0, 1]]]),
        "outside of the buffer of 4",
    ),
    "nothing": (
        lambda _, ops: ops.append(["put", [[1, "i", 0, "o", 0, 0]]]),
        "put of 0 chunks",
    ),
    "a copy": (lambda _, ops: ops.append(["copy", "i", 0]), "two places and a count"),
    "a fraction": (lambda _, ops: ops.append(["signal", [1.5]]), "expected 1 numbers 0.."),
    "a signal to nobody": (lambda _, ops: ops.append(["signal", [9]]), "names rank 9"),
    "a wait for nothing": (lambda _, ops: ops.append(["wait", [[1, 0]]]), "waits for no signal"),
    "a wait without a count": (lambda _, ops: ops.append(["wait", [1]]), "expected 2 numbers"),
    "a rank twice": (
        lambda _, ops: ops.append(["wait", [[1, 1], [1, 1]]]),
        "waits for a rank twice",
    ),
    "a wait in vain": (
        lambda _, ops: ops.append(["wait", [[1, 2**31 - 1]]]),
        "rank 0 waits for 2147483651 signals of rank 1, which gives it 4",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_list_is_refused_by_name(case: str) -> None:
    """The rank, the operation, what was found and what was expected."""
    change, problem = REFUSED[case]
    with pytest.raises(FormatError, match=re.escape(problem)):
        read_nccl_put(changed(SMALL, change), "f.json")
