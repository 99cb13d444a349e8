"""Bad input: a documented exit code, one clear message, no traceback."""

import os
from pathlib import Path

import pytest

from command_line import Run

HEAD = '{"format":"alltoall.topology/1","name":"x",'
FILES = {
    "disconnected.json": HEAD + '"nodes":4,"links":[[0,1,1],[1,0,1],[2,3,1],[3,2,1]]}',
    "one.json": HEAD + '"nodes":1,"links":[],"terminals":[0]}',
    "cut-off.json": HEAD + '"nodes":3,"links":[[0,1,1],[1,0,1],[2,0,1]]}',
    "tiny.json": HEAD + '"nodes":2,"links":[[0,1,1e-320],[1,0,1e-320]]}',
    "mixed.json": HEAD + '"nodes":3,"links":[[0,1,1],[1,2,1e-310],[2,0,1],[1,0,1]]}',
    "wide.json": HEAD + '"nodes":2,"links":[[0,1,1e101],[1,0,1]]}',
    "zero.json": HEAD + '"nodes":2,"links":[[0,1,0],[1,0,1]]}',
    "negative.json": HEAD + '"nodes":2,"links":[[0,1,-1],[1,0,1]]}',
    "infinite.json": HEAD + '"nodes":2,"links":[[0,1,1e999],[1,0,1]]}',
    "nan.json": HEAD + '"nodes":2,"links":[[0,1,NaN],[1,0,1]]}',
    "truncated.json": HEAD + '"nodes":2,"links":[[0,1',
    "deep.json": "[" * 50_000,
    "huge.json": HEAD + '"nodes":1000000000000,"links":[]}',
    "unknown.json": '{"format":"alltoall.flow/9"}',
    "bomb.graphml": '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaa">]><graphml>&a;</graphml>',
    "garbage.edges": "0 1\nx y wide\n",
}

WORDS = {
    "disconnected.json": "cannot reach",
    "one.json": "at least 2",
    "cut-off.json": "(1 such terminal);",
    "tiny.json": "capacities from 9.99989e-321 to",
    "mixed.json": "capacities from 1e-310 to 1; expected 1e-100 to 1e+100",
    "wide.json": "capacities from 1 to 1e+101",
    "zero.json": "capacity 0",
    "negative.json": "capacity -1",
    "infinite.json": "capacity inf",
    "nan.json": "NaN",
    "truncated.json": "line 1",
    "deep.json": "nested",
    "huge.json": "1000000000000 nodes",
    "unknown.json": "alltoall.flow/9",
    "bomb.graphml": "bomb.graphml",
    "garbage.edges": "line 2",
}


@pytest.mark.parametrize("verb", ["solve", "topology"])
@pytest.mark.parametrize("name", FILES)
def test_a_bad_file_is_exit_code_3(run: Run, tmp_path: Path, name: str, verb: str) -> None:
    """The message names what is wrong in one paragraph."""
    path = tmp_path / name
    path.write_text(FILES[name])
    outcome = run(verb, path)
    assert outcome.code == 3
    assert WORDS[name] in outcome.err
    assert outcome.err.startswith("error: ")
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    assert run(verb, path, "--json").json["error"]["code"] == 3


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("solve", "tours:3x3"), 2, "torus"),
        (("solve", "torus:side=3"), 2, "dims"),
        (("solve", "genkautz:n=12"), 2, "d"),
        (("solve", "genkautz:n=twelve,d=3"), 2, "twelve"),
        (("solve", "ring:1"), 3, "ring"),
        (("solve", "torus:100000x100000"), 3, "torus"),
        (("solve", "nosuch.json"), 3, "no such file"),
        (("solve", "ring:5", "--method", "magic"), 2, "link, decomposed"),
        (("solve", "ring:5", "--method", "auto:solver=magic"), 2, "simplex"),
        (("solve", "ring:5", "--gap", "0"), 2, "gap 0"),
        (("solve", "ring:5", "--time-limit", "-1"), 2, "time limit -1"),
        (("solve", "ring:5", "--threads", "0"), 2, "0 workers"),
        (("solve", "ring:5", "--method", "auto:cluster=here"), 2, "tcp://localhost:8786"),
        (("route", "ring:5", "--method", "extp:cluster=here"), 2, "tcp://localhost:8786"),
        (("solve", "ring:5", "--link-bandwidth", "25"), 2, "25Gbps"),
        (("solve", "ring:5", "--host-bandwidth", "0"), 3, "0"),
        (("solve", "ring:5", "--host-bandwidth", "nan"), 3, "nan"),
        (("solve", "ring:5", "--drop-links", "9"), 3, "9"),
        (("solve", "ring:5", "--drop-links", "-1"), 3, "-1"),
        (("solve", "ring:5", "--remove-link", "0-2"), 3, "0"),
        (("solve", "ring:5", "--remove-link", "zero"), 2, "such as 3-4"),
        (("topology", "ring:5", "--set-capacity", "0-1=wide"), 2, "3-4=2.5"),
        (("solve", "ring:5", "--no-such-option"), 2, "no-such-option"),
        (
            ("solve", "ring:5", "--drop-links", "1", "--seed", "-1"),
            2,
            "seed -1; expected 0 or more",
        ),
        (("solve", "ring:5", "--remove-node", "9" * 20), 2, "expected one of 0..4"),
        (("solve", "ring:5", "--remove-link", "0-" + "9" * 20), 2, "such as 3-4"),
        (("solve", "ring:5", "--remove-link", "0-" + "9" * 5000), 2, "such as 3-4"),
        (("solve", "ring:5", "--remove-link", "0-9"), 2, "ring:5 has no node '9'"),
        (("topology", "ring:5", "--set-capacity", "0-1=" + "x" * 5000), 2, "3-4=2.5"),
        (("topology", "circulant:" + "x" * 5000), 2, "circulant"),
        (("topology", "nosuch" * 1000), 2, "unknown topology family"),
        (("topology", "./" + "x" * 5000), 3, "cannot be read"),
        (("topology", "ring:4", "--directed"), 2, "expected an edge-list file"),
        (("verify", "nosuch.json"), 3, "no such file"),
        (("topology", "ring:5", "--output", "x.nosuch"), 2, "nosuch"),
        (("topology", "ring:5", "--output", "x", "--to", "nosuch"), 2, "graphml"),
    ],
)
def test_bad_words(run: Run, words: tuple[str, ...], code: int, expected: str) -> None:
    """The exit code tells usage from input, and the message what to do."""
    outcome = run(*words)
    assert outcome.code == code
    assert expected in outcome.err
    assert "Traceback" not in outcome.err


