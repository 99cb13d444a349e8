"""Fabrics that exist: made once, removed whole, and nothing else touched."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from fabrics import RATE, fabric, needs_testbed

import alltoall
from alltoall.errors import InputError, MissingComponentError, UsageError
from alltoall.testbed.namespaces import (
    NAMESPACES,
    RECORDS,
    bed_called,
    beds,
    counted,
    cut,
    down,
    mend,
    remove_orphans,
    up,
)
from alltoall.testbed.plan import PREFIX
from command_line import Run

CUBE = alltoall.topology("hypercube:3")
EXEC = [sys.executable, "-m", "alltoall", "testbed", "exec"]


def left_of(name: str) -> list[str]:
    """Return what is left of a fabric: namespaces and records."""
    return [str(path) for path in (*NAMESPACES.glob(f"a2a-{name}-*"), *RECORDS.glob(f"{name}.*"))]


def others() -> set[Path]:
    """Return the namespaces that are not ours; fabrics of other tests come and go meanwhile."""
    return {each for each in NAMESPACES.glob("*") if not each.name.startswith(PREFIX)}


@needs_testbed
def test_a_fabric_is_made_once_and_removed_whole() -> None:
    """The same again is no work, another of that name is refused, and nothing stays."""
    before = others()
    with fabric(CUBE, "whole") as bed:
        assert len(counted(bed).sent) == CUBE.links
        assert up(CUBE, RATE, "whole") == bed
        with pytest.raises(UsageError, match="exists and is another"):
            up(CUBE, 2 * RATE, "whole")
        assert [each.plan.name for each in beds() if each == bed] == ["whole"]
    assert left_of("whole") == []
    assert others() == before
    assert not down("whole")


@needs_testbed
def test_what_somebody_else_made_stays() -> None:
    """A namespace of our kind of name without a record is not ours: no fabric in its place."""
    subprocess.run(["ip", "netns", "add", "a2a-theirs-3"], check=True)
    try:
        with pytest.raises(UsageError, match="no record says that alltoall made it"):
            up(CUBE, RATE, "theirs")
        assert not down("theirs")
        assert left_of("theirs") == [str(NAMESPACES / "a2a-theirs-3")]
    finally:
        subprocess.run(["ip", "netns", "delete", "a2a-theirs-3"], check=True)


HALF = """
import os, sys
import alltoall
from alltoall.testbed import namespaces
def dies(*_):
    os.kill(os.getpid(), 9)
namespaces._inside = dies
namespaces.up(alltoall.topology("hypercube:3"), 1e6, sys.argv[1], owner=os.getpid())
"""


@needs_testbed
def test_what_was_killed_half_way_is_removed() -> None:
    """Killed between the namespaces and their insides: a record is there, and `down` finds all."""
    done = subprocess.run([sys.executable, "-c", HALF, "half"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(left_of("half")) == CUBE.nodes + 1
    with pytest.raises(InputError, match="not whole"):
        bed_called("half")
    remove_orphans()
    assert left_of("half") == []


def kill_up(name: str, node: int) -> None:
    """Kill what makes the cube as soon as a node of it exists."""
    words = ["testbed", "up", "hypercube:3", "--rate", "10mbit", "--fabric", name]
    making = subprocess.Popen([sys.executable, "-m", "alltoall", *words])
    while not (NAMESPACES / f"a2a-{name}-{node}").exists():
        assert making.poll() is None
    making.kill()
    making.wait()


@needs_testbed
@pytest.mark.parametrize("node", [0, 5])
def test_after_a_killed_up_it_is_removed_or_made(node: int) -> None:
    """Killed while `ip` makes namespaces: whoever comes next waits for it, and finds all of it."""
    name = f"killed{node}"
    try:
        kill_up(name, node)
        assert down(name)
        assert left_of(name) == []
        kill_up(name, node)
        assert len(counted(up(CUBE, RATE, name)).sent) == CUBE.links
    finally:
        down(name)
    assert left_of(name) == []


@needs_testbed
def test_a_fabric_that_lost_a_part_is_not_used() -> None:
    """Somebody removed a namespace: what is left can be removed, and nothing runs on it."""
    with fabric(CUBE, "torn"):
        subprocess.run(["ip", "netns", "delete", "a2a-torn-5"], check=True)
        with pytest.raises(InputError, match="not whole"):
            bed_called("torn")
    assert left_of("torn") == []


@needs_testbed
def test_what_runs_inside_ends_with_the_fabric() -> None:
    """A process in a namespace would keep it alive without a name."""
    with fabric(CUBE, "busy") as bed:
        prefix = bed.prefix()
        prefix.insert(-1, "3")
        sleeper = subprocess.Popen([*prefix, "sleep", "600"])
        inside = (NAMESPACES / "a2a-busy-3").stat().st_ino
        while Path(f"/proc/{sleeper.pid}/ns/net").stat().st_ino != inside:
            assert sleeper.poll() is None
    assert sleeper.wait() in (-signal.SIGTERM, -signal.SIGKILL)


@needs_testbed
def test_a_cut_is_kept_and_mended() -> None:
    """The record knows what is cut; a second `up` of the same fabric joins it again."""
    with fabric(CUBE, "cuts") as bed:
        changed = cut(bed, (0, 1))
        ends = {(int(CUBE.tail[x]), int(CUBE.head[x])) for x in changed.cut}
        assert ends == {(0, 1), (1, 0)}
        assert bed_called("cuts") == changed
        assert up(CUBE, RATE, "cuts").cut == ()
        assert mend(cut(bed, (0, 2))) == bed
        with pytest.raises(UsageError, match="no link between 0 and 7"):
            cut(bed, (0, 7))


@needs_testbed
def test_the_verb_makes_shows_and_removes(run: Run) -> None:
    """What a user types, in this order."""
    try:
        made = run("testbed", "up", "ring:4", "--rate", "10mbit", "--fabric", "verb", "--json").json
        assert (made["fabric"]["links"], made["fabric"]["rate"]) == (8, 1.25e6)
        shown = run("testbed", "status", "--fabric", "verb", "--json").json
        assert shown["fabrics"][0]["drops"] == 0
        assert "cut: link" in run("testbed", "cut", "0-1", "--fabric", "verb").out
        told = subprocess.run(
            [*EXEC, "--fabric", "verb", "--node", "2", "--", "ip", "-json", "address", "show"],
            capture_output=True,
            check=True,
        )
        assert "10.77.0.2" in [
            each["local"] for device in json.loads(told.stdout) for each in device["addr_info"]
        ]
    finally:
        assert run("testbed", "down", "--fabric", "verb", "--json").json["removed"]
    assert run("testbed", "down", "--fabric", "verb", "--json").json["removed"] is False


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("fly",), "No such command 'fly'"),
        (("up",), "Missing argument 'SPEC'"),
        (("down", "x"), "unexpected extra argument"),
        (("cut", "0-1", "--fabric", "nowhere"), "no fabric 'nowhere'"),
        (("exec",), "Missing argument"),
        (("up", "ring:4", "--rate", "10parsec"), "such as 100G, 25Gbps"),
    ],
)
@needs_testbed
def test_wrong_words_are_named(run: Run, words: tuple[str, ...], said: str) -> None:
    """Usage errors, and nothing is made."""
    found = run("testbed", *words)
    assert found.code == 2
    assert said in found.err


def test_who_cannot_have_one_is_told_what_to_use(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not root: exit code 5, and another way."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    found = run("testbed", "up", "ring:4")
    assert found.code == MissingComponentError.exit_code
    assert "alltoall simulate" in found.err
    monkeypatch.undo()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "install iproute2" in run("testbed", "status").err
