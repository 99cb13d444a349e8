"""MSCCL XML as it is in the wild, and as it must not be."""

import re

import pytest
from lowering_cases import schedule_named

from alltoall.check.program.alltoall import check_all_to_all
from alltoall.errors import FormatError, LimitError
from alltoall.ir.program import FIFO_SLOTS, Op
from alltoall.lowering.options import Options
from alltoall.lowering.programs.compile import program_of
from alltoall.lowering.programs.msccl_emit import (
    RUNTIMES,
    algorithm_name,
    check_limits,
    emit_msccl,
    msccl_text,
)
from alltoall.lowering.programs.msccl_read import read_msccl

RING = msccl_text(program_of(schedule_named("ring:4"), most=71), Options())

WILD = """<!-- by hand, as ElementTree prints it -->
<algo nchannels="1" nchunksperloop="2" proto="LL" ngpus="2" coll="alltoall" inplace="0">
  <note text="the parsers skip what they do not know"><deeper /></note>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="1">
    <tb id="0" send="0" recv="0" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="o" dstoff="-1" cnt="1" depid="-1" deps="-1" hasdep="0" />
      <step s="1" type="rcs" srcbuf="i" srcoff="-1" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1" />
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="1" />
      <step s="1" type="nop" srcbuf="i" srcoff="-1" dstbuf="o" dstoff="-1" cnt="0" depid="0" deps="1" hasdep="0" />
      <step s="2" type="cpy" srcbuf="s" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="1" deps="0" hasdep="0" />
    </tb>
  </gpu>
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="1">
    <tb id="0" send="1" recv="1" chan="0">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0" />
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0" />
      <step s="2" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0" />
      <step s="3" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0" />
    </tb>
  </gpu>
</algo>
"""  # noqa: E501


def test_files_of_others_are_read() -> None:
    """Blanks before the end, missing optional attributes, any order, rcs and nops are fine."""
    program = read_msccl(WILD, "wild.xml")
    assert program.fifo_slots == 8
    assert program.ranks[1].threads[0].instructions[1].op is Op.FORWARD
    assert check_all_to_all(program).correct


def test_what_is_read_is_written_again() -> None:
    """Writing what was read from our own file gives the same text."""
    for text in (RING, emit_msccl(schedule_named("ring:4"), Options())):
        program = read_msccl(text, "ring.xml")
        assert program.fifo_slots == FIFO_SLOTS
        assert msccl_text(program, Options()) == text


@pytest.mark.parametrize("protocol", ["Simple", "LL", "LL128"])
def test_protocols(protocol: str) -> None:
    """The protocol is in the file; LL FIFOs hold more chunks."""
    text = emit_msccl(schedule_named("ring:4"), Options(protocol=protocol))
    assert f'proto="{protocol}"' in text
    assert read_msccl(text, "f").fifo_slots == {"Simple": 2, "LL": 8, "LL128": 8}[protocol]


