"""Files from anywhere: whatever is in them, the answer is a program or an error on purpose."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lowering_cases import schedule_named

import alltoall.lowering
from alltoall.check.program.alltoall import check_all_to_all
from alltoall.errors import AlltoallError, FormatError, InputError
from alltoall.ir.chunks import Chunks
from alltoall.ir.program import Program, RankProgram, Thread
from alltoall.lowering import TARGETS, Options
from alltoall.lowering.programs.oneccl import ATTRIBUTES, OPTIONAL, read_oneccl
from alltoall.verification import verify_text
from lowered_files import EXECUTED

TEXTS = {kind: TARGETS[kind].emit(schedule_named("hypercube:2"), Options()) for kind in EXECUTED}
XSD = "{http://www.w3.org/2001/XMLSchema}"


@pytest.mark.parametrize("kind", TEXTS)
@given(data=st.data())
def test_damaged_files_never_surprise(kind: str, data: st.DataObject) -> None:
    """Cut, overwritten or repeated text gives an error of ours, or is still correct."""
    text = TEXTS[kind]
    begin = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(begin, min(len(text), begin + 40)))
    middle = data.draw(st.one_of(st.text(max_size=5), st.sampled_from(["0", "1", "-1", "9", ""])))
    damaged = text[:begin] + middle + text[end:]
    try:
        assert verify_text(damaged, "damaged")["correct"]
    except AlltoallError as error:
        assert error.exit_code in (3, 4)  # noqa: PT017


@pytest.mark.parametrize("kind", TEXTS)
def test_every_truncation_is_refused(kind: str) -> None:
    """No part of a file from its beginning is taken for the whole."""
    text, read = TEXTS[kind].rstrip(), TARGETS[kind].read
    assert read is not None
    for end in range(0, len(text), max(1, len(text) // 100)):
        with pytest.raises(FormatError):
            read(text[:end], "cut")


def test_deep_nesting_is_refused() -> None:
    """Nesting does not exhaust the stack."""
    for text in ("<algo>" * 50_000, "<schedule>" * 50_000, '{"gpus":' * 50_000):
        with pytest.raises(FormatError):
            verify_text(text, "deep")


def test_huge_buffers_are_refused_before_they_are_made() -> None:
    """A small file cannot ask for more memory than there is, nor for too many threads."""
    with pytest.raises(FormatError, match="chunks in all buffers"):
        read_oneccl(TEXTS["oneccl"].replace('scratch="2"', 'scratch="2000000000"', 1), "huge")
    idle = tuple(Thread(0, None, None, ()) for _ in range(10_000))
    ranks = (RankProgram(2, 2, 0, idle), RankProgram(2, 2, 0, idle))
    program = Program("wide", Chunks(2, 1), ranks)
    with pytest.raises(InputError, match="20,000 thread blocks"):
        check_all_to_all(program)


def test_many_syncs_and_channels_stay_small() -> None:
    """Waits grow with the file, not with its square."""
    lines = "".join(
        f'<send peer="1" channel="{channel}" buffer="input" offset="1" count="1"/>'
        for channel in range(300)
    )
    rank = '<rank id="{}" input="2" output="2" scratch="0">{}</rank>'
    head = '<schedule version="1" name="x" collective="alltoall" ranks="2" chunks-per-shard="1">'
    text = head + rank.format(0, (lines + "<sync/>") * 20) + rank.format(1, "") + "</schedule>"
    program = read_oneccl(text, "wide")
    waits = sum(len(each.after) for line in program.ranks[0].threads for each in line.instructions)
    assert waits <= 2 * program.instructions


def test_the_schema_says_what_the_reader_wants() -> None:
    """The XSD and the reader know the same elements and attributes."""
    path = Path(alltoall.lowering.__file__).parent / "programs/oneccl.xsd"
    root = ElementTree.parse(path).getroot()
    types = {
        node.get("name"): tuple(str(each.get("name")) for each in node.iter(f"{XSD}attribute"))
        for node in root.iter(f"{XSD}complexType")
        if node.get("name")
    }
    schedule = root.find(f"{XSD}element/{XSD}complexType")
    assert schedule is not None
    own = schedule.findall(f"{XSD}attribute")
    found = {"schedule": tuple(str(each.get("name")) for each in own)}
    found |= {
        str(node.get("name")): types[node.get("type")]
        for node in root.iter(f"{XSD}element")
        if node.get("type")
    }
    assert found == {tag: (*own, *OPTIONAL.get(tag, ())) for tag, own in ATTRIBUTES.items()}
