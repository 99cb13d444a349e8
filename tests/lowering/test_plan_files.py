"""MSCCL++ plans and oneCCL-style XML: defects are named, races and deadlocks found."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from lowering_cases import schedule_named

from alltoall.check.program.alltoall import check_plan
from alltoall.errors import FormatError, VerificationError
from alltoall.lowering.options import Options
from alltoall.lowering.programs.mscclpp import emit_mscclpp, read_mscclpp
from alltoall.lowering.programs.oneccl import emit_oneccl, read_oneccl
from alltoall.verification import verify_text

PLAN = emit_mscclpp(schedule_named("ring:4"), Options())
SCHEDULE = emit_oneccl(schedule_named("ring:4"), Options())

Json = dict[str, Any]
Change = Callable[[Json, list[Json]], Any]


def changed(change: Change) -> str:
    """Return the plan after a change to it, given its top and the ops of its first block."""
    plan = json.loads(PLAN)
    change(plan, plan["gpus"][0]["threadblocks"][0]["ops"])
    return json.dumps(plan)


def named(ops: list[Json], name: str) -> Json:
    """Return the first op of a name."""
    return next(op for op in ops if op["name"] == name)


BAD_PLANS: dict[str, tuple[Change, str]] = {
    "collective": (lambda plan, _: plan.update(collective="allreduce"), "collective is"),
    "packets": (lambda plan, _: plan.update(protocol="LL"), 'protocol is "LL"; expected Simple'),
    "in place": (lambda plan, _: plan.update(inplace=True), "inplace is true"),
    "no gpus": (lambda plan, _: plan.pop("gpus"), "gpus is missing"),
    "empty": (lambda plan, _: plan.update(gpus=[]), "0 input chunks for 0 GPUs"),
    "gpu order": (lambda plan, _: plan["gpus"].reverse(), "gpu 0: its id is 3"),
    "gpu count": (lambda plan, _: plan["gpus"].pop(), "4 input chunks for 3 GPUs"),
    "op": (lambda _, ops: ops[0].update(name="rres"), "threadblock 0, op 0: name is"),
    "op channel": (lambda _, ops: ops[0].update(channel_ids=[1]), "channel 1 of 1"),
    "many ops": (lambda _, ops: ops.extend([{"name": "nop"}] * 65), "at most 64"),
    "many channels": (lambda _, ops: ops[0].update(channel_ids=[0] * 9), "at most 8"),
    "size": (
        lambda _, ops: named(ops, "put")["src_buff"][0].update(size=2),
        "different sizes",
    ),
    "past the end": (
        lambda _, ops: [
            named(ops, "put")[key][0].update(size=9) for key in ("src_buff", "dst_buff")
        ],
        "rank 0, thread block 0, step .*outside of the buffer",
    ),
    "negative": (lambda _, ops: named(ops, "put")["src_buff"][0].update(index=-1), "index is -1"),
    "remote": (lambda _, ops: named(ops, "put")["dst_buff"][0].update(buffer_id=2), "buffer_id 2"),
    "barrier": (lambda _, ops: named(ops, "barrier").update(barrier_id=16), "barrier_id is 16"),
    "parties": (
        lambda _, ops: named(ops, "barrier").update(num_threadblocks=3),
        "a barrier of 3 thread blocks; the rank has 2",
    ),
    "group": (lambda _, ops: named(ops, "put").update(tbg_info={}), "tbg_info"),
    "several sources": (
        lambda _, ops: [
            named(ops, "put")["src_buff"].append({"type": "s", "index": 0, "size": 1}),
            named(ops, "put")["dst_buff"].append({"buffer_id": 0, "index": 0, "size": 1}),
        ],
        "puts from several buffers",
    ),
    "block channel": (
        lambda plan, _: plan["gpus"][0]["threadblocks"][0]["channels"][0].update(channel_ids=[9]),
        "memory channel 9 does not exist",
    ),
    "peer": (
        lambda plan, _: plan["gpus"][0]["channels"][0].update(connected_to=[1, 8]),
        "rank 0, channel 1: leads to rank 8",
    ),
    "remote access": (
        lambda plan, _: plan["gpus"][0]["remote_buffers"][0].update(access_channel_types=["port"]),
        "remote buffer 0 is not there for memory access",
    ),
}


@pytest.mark.parametrize("case", BAD_PLANS)
def test_bad_plans_are_refused_by_name(case: str) -> None:
    """Each defect gives one `FormatError` that names the element."""
    change, message = BAD_PLANS[case]
    with pytest.raises(FormatError, match=message):
        read_mscclpp(changed(change), "plan.json")


def test_truncated_plans_are_refused() -> None:
    """Half a file is not a plan."""
    with pytest.raises(FormatError, match="may be truncated"):
        read_mscclpp(PLAN[: len(PLAN) // 2], "plan.json")


def without(name: str) -> Change:
    """Drop the last op of a name from the first block."""
    return lambda _, ops: ops.pop(max(i for i, op in enumerate(ops) if op["name"] == name))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("signal"), "deadlock: rank 1, thread block .* waits for a signal from rank 0"),
        (without("wait"), "rank 0 never waits for 1 signals"),
        (without("barrier"), "deadlock: rank 0, thread block 1.*barrier 0"),
        (without("nop"), "race: "),
        (without("copy"), "rank 0, output chunk 0: found nothing; expected chunk 0 of the shard"),
        (lambda _, ops: ops.append(dict(ops[0])), "rank 1 never waits for 1 signals"),
    ],
)
def test_plans_that_do_not_work_are_found(change: Change, message: str) -> None:
    """Executing the plan finds missing signals, waits, barriers and order."""
    with pytest.raises(VerificationError, match=message):
        verify_text(changed(change), "plan.json")


def test_port_channels_put_with_signal() -> None:
    """A plan by hand with port channels: the put and its signal are one operation."""
    gpus = [
        {
            "id": rank,
            "input_chunks": 2,
            "output_chunks": 2,
            "scratch_chunks": 0,
            "threadblocks": [
                {
                    "id": 0,
                    "ops": [
                        {
                            "name": "pws",
                            "src_buff": [{"type": "i", "index": 1 - rank, "size": 1}],
                            "dst_buff": [{"buffer_id": 0, "index": rank, "size": 1}],
                            "channel_ids": [0],
                            "channel_type": "port",
                        },
                        {
                            "name": "copy",
                            "src_buff": [{"type": "i", "index": rank, "size": 1}],
                            "dst_buff": [{"type": "o", "index": rank, "size": 1}],
                        },
                        {"name": "wait", "channel_ids": [0], "channel_type": "port"},
                        {"name": "flush", "channel_ids": [0], "channel_type": "port"},
                    ],
                    "channels": [{"channel_type": "port", "channel_ids": [0]}],
                    "remote_buffer_refs": [
                        {"access_channel_type": "port", "remote_buffer_ids": [0]}
                    ],
                }
            ],
            "channels": [{"channel_type": "port", "connected_to": [1 - rank]}],
            "remote_buffers": [{"rank": 1 - rank, "type": "o", "access_channel_types": ["port"]}],
        }
        for rank in range(2)
    ]
    plan = {"name": "two", "collective": "alltoall", "protocol": "Simple", "inplace": False}
    report = check_plan(read_mscclpp(json.dumps(plan | {"gpus": gpus}), "two.json"))
    assert report.correct
    assert report.steps == 1


BAD_SCHEDULES = {
    "entities": (r"<schedule", '<!DOCTYPE a [<!ENTITY b "c">]><schedule', "document type"),
    "root": (r"(?s)<schedule.*", "<algo/>", "found <algo>; expected <schedule>"),
    "truncated": (r"(?s)</rank>.*", "", "not well-formed"),
    "version": (r'<schedule version="1"', '<schedule version="3"', 'version is "3"'),
    "ranks": (r'ranks="4"', 'ranks="5"', "4 ranks; expected 5"),
    "rank order": (r'rank id="0"', 'rank id="1"', "rank 0: its id is 1"),
    "extra attribute": (r'peer="1"', 'peer="1" tag="3"', "rank 0, instruction 1: <send>.*tag"),
    "missing attribute": (r' count="1"/>', "/>", "instruction 0: <copy>.*count"),
    "instruction": (r"<sync/>", "<barrier/>", "found <barrier>; expected send, receive"),
    "reduction": (r"<copy", "<reduce", "rank 0, instruction 0: reduces data"),
    "inside": (r"<sync/>", "<sync>now</sync>", "unexpected text or elements"),
    "between": (r"<sync/>", "now<sync/>", "unexpected text or elements"),
    "buffer": (r'buffer="input"', 'buffer="memory"', 'buffer is "memory"'),
    "number": (r'offset="1"', 'offset="-1"', 'offset is "-1"'),
    "huge": (r'scratch="2"', 'scratch="2147483647"', "chunks in all buffers"),
    "outside": (r'offset="1"', 'offset="4"', "rank 0, thread block 2, step 0.*outside"),
    "peer": (r'peer="1"', 'peer="4"', "send_to peer is rank 4"),
}


@pytest.mark.parametrize("case", BAD_SCHEDULES)
def test_bad_schedules_are_refused_by_name(case: str) -> None:
    """Each defect gives one `FormatError` that names the element."""
    pattern, replacement, message = BAD_SCHEDULES[case]
    broken = re.sub(pattern, lambda _: replacement, SCHEDULE, count=1)
    assert broken != SCHEDULE
    with pytest.raises(FormatError, match=message):
        read_oneccl(broken, "bad.xml")


def test_a_missing_sync_is_a_race() -> None:
    """Without the sync between two steps, forwarding is not ordered after receiving."""
    with pytest.raises(VerificationError, match=r"race|nothing has been written"):
        verify_text(SCHEDULE.replace("<sync/>", "", 1), "f.xml")
