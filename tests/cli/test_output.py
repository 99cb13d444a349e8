"""What is printed and saved: one object, safe characters, and neither loses the other."""

import json
import os
import subprocess
import sys
from pathlib import Path

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alltoall
from alltoall.cli.show import printable, show
from alltoall.cli.wording import lines_of
from alltoall.errors import UsageError
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import percent
from alltoall.lowering import TARGETS, targets_for
from alltoall.topologies.formats import FORMATS, read_topology, write_topology
from alltoall.topologies.spec import build
from command_line import Outcome, Run

TRIANGLE = [[a, b, 1] for a in range(3) for b in range(3) if a != b]
NAMES = {
    "umlaut": "Zöbel",
    "surrogate": "a\ud800b",
    "colour": "a\x1b[31mred\x07b",
    "title": "\x1b]0;owned\x07",
    "lines": "a\x0bb\x85c\u2028d\r\ne\tf",
    "backwards": "a\u202eb\u200bc",
    "xml": "a\x01<&\"'b\ufffe",
}
"""Names that a terminal would obey, that an encoding lacks, or that XML does not take."""


def named(folder: Path, name: str) -> Path:
    """Write a triangle of some name."""
    path = folder / "triangle.json"
    topology = {"format": "alltoall.topology/1", "name": name, "nodes": 3, "links": TRIANGLE}
    path.write_text(json.dumps(topology))
    return path


def process(*words: object, **options: object) -> "subprocess.CompletedProcess[str]":
    """Run alltoall as a process of its own."""
    command = [sys.executable, "-m", "alltoall", *map(str, words)]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run(command, check=False, timeout=300, **given)  # type: ignore[call-overload, no-any-return]


@given(st.text(), st.sampled_from(["ascii", "latin-1", "utf-8", None]))
def test_printed_text_is_safe(text: str, encoding: str | None) -> None:
    """It has no control character but the line's end, and every encoding takes it."""
    shown = printable(text, encoding)
    shown.encode(encoding or "utf-8")
    assert all(each.isprintable() or each == "\n" for each in shown)
    if text.isprintable() and encoding == "utf-8":
        assert shown == text


@pytest.mark.parametrize("name", NAMES)
def test_no_name_reaches_the_terminal_raw(run: Run, tmp_path: Path, name: str) -> None:
    """In no verb, be it answer or error; and every file can be written, whatever its format."""
    triangle = named(tmp_path, NAMES[name])
    schedule, routes = tmp_path / "schedule.json", tmp_path / "routes.json"
    calls: list[tuple[object, ...]] = [
        ("solve", triangle),
        ("schedule", triangle, "-o", schedule),
        ("route", triangle, "-o", routes),
        ("verify", schedule),
        ("topology", triangle, "--draw", tmp_path / "triangle.svg"),
    ]
    calls += [
        ("topology", triangle, "-o", tmp_path / to, "--to", to)
        for to, each in FORMATS.items()
        if each.writes
    ]
    calls += [
        ("lower", schedule, "--to", to, "-o", tmp_path / f"s.{to}") for to in targets_for(Schedule)
    ]
    calls += [
        ("lower", routes, "--to", to, "-o", tmp_path / f"r.{to}") for to in targets_for(Routes)
    ]
    calls += [
        ("verify", tmp_path / f"r.{to}", "--topology", triangle)
        for to in targets_for(Routes)
        if TARGETS[to].read is not None
    ]
    for words in calls:
        outcome = run(*words)
        assert outcome.code == 0, outcome.err
        said = outcome.out + outcome.err
        assert all(each.isprintable() or each == "\n" for each in said), words
    refused = run("solve", triangle, "--remove-link", "0-9")
    assert refused.code == 2
    assert all(each.isprintable() or each == "\n" for each in refused.err)


FORGED = "\nerror: all is well"
"""What a text in a file may end with, to look like a line of ours."""

HELD = {
    "topology": {"format": "alltoall.topology/1", "name": FORGED, "nodes": 3, "links": TRIANGLE},
    "too large": {"format": "alltoall.topology/1", "name": FORGED, "nodes": 0, "links": []},
    "disconnected": {
        "format": "alltoall.topology/1",
        "name": FORGED,
        "nodes": 4,
        "links": TRIANGLE,
    },
    "matrix": {"msccl_type": "topology", "name": FORGED, "links": [[0, 1], [1, 0]]},
    "cell": {"msccl_type": "topology", "name": "a", "links": [[0, FORGED], [1, 0]]},
}
"""Files with such a text, read or refused."""


def lines_like_ours(outcome: Outcome) -> list[str]:
    """Return the lines that begin as `FORGED` does after its line's end."""
    lines = (outcome.out + "\n" + outcome.err).splitlines()
    return [line for line in lines if line.strip().startswith(FORGED.strip())]


