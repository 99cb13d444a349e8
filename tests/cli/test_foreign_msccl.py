"""`verify` on MSCCL files that we did not write: the layout that RCCL ships its algorithms in."""

import re
from pathlib import Path

import pytest

from alltoall.errors import UsageError
from alltoall.lowering import TARGETS
from alltoall.lowering.options import Options
from alltoall.lowering.programs.msccl_emit import NEEDED, RUNTIMES, emit_msccl
from alltoall.lowering.programs.msccl_read import complete_msccl, read_msccl
from alltoall.topologies.spec import build
from command_line import Run
from hop_schedules import hop_schedule

STEP = (
    '      <step s="0" type="{kind}" srcbuf="i" srcoff="{src}" dstbuf="o" dstoff="{dst}" cnt="1" '
    'depid="-1" deps="-1" hasdep="0"/>'
)


def direct_alltoall(ranks: int, wrong: bool = False) -> str:
    """Return a one-step all-to-all: comments first, one thread block per copy, receive and send."""
    lines = [
        "<!-- A comment. -->",
        "<!-- Another one. -->",
        f'<algo name="direct" proto="LL" nchannels="1" nchunksperloop="{ranks}" ngpus="{ranks}" '
        'coll="alltoall" inplace="0" outofplace="1" minBytes="0" maxBytes="9216">',
    ]
    for rank in range(ranks):
        others = [other for other in range(ranks) if other != rank]
        sizes = f'i_chunks="{ranks}" o_chunks="{ranks}" s_chunks="0"'
        lines.append(f'  <gpu id="{rank}" {sizes}>')
        blocks = [("-1", "-1", "cpy", rank, rank)]
        blocks += [("-1", str(other), "r", rank, other) for other in others]
        blocks += [(str(other), "-1", "s", other, rank) for other in others]
        if wrong and rank == 2:
            blocks[-1] = (*blocks[-1][:3], 0, rank)  # another rank's chunk
        for index, (send, recv, kind, src, dst) in enumerate(blocks):
            lines.append(f'    <tb id="{index}" send="{send}" recv="{recv}" chan="0">')
            lines.append(STEP.format(kind=kind, src=src, dst=dst))
            lines.append("    </tb>")
        lines.append("  </gpu>")
    return "\n".join([*lines, "</algo>", ""])


def test_a_shipped_layout_is_read_and_executed(run: Run, tmp_path: Path) -> None:
    """It is a correct all-to-all, one step deep, and its time is held against our bound."""
    path = tmp_path / "direct.xml"
    path.write_text(direct_alltoall(8))
    found = run("verify", path, "--topology", "complete:8", "--json").json
    assert found["correct"] is True
    assert (found["ranks"], found["sends"], found["time"], found["bound"]) == (8, 56, 1.0, 1.0)


def test_a_stray_send_is_not_on_the_topology(run: Run, tmp_path: Path) -> None:
    """On a cube the direct all-to-all uses links that are not there."""
    path = tmp_path / "direct.xml"
    path.write_text(direct_alltoall(8))
    outcome = run("verify", path, "--topology", "hypercube:3")
    assert outcome.code == 4
    assert "rank 0 sends to rank 3" in outcome.err


def test_the_first_wrong_chunk_is_named(run: Run, tmp_path: Path) -> None:
    """A send of another chunk ends in the wrong place, and the place is told."""
    path = tmp_path / "wrong.xml"
    path.write_text(direct_alltoall(8, wrong=True))
    outcome = run("verify", path)
    assert outcome.code == 4
    assert "rank 7" in outcome.err


def lacking(*attributes: str) -> str:
    """Return the direct all-to-all without some attributes, as msccl-tools leaves them out."""
    text = direct_alltoall(4)
    for key in attributes:
        text = re.sub(rf' {key}="[^"]*"', "", text, count=1)
    return text


