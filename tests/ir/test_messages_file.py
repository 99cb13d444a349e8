"""The file of messages: what is written is what is read, by all and by each, and nothing else."""

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alltoall.errors import FormatError, InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.files.messages import messages_from_text, messages_text, read_rank
from alltoall.ir.messages import Messages, RankMessages
from alltoall.ir.problem import Problem
from alltoall.lowering.programs.messages import messages_of
from alltoall.topologies.spec import build
from hop_schedules import hop_schedule, uneven_hops
from uneven_cases import CASES

RING = messages_of(hop_schedule(build("ring:5"), 2))
UNEVEN = messages_of(CASES["ring"])
LAST = RING.ranks[0].messages - 1


def told(part: RankMessages) -> list[Any]:
    """Return all that a rank is told, as plain values."""
    values = [getattr(part, field.name) for field in fields(part)]
    plain = [value.tolist() for value in values if isinstance(value, np.ndarray)]
    return [*plain, part.rank, part.steps, part.scratch, part.chunks.rows(), part.chunks.most]


@pytest.mark.parametrize("messages", [RING, UNEVEN, *map(messages_of, CASES.values())])
def test_nothing_is_lost(messages: Messages, tmp_path: Path) -> None:
    """All ranks at once, or each its own section, find what was written."""
    path = tmp_path / "file"
    path.write_text(messages_text(messages))
    again = messages_from_text(path.read_text(), "file")
    assert again.name == messages.name
    for rank, part in enumerate(messages.ranks):
        assert told(again.ranks[rank]) == told(part) == told(read_rank(path, rank))
        assert again.demand == part.demand
        assert read_rank(path, rank).demand == part.demand


def test_a_uniform_demand_in_uneven_chunks() -> None:
    """It is a uniform demand again."""
    counts = np.array([[0, 2, 1], [3, 0, 1], [1, 1, 0]])
    problem = Problem.all_to_all(build("ring:3"))
    messages = messages_of(uneven_hops(problem, Chunks(3, counts=counts)))
    assert messages_from_text(messages_text(messages), "file").demand.uniform


def test_names_are_one_line() -> None:
    """Whatever a topology is called, the header stays as it is."""
    for name in (
        "",
        "two\nlines",
        "x" * 10_000,
        "Zürich \ud800",
        "alltoall.messages/1\nname <algo",
    ):
        text = messages_text(replace(RING, name=name))
        again = messages_from_text(text, "file")
        assert again.name == " ".join(name.split())[:512].encode(errors="replace").decode()


HEADER = {
    "another format": ("messages/1", "messages/2", "the first line is not"),
    "no name": ("name ", "nam ", "expected a name"),
    "another key": ("ranks 6", "rank 6", "expected ranks and a number"),
    "ranks": ("ranks 6", "ranks 1", 'ranks is "1"; expected an integer 2..'),
    "a leading zero": ("ranks 6", "ranks 06", 'ranks is "06"'),
    "a sign": ("steps", "steps +", "expected an integer 1.."),
    "too many steps": ("steps 2", "steps 3000000000", "expected an integer 1..2147483647"),
    "chunks of all and of each": (
        "chunks 0",
        "chunks 1",
        'shards is "7"; expected 0',
    ),
    "fewer shards": ("shards 7", "shards 6", "the index of rank 0"),
    "more shards": ("shards 7", "shards 31", "expected an integer 0..30"),
    "a shard of a rank that is none": ("0 1 4", "0 6 4", "expected two of 6 ranks"),
    "a shard without chunks": ("0 1 4", "0 1 0", "at least one chunk"),
    "a shard of four numbers": ("0 1 4", "0 1 4 4", "expected 3 numbers"),
    "a demand that is none": (" 3.0\n", " -3.0\n", "its demand is '-3.0'"),
    "a demand in other words": (" 3.0\n", " 3.00\n", "its demand is '3.00'"),
    "a demand of nothing known": (" 3.0\n", " nan\n", "its demand is 'nan'"),
}
"""What is changed in a header, into what, and what is said of it."""


@pytest.mark.parametrize("case", HEADER)
def test_bad_headers_are_refused(case: str) -> None:
    """Every line has its key, its numbers and its limits."""
    old, new, problem = HEADER[case]
    text = messages_text(UNEVEN)
    assert old in text
    with pytest.raises(FormatError, match=problem):
        messages_from_text(text.replace(old, new, 1), "file")


def test_bad_sections_are_refused() -> None:
    """Text after the end, numbers in other words, and sections of another length."""
    text = messages_text(RING)
    with pytest.raises(FormatError, match="more text after"):
        messages_from_text(text + "0\n", "file")
    with pytest.raises(FormatError, match="may be truncated"):
        messages_from_text(text[:-2], "file")
    with pytest.raises(FormatError, match="may be truncated"):
        messages_from_text(text[:-2] + "x\n", "file")
    section = text.rindex("\n0 ") + 1
    with pytest.raises(FormatError, match="not written as expected"):
        messages_from_text(text[:section] + text[section:].replace(" ", "\n", 1), "file")


PARTS: dict[str, tuple[dict[str, Any], str]] = {
    "a rank that is none": ({"rank": 5}, "a demand between 5"),
    "no steps": ({"steps": 0}, "expected one of each"),
    "a later step": ({"steps": 1}, r"a step that is not in 0..0"),
    "fewer peers": ({"peer": RING.ranks[0].peer[:-1]}, "expected one of each"),
    "itself": ({"peer": 0 * RING.ranks[0].peer}, "not with other ranks"),
    "another order": ({"peer": RING.ranks[0].peer[::-1]}, "receives before sends"),
    "fewer ranges": ({"count": RING.ranks[0].count[:-1]}, "not fully described"),
    "no ranges": ({"first": 0 * RING.ranks[0].first}, "at least one each"),
    "an unknown pair": ({"source": RING.ranks[0].source + 5}, "not among the 5 ranks"),
    "more chunks": ({"count": RING.ranks[0].count + 2}, "chunks that its pair has not"),
    "another buffer": ({"to_buffer": 0 * RING.ranks[0].to_buffer}, "or else in scratch"),
    "no scratch": ({"scratch": 0}, "outside of the scratch buffer of 0"),
    "negative slots": ({"to_slot": -1 - RING.ranks[0].to_slot}, "outside of the scratch"),
    "fewer waits": ({"waits": RING.ranks[0].waits[:-1]}, "do not share out"),
    "an unknown message": ({"waits": RING.ranks[0].waits + 99}, "does not exist"),
    "later messages": (
        {"waits": 0 * RING.ranks[0].waits + LAST},
        "not of an earlier step",
    ),
}
"""What is changed in the messages of a rank, and what is said of it."""


@pytest.mark.parametrize("case", PARTS)
def test_what_are_no_messages(case: str) -> None:
    """What contradicts itself is never built, so no reader takes it."""
    change, problem = PARTS[case]
    with pytest.raises(InputError, match=problem):
        replace(RING.ranks[0], **change)


def test_messages_of_too_few_ranks_or_too_much_scratch() -> None:
    """A small file cannot ask for more memory than there is."""
    with pytest.raises(InputError, match="messages of 1 ranks"):
        Messages("one", RING.ranks[:1])
    large = replace(RING.ranks[0], scratch=2**30)
    with pytest.raises(InputError, match="chunks in all buffers"):
        Messages("large", (large, *RING.ranks[1:]))