@pytest.mark.parametrize("name", HELD)
def test_no_text_of_a_file_forges_a_line(run: Run, tmp_path: Path, name: str) -> None:
    """A line's end in it is an escape: in answers, notes and errors."""
    path = tmp_path / "held.json"
    path.write_text(json.dumps(HELD[name]))
    for words in (("topology",), ("solve",), ("solve", "--remove-link", "0-9")):
        outcome = run(words[0], path, *words[1:])
        assert outcome.code in (0, 2, 3), words
        assert not lines_like_ours(outcome), words
        assert "all is well" in outcome.out + outcome.err, words


def test_no_text_of_a_lowered_file_forges_a_line(run: Run, tmp_path: Path) -> None:
    """Names of programs and plans, and what a table says of its routes."""
    schedule, routes = tmp_path / "schedule.json", tmp_path / "routes.json"
    assert run("schedule", "bipartite:2x2", "-o", schedule).code == 0
    assert run("route", "bipartite:2x2", "-o", routes).code == 0
    as_xml = FORGED.replace("\n", "&#10;")
    for made, target, old, new in (
        (schedule, "msccl", 'name="bipartite:2x2', f'name="bipartite:2x2{FORGED}'),
        (schedule, "mscclpp", '"name": "bipartite:2x2', '"name": "b' + json.dumps(FORGED)[1:-1]),
        (schedule, "oneccl", 'name="bipartite:2x2', f'name="bipartite:2x2{as_xml}'),
        (routes, "ompi", 'to="1"', f'to="1{as_xml}"'),
        (routes, "routes", '"method":"extp', '"method":"extp' + json.dumps(FORGED)[1:-1]),
    ):
        path = tmp_path / f"lowered.{target}"
        assert run("lower", made, "--to", target, "-o", path).code == 0
        text = path.read_text()
        assert old in text, target
        path.write_text(text.replace(old, new, 1))
        outcome = run("verify", path)
        assert not lines_like_ours(outcome), target
        assert "all is well" in outcome.out + outcome.err, target