@pytest.mark.parametrize("key", sorted({key for keys in NEEDED.values() for key in keys}))
def test_a_runtime_is_claimed_only_if_its_parser_takes_the_file(
    run: Run, tmp_path: Path, key: str
) -> None:
    """What is missing is named for each runtime that requires it, and for no other."""
    path = tmp_path / "foreign.xml"
    path.write_text(lacking(key))
    found = run("verify", path, "--json").json
    rejecting = {name for name in RUNTIMES if key in NEEDED[name]}
    assert set(found["refused_by"]) == rejecting
    assert set(found["runtimes"]) == set(RUNTIMES) - rejecting
    for reason in found["refused_by"].values():
        assert f"its parser requires {key}, which the file does not have" in reason
    lines = run("verify", path).out
    assert all(f"{name}: its parser requires {key}" in lines for name in rejecting)


def test_a_limit_is_told_per_runtime(run: Run, tmp_path: Path) -> None:
    """A file that only some runtimes have room for says of the others what is too much."""
    path = tmp_path / "wide.xml"
    path.write_text(emit_msccl(hop_schedule(build("hypercube:3")), Options(channels=24)))
    found = run("verify", path, "--json").json
    assert found["runtimes"] == ["msccl", "executor"]
    assert "121 thread blocks per gpu" in found["refused_by"]["rccl"]


def test_a_foreign_file_is_completed(run: Run, tmp_path: Path) -> None:
    """All three parsers take what comes out; what the file said, it still says."""
    path, output = tmp_path / "foreign.xml", tmp_path / "complete.xml"
    path.write_text(lacking("outofplace", "minBytes", "maxBytes"))
    summary = run("lower", path, "--to", "msccl:max-bytes=4K", "-o", output, "--json").json
    assert summary["runtimes"] == list(RUNTIMES)
    assert "refused_by" not in summary
    text = output.read_text()
    for attribute in ('proto="LL"', 'outofplace="1"', 'minBytes="0"', 'maxBytes="4096"'):
        assert attribute in text
    assert read_msccl(text, "complete") == read_msccl(path.read_text(), "foreign")
    found = run("verify", output, "--topology", "complete:4", "--json").json
    assert (found["correct"], found["time"]) == (True, 1.0)


def test_bounds_of_the_file_stay() -> None:
    """Options fill in what is missing and change nothing that is there."""
    text = direct_alltoall(4).replace('minBytes="0"', 'minBytes="64"')
    found = complete_msccl(text, Options(max_bytes=1), "file")
    assert 'minBytes="64" maxBytes="9216"' in found
    assert 'proto="LL"' in complete_msccl(text, Options(protocol="LL"), "file")


@pytest.mark.parametrize("options", [Options(channels=2), Options(protocol="LL128")])
def test_what_a_lowered_file_cannot_change_is_refused(options: Options) -> None:
    """Channels and protocol are chosen when a schedule is lowered."""
    with pytest.raises(UsageError, match=r"(channels=2|protocol=LL128) for a lowered file"):
        complete_msccl(direct_alltoall(4), options, "file")


def test_a_completed_file_must_be_right_and_fit(run: Run, tmp_path: Path) -> None:
    """Other targets, wrong programs, other XML and programs that do not fit are never written."""
    path, output = tmp_path / "foreign.xml", tmp_path / "never.xml"
    wide = emit_msccl(hop_schedule(build("hypercube:3")), Options(channels=24))
    oneccl = TARGETS["oneccl"].emit(hop_schedule(build("ring:4")), Options())
    for text, words, code, message in (
        (lacking(), ("--to", "oneccl"), 2, "target 'oneccl' for an MSCCL file; expected msccl"),
        (direct_alltoall(8, wrong=True), ("--to", "msccl"), 4, "rank 7, output chunk 2"),
        (wide, ("--to", "msccl:runtime=rccl"), 3, "rccl takes at most 64"),
        (oneccl, ("--to", "msccl"), 3, "a lowered program; expected 'alltoall.schedule/1'"),
        ("\ufeff <graphml/>", ("--to", "msccl"), 3, "XML; expected 'alltoall.schedule/1'"),
    ):
        path.write_text(text)
        outcome = run("lower", path, *words, "-o", output)
        assert (outcome.code, message in outcome.err) == (code, True), outcome.err
        assert not output.exists()
