"""`verify` on MSCCL files that we did not write: the layout that RCCL ships its algorithms in."""

from pathlib import Path

from command_line import Run

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