def test_labels_of_a_graph_forge_no_line(run: Run, tmp_path: Path) -> None:
    """Nor do the names of attributes, in the note that says which of them was not used."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edge("a", "b" + FORGED, **{"width" + FORGED: 2.0})
    graph.add_edge("b" + FORGED, "a", capacity=3.0)
    path = tmp_path / "graph.graphml"
    nx.write_graphml(graph, path)
    for words in ((), ("--capacity-attribute", "nosuch")):
        outcome = run("topology", path, *words)
        assert not lines_like_ours(outcome), words
        assert "all is well" in outcome.out + outcome.err, words


def test_a_terminal_of_few_characters(tmp_path: Path) -> None:
    """What its encoding lacks is written as escapes, in answers, errors and help."""
    triangle = named(tmp_path, "Zöbel")
    plain = {**os.environ, "PYTHONIOENCODING": "ascii", "LC_ALL": "C"}
    described = process("topology", triangle, env=plain)
    assert (described.returncode, described.stderr) == (0, "")
    assert "Z\\xf6bel" in described.stdout
    refused = process("topology", "Zöbel", env=plain)
    assert refused.returncode == 2
    assert "Z\\xf6bel" in refused.stderr
    assert process("solve", "--help", env=plain).returncode == 0


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("solve", "nosuch:1"), 2),
        (("solve", "ring:5", "--no-such-option"), 2),
        (("solve", "ring:5", "--gap", "wide"), 2),
        (("solve",), 2),
        (("nosuch",), 2),
        (("solve", "ring:1"), 3),
        (("verify", "nosuch.json"), 3),
        (("verify", "wrong.json"), 4),
        (("topology", "ring:5", "-o", "x.nosuch"), 2),
        (("topology", "ring:5", "-o", "-", "--to", "json"), 2),
        (("run", "schedule.json", "--bytes", "1024G"), 3),
        (("run", "schedule.json", "--on", "mpi", "--bytes", "1024G"), 3),
    ],
)
def test_every_failure_is_one_object(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int
) -> None:
    """With the exit code and the message, which is on standard error too."""
    monkeypatch.chdir(tmp_path)
    assert run("schedule", "bipartite:2x3", "-o", "schedule.json").code == 0
    value = json.loads(Path("schedule.json").read_text())
    value["steps"][0].pop()
    del value["time"], value["gap"]
    Path("wrong.json").write_text(json.dumps(value))
    outcome = run(*words, "--json")
    assert outcome.code == code
    error = outcome.json["error"]
    assert error["code"] == code
    assert outcome.err == f"error: {error['message']}\n"


@pytest.mark.parametrize("verb", ["solve", "route", "schedule", "topology"])
def test_an_answer_that_cannot_be_saved_is_printed(run: Run, tmp_path: Path, verb: str) -> None:
    """And what failed is said, with its exit code, in words as in JSON."""
    (tmp_path / "file").write_text("")
    path = tmp_path / "file" / "flow.json"
    words = (verb, "bipartite:2x3", "-o", path)
    shown = run(*words)
    assert shown.code == 2
    assert "bipartite:2x3" in shown.out
    assert shown.err.startswith(f"error: {path}: cannot be written")
    found = run(*words, "--json")
    assert (found.code, found.json["error"]["code"], found.json["saved"]) == (2, 2, [])
    assert found.json["nodes"] == 5


def test_an_answer_that_cannot_be_printed_is_saved(run: Run, tmp_path: Path) -> None:
    """On a full disk that is said; a reader who has seen enough is no failure."""
    path = tmp_path / "flow.json"
    with Path("/dev/full").open("w") as full:
        outcome = process("solve", "ring:5", "-o", path, stdout=full)
    assert outcome.returncode == 2
    assert "output cannot be written: No space left on device" in outcome.stderr
    assert run("verify", path).code == 0
    path.unlink()
    code, said = unread("solve", "ring:5", "-o", str(path))
    assert (code, b"error" in said, b"Traceback" in said) == (0, False, False)
    assert run("verify", path).code == 0


def closed(stream: int, *words: object) -> "subprocess.CompletedProcess[str]":
    """Run alltoall in a process that is started without standard output (1) or error (2)."""
    command = [sys.executable, "-m", "alltoall", *map(str, words)]
    shell = ["sh", "-c", f'exec "$@" {stream}>&-', "sh", *command]
    return subprocess.run(shell, check=False, timeout=300, capture_output=True, text=True)


@pytest.mark.parametrize("words", [("--json",), ("-o", "-", "--to", "json"), ()], ids=len)
def test_without_standard_output(tmp_path: Path, words: tuple[str, ...]) -> None:
    """One message, whatever was to go there, and a file is saved."""
    path = tmp_path / "ring.svg"
    refused = closed(1, "topology", "ring:5", "--draw", path, *words)
    assert refused.returncode == 2
    assert "error: standard output is closed; expected somewhere" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert path.exists()


def test_without_standard_error() -> None:
    """What is saved to standard output stays alone there, and a failure is still an object."""
    piped = closed(2, "topology", "ring:5", "-o", "-", "--to", "json")
    assert json.loads(piped.stdout)["nodes"] == 5
    assert json.loads(closed(2, "solve", "nosuch:1", "--json").stdout)["error"]["code"] == 2


def unread(*words: str) -> tuple[int, bytes]:
    """Return the exit code and the errors of a call whose output nobody reads."""
    command = [sys.executable, "-m", "alltoall", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        said = child.stderr.read()
    return child.returncode, said


def test_help_that_nobody_reads_is_no_failure() -> None:
    """`alltoall solve --help | head -1`."""
    assert unread("solve", "--help") == (0, b"")


def test_standard_output_as_a_file(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The artefact alone is on standard output; what people read goes to standard error."""
    monkeypatch.chdir(tmp_path)
    flow = run("solve", "ring:5", "-o", "-")
    assert json.loads(flow.out)["format"] == "alltoall.flow/1"
    assert "the proven minimum" in flow.err
    drawn = run("topology", "ring:5", "--draw", "-")
    assert drawn.out.startswith("<svg")
    edges = run("topology", "ring:5", "-o", "-", "--to", "edgelist")
    assert "0 1" in edges.out
    assert run("schedule", "ring:4", "-o", "schedule.json").code == 0
    lowered = run("lower", "schedule.json", "--to", "msccl", "-o", "-")
    assert lowered.out.startswith("<algo")
    assert lowered.out == run("lower", "schedule.json", "--to", "msccl").out
    both = run("topology", "ring:5", "--draw", "-", "-o", "-", "--to", "json")
    assert (both.code, both.out) == (2, "")
    assert not Path("-").exists()


def test_what_is_found_is_in_words(run: Run, tmp_path: Path) -> None:
    """No names of fields, no bare True."""
    schedule, routes, flow = (tmp_path / f"{name}.json" for name in ("s", "r", "f"))
    program, table = tmp_path / "s.xml", tmp_path / "table.json"
    for words in (
        ("schedule", "bipartite:2x3", "-o", schedule),
        ("route", "ring:5", "-o", routes),
        ("solve", "ring:5", "-o", flow),
        ("lower", schedule, "--to", "msccl", "-o", program),
        ("lower", routes, "--to", "routes", "-o", table),
        ("verify", program, "--topology", "bipartite:2x3"),
        *(("verify", path) for path in (schedule, routes, flow, table)),
    ):
        shown = run(*words)
        assert shown.code == 0, shown.err
        labels = [line.split("  ")[0] for line in shown.out.splitlines()]
        assert not any("_" in label for label in labels), shown.out
        assert "True" not in shown.out