BREAKS = {
    "declaration": (r"^", '<?xml version="1.0"?>', "XML declaration"),
    "doctype": (r"^", '<!DOCTYPE a [<!ENTITY b "c">]>', "document type"),
    "tab": (r"  <gpu", "\t<gpu", "a tab"),
    "single quotes": (r'id="0"', "id='0'", "line 2"),
    "two blanks": (r"<gpu id", "<gpu  id", "line 2"),
    "line break": (r'" i_chunks', '"\ni_chunks', "line 2"),
    "text": (r"</tb>", "words</tb>", "line 5"),
    "wrong close": (r"</tb>", "</gpu>", "found </gpu>, expected </tb>"),
    "truncated": (r"(?s)</gpu>.*", "", "<gpu> of line 2 is never closed"),
    "cut in a tag": (r"(?s)hasdep.*", "", "the file may be truncated"),
    "long string": (r'name="ring:4"', f'name="{"x" * 256}"', "longer than 255"),
    "many attributes": (
        r'name="ring:4"',
        " ".join(f'a{i}="1"' for i in range(17)),
        "more than 16 attributes",
    ),
    "attribute twice": (r'name="ring:4"', 'coll="alltoall"', "an attribute twice"),
    "unending comment": (r"</algo>", "</algo><!--", "never ends"),
    "two algorithms": (r"$", "<algo></algo>", "2 <algo> elements"),
    "no channel": (r' chan="0"', "", "gpu 0, tb 0: chan is missing; expected 0"),
    "collective": (r'coll="alltoall"', 'coll="allreduce"', 'coll is "allreduce"'),
    "protocol": (r"Simple", "LL64", 'proto is "LL64"'),
    "in place only": (r'outofplace="1"', 'outofplace="0"', 'outofplace is "0"; expected 1'),
    "gpus": (r'ngpus="4"', 'ngpus="5"', "multiple of the 5 GPUs"),
    "too many gpus": (r'ngpus="4"', 'ngpus="4000000000"', 'ngpus is "4000000000"'),
    "gpu twice": (r'gpu id="1"', 'gpu id="0"', "gpu 0 is there twice"),
    "gpu missing": (r'(?s)  <gpu id="3".*</gpu>\n', "", "gpu 3 is missing"),
    "block numbering": (r'tb id="4"', 'tb id="5"', "expected an integer 0..4"),
    "step numbering": (r'<step s="0"', '<step s="1"', "gpu 0, tb 0, step 0: s is 1; expected 0"),
    "not a number": (r'cnt="1"', 'cnt="one"', 'cnt is "one"'),
    "count 0": (r'cnt="1"', 'cnt="0"', 'gpu 0, tb 0, step 0: cnt is "0"'),
    "count past the end": (r'cnt="1"', 'cnt="5"', "rank 0, thread block 0, step 0.*outside"),
    "offset": (r'srcoff="3"', 'srcoff="4"', "input chunks 4..4, outside of the buffer of 4"),
    "buffer": (r'srcbuf="i"', 'srcbuf="x"', 'srcbuf is "x"; expected i or o or s'),
    "type": (r'type="s"', 'type="send"', 'type is "send"'),
    "reduction": (r'type="r"', 'type="rrc"', "type rrc reduces data"),
    "peer": (r'send="1"', 'send="7"', "send_to peer is rank 7"),
    "own peer": (r'send="1"', 'send="0"', "send_to peer is rank 0"),
    "no peer": (r'send="1"', 'send="-1"', "no rank to send to"),
    "shared fifo": (r'send="3"', 'send="1"', "thread blocks 1 and 2 share the send_to FIFO"),
    "channel": (r'chan="0"', 'chan="1"', 'chan is "1"; expected 0'),
    "no such wait": (r'depid="4" deps="1"', 'depid="9" deps="1"', "waits for tb 9, step 1"),
    "unannounced": (r'hasdep="1"', 'hasdep="0"', "does not have hasdep=1"),
    "hasdep": (r'hasdep="0"', 'hasdep="2"', 'hasdep is "2"'),
    "counts": (
        r'type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1"',
        'type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="2"',
        "sends 2 chunks where rank 1.*receives 1",
    ),
}


@pytest.mark.parametrize("case", BREAKS)
def test_bad_files_are_refused_by_name(case: str) -> None:
    """Each defect gives one `FormatError` that names the element."""
    pattern, replacement, message = BREAKS[case]
    broken = re.sub(pattern, lambda _: replacement, RING, count=1)
    assert broken != RING
    with pytest.raises(FormatError, match=message):
        read_msccl(broken, "bad.xml")


NOPS = """<algo ngpus="2" nchunksperloop="2" nchannels="1" proto="Simple" coll="alltoall">
  <gpu id="0" i_chunks="2" o_chunks="2" s_chunks="0">
    <tb id="0" send="-1" recv="-1" chan="0">
      <step s="0" type="{kind}" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="{depid}" deps="0" hasdep="1"/>
      <step s="1" type="{then}" srcbuf="i" srcoff="1" dstbuf="o" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="cpy" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="1" depid="{back}" deps="0" hasdep="1"/>
    </tb>
  </gpu>
  <gpu id="1" i_chunks="2" o_chunks="2" s_chunks="0">
  </gpu>
</algo>"""  # noqa: E501


@pytest.mark.parametrize(
    ("kind", "depid", "then", "back", "message"),
    [
        ("cpy", 1, "cpy", 0, "wait for each other in a circle: rank 0, thread block"),
        ("nop", -1, "cpy", -1, "tb 0, step 0: a nop that waits for nothing"),
        ("nop", 1, "cpy", -1, "step 1: follows a nop"),
        ("cpy", -1, "nop", -1, "step 1: a nop that waits for nothing"),
        ("nop", 1, "cpy", 0, "step 1: follows a nop|or is a nop"),
    ],
)
def test_waits_must_make_sense(kind: str, depid: int, then: str, back: int, message: str) -> None:
    """Circles and nops that the runtime would miscount are refused."""
    text = NOPS.format(kind=kind, depid=depid, then=then, back=back)
    with pytest.raises(FormatError, match=message):
        read_msccl(text, "waits.xml")


def test_limits_are_those_of_the_runtime() -> None:
    """The same program fits one runtime and not another; the message says which number."""
    program = program_of(schedule_named("hypercube:3"), channels=12, most=71)
    check_limits(program, "msccl")
    with pytest.raises(LimitError, match=r"73 thread blocks per gpu \(rank 7\), but rccl takes"):
        check_limits(program, "rccl")
    assert RUNTIMES["msccl"].steps_per_thread_block == 256


def test_names_are_made_fit() -> None:
    """The special name, quotes and long names do not reach the file."""
    assert algorithm_name("2D") != "2D"
    assert algorithm_name('a "b" <c>') == "a_b_c_"
    assert len(algorithm_name("x" * 100)) == 63