LONG = "a" * 300
"""A name too long for any file."""


@pytest.mark.parametrize(
    "words",
    [
        ("compare", LONG),
        ("compare", "ring:4", "--output", f"{LONG}.json"),
        ("wrap", LONG, "--", "true"),
        ("wrap", f"{LONG}.json", "--export"),
        ("wrap", f"ring:4@{LONG}", "--", "true"),
        ("route", "ring:4", "--method", f"robust:demands={LONG}"),
        ("report", LONG, "--output", "page.html"),
        ("run", LONG),
        ("simulate", LONG),
        ("failures", LONG),
        ("testbed", "up", LONG),
        ("testbed", "exec", "--fabric", LONG, "--", "true"),
        ("workload", "moe", "--schedule", LONG),
        ("reproduce", "fft", "--against", LONG),
        ("solve", "ring:4", "--group", f"@{LONG}"),
        ("solve", "ring:4", "--background", LONG),
    ],
    ids=lambda words: words[0],
)
def test_an_impossible_name_of_a_file_is_refused(run: Run, words: tuple[str, ...]) -> None:
    """As one that does not exist, in every verb: the system is not to blame."""
    outcome = run(*words)
    assert outcome.code in (2, 3)
    assert outcome.err.startswith("error: ")
    assert "the system refused" not in outcome.err


def test_bad_demand_files(run: Run, tmp_path: Path) -> None:
    """Demand that does not fit is named, exit code 3."""
    path = tmp_path / "demand"
    for text, expected in (
        ("0 1\n1\n", "different lengths"),
        ("0 x\n1 0\n", "x"),
        ("0 1\n1 0\n", "expected 5x5"),
        ('{"format":"alltoall.demand/1","entries":[[0,9,1]]}', "node 9"),
        ("", "the file is empty"),
        ("\n \n", "the file is empty"),
    ):
        path.write_text(text)
        outcome = run("solve", "ring:5", "--demand", path)
        assert outcome.code == 3, text
        assert expected in outcome.err


@pytest.mark.parametrize("options", [(), ("--format", "json")])
def test_only_regular_files_are_read(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    """A directory or a pipe, which would block, is no topology: exit code 3."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    for name, kind in (("pipe", "a pipe"), ("folder", "a directory")):
        outcome = run("topology", name, *options)
        assert outcome.code == 3
        assert f"{name}: {kind}" in outcome.err
        assert "not a regular file" in outcome.err


@pytest.mark.parametrize("name", ["empty", "empty.json", "empty.edges", "empty.xml"])
def test_an_empty_file_is_exit_code_3(run: Run, tmp_path: Path, name: str) -> None:
    """Whatever its name, the message says that there is nothing in it."""
    (tmp_path / name).write_text(" \n")
    outcome = run("topology", tmp_path / name)
    assert outcome.code == 3
    assert "the file is empty" in outcome.err


def test_options_that_would_do_nothing_are_refused(run: Run, tmp_path: Path) -> None:
    """A format without a file, and a topology for a file that has its own."""
    found = run("topology", "ring:4", "--to", "edgelist")
    assert (found.code, found.out) == (2, "")
    assert "--to edgelist without a file to write" in found.err
    assert run("topology", "ring:4", "--to", "edgelist", "-o", "-").code == 0
    for verb, kind in (("route", "Routes"), ("topology", "Topology")):
        assert run(verb, "ring:4", "-o", tmp_path / "file.json").code == 0
        found = run("verify", tmp_path / "file.json", "--topology", "ring:5")
        assert found.code == 2
        assert f"a topology for a file ({kind}) that has its own" in found.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("route", "--method", "singel:k=2,bar=1"), "method 'singel' is unknown, and no known one"),
        (("solve", "--method", "link:symmetry=no"), "expected symmetry= true or false"),
        (("route", "--method", "single:destination-based=no"), "destination-based= true or false"),
        (("route", "--method", "deadlock-free:change=no"), "expected change= true or false"),
        (("schedule", "--method", "list:demands=skew+mine"), "'mine' is none of skew, pairs"),
    ],
)
def test_messages_about_settings_say_what_is_expected(
    words: tuple[str, ...], message: str, run: Run
) -> None:
    """The name that is wrong, and the words that a setting may have."""
    verb, *rest = words
    found = run(verb, "ring:4", *rest)
    assert found.code == 2
    assert message in found.err


def test_the_solver_in_the_help_exists(run: Run) -> None:
    """An example of a setting is one that works."""
    found = run("solve", "--help-all").out
    name = found.split("a solver of linear programs, such as ")[1].split()[0]
    assert run("solve", "ring:4", "--method", f"link:solver={name}").code == 0