@pytest.mark.parametrize("rest", [-2e-16, 2.22e-16, 9e-16])
def test_a_gap_of_rounding_is_nothing(capsys: pytest.CaptureFixture[str], rest: float) -> None:
    """Last digits are shown neither as a gain nor as a gap; all that is more is shown."""
    show({"gap": rest, "loss": rest, "time": 1.0}, True, {})
    assert json.loads(capsys.readouterr().out) == {"gap": 0.0, "loss": 0.0, "time": 1.0}
    assert lines_of({"gap": rest}) == {"above bound": "0 %"}
    assert lines_of({"gap": 2e-14}) == {"above bound": "less than 0.001 %"}


def test_the_gap_of_a_schedule_is_that_of_whole_chunks(run: Run) -> None:
    """One number for the schedule against the bound, one for what chunks cost, no table."""
    words = ("schedule", "genkautz:n=9,d=3", "--method", "auto:max-chunks=2,loss=0")
    found, shown = run(*words, "--json").json, run(*words).out
    assert f"{percent(found['gap'])} above the proven limit" in shown
    assert f"optimum {found['fractional_time']:.6g} with as many steps" in shown
    assert len(max(shown.splitlines(), key=len)) < 100


@pytest.mark.parametrize("count", [1, 2])
def test_one_is_not_many(run: Run, count: int) -> None:
    """1 cable, 2 cables."""
    shown = run("topology", "torus:3x3", "--drop-links", count, "--drop-nodes", count).out
    ending = "" if count == 1 else "s"
    assert f"dropped {count} cable{ending} " in shown
    assert f"dropped {count} node{ending} " in shown


def test_one_is_not_many_in_what_is_found() -> None:
    """Nor where the form of a field has the noun; other numbers keep it."""
    found = lines_of({"max_sends_per_link": 1, "max_routes_per_pair": 1, "seconds": 1.0})
    assert list(found.values()) == ["1 send", "1 route at most", "1.00 s"]
    found = lines_of({"max_sends_per_link": 11, "bytes": 1000})
    assert list(found.values()) == ["11 sends", "1,000 bytes"]


def test_a_drawing_is_svg_or_refused(run: Run, tmp_path: Path) -> None:
    """A name that promises another format is not filled with SVG."""
    path = tmp_path / "ring.png"
    refused = run("topology", "ring:5", "--draw", path)
    assert refused.code == 2
    assert "ends in .svg" in refused.err
    assert not path.exists()


def test_nodes_without_links(run: Run, tmp_path: Path) -> None:
    """Too many for all cuts to be tried, half of them of no use: described all the same."""
    path = tmp_path / "islands.json"
    links = [[a, b, 1] for v in range(9) for a, b in ((v, (v + 1) % 9), ((v + 1) % 9, v))]
    value = {"format": "alltoall.topology/1", "nodes": 18, "links": links}
    path.write_text(json.dumps({**value, "terminals": list(range(9))}))
    found = run("topology", path, "--json").json
    assert found["bounds"]["cut"] == pytest.approx(10.0)


@pytest.mark.parametrize("text", ['{"format":[]}', '{"format":{}}', '{"format":7}', "{}"])
@pytest.mark.parametrize("verb", ["verify", "lower", "run", "solve"])
def test_a_format_that_is_no_word(run: Run, tmp_path: Path, verb: str, text: str) -> None:
    """Exit code 3 and what was found."""
    path = tmp_path / "file.json"
    path.write_text(text)
    outcome = run(verb, path, *(("--to", "msccl") if verb == "lower" else ()))
    assert outcome.code == 3
    assert "format" in outcome.err


def test_paths_as_text(tmp_path: Path) -> None:
    """The public functions take a path either way, and `build` says who reads files."""
    path = str(tmp_path / "ring.json")
    write_topology(alltoall.topology("ring:5"), path)
    assert read_topology(path) == read_topology(Path(path))
    for spec in (path, "ring.json", "folder/ring"):
        with pytest.raises(UsageError, match=r"alltoall\.topology"):
            build(spec)


def test_without_a_spec_the_families_are_listed(run: Run) -> None:
    """As the help of every verb says; what needs a topology still misses it."""
    listed = run("topology")
    assert listed.code == 0
    assert "genkautz:n=64,d=4" in listed.out
    assert run("topology", "--drop-links", 2).code == 2
    assert run("solve").code == 2
