"""`alltoall topology`, the help texts, and units."""

import json
import math
import xml.etree.ElementTree as ET
from pathlib import Path

import networkx as nx
import pytest

from alltoall.cli.verbs import VERBS
from alltoall.topologies.families import FAMILIES
from alltoall.topologies.formats import FORMATS
from command_line import Run


def test_description(run: Run) -> None:
    """The numbers that tell topologies apart."""
    found = run("topology", "torus:3x3x3", "--json").json
    assert found["nodes"] == 27
    assert found["links"] == 162
    assert found["out_degree"] == [6, 6]
    assert found["diameter"] == 3
    assert found["automorphisms"] == 1296
    assert found["bounds"]["distance"] == pytest.approx(9.0)


def test_dropped_self_loops_are_reported(run: Run) -> None:
    """Generalized Kautz graphs tell what degree is left; rewiring leaves no port idle."""
    plain = run("topology", "genkautz:n=12,d=4")
    assert "loop" in plain.out
    assert "3 to 4 out" in plain.out
    assert run("topology", "genkautz:n=12,d=4,rewire=true", "--json").json["out_degree"] == [4, 4]


def test_every_family_and_format_is_listed(run: Run) -> None:
    """The list is complete without a SPEC."""
    listed = run("topology")
    assert listed.code == 0
    assert all(family.example in listed.out for family in FAMILIES.values())
    assert all(name in listed.out for name in FORMATS)


def test_the_list_as_json(run: Run) -> None:
    """One object."""
    found = run("topology", "--json").json
    assert found["families"].keys() == FAMILIES.keys()
    assert found["families"]["ring"]["example"] == "ring:6"
    assert all(family["summary"] for family in found["families"].values())
    assert found["formats"].keys() == FORMATS.keys()
    assert found["formats"]["simgrid"] == {
        "summary": "SimGrid platform XML",
        "reads": False,
        "suffixes": [".xml"],
    }


@pytest.mark.parametrize(
    "words", [("--draw", "x.svg"), ("--output", "x.json"), ("--to", "graphml")]
)
def test_a_list_is_not_saved(run: Run, tmp_path: Path, words: tuple[str, ...]) -> None:
    """What was asked for is not left out in silence."""
    outcome = run("topology", *words)
    assert outcome.code == 2
    assert "name one SPEC to save it" in outcome.err


def test_a_spec_longer_than_a_file_name_is_built(run: Run) -> None:
    """What begins with a family is not looked up as a file."""
    jumps = "x".join(map(str, range(1, 120)))
    found = run("topology", f"circulant:n=250,jumps={jumps}", "--json").json
    assert found["out_degree"] == [238, 238]


def test_a_family_goes_before_a_file_of_its_name(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file is read where it is written as a path."""
    monkeypatch.chdir(tmp_path)
    Path("dgx1").write_text("0 1\n")
    assert run("topology", "dgx1", "--json").json["nodes"] == 8
    assert run("topology", "dgx1", "--format", "edgelist", "--json").json["nodes"] == 2


def test_counts_of_thousands_of_digits(run: Run) -> None:
    """1700! is shown by its logarithm, smaller counts in full beside theirs."""
    large = run("topology", "bipartite:1x1700", "--json").json
    assert large["automorphisms"] is None
    assert large["automorphisms_log10"] == pytest.approx(math.lgamma(1701) / math.log(10))
    small = run("topology", "bipartite:1x4", "--json").json
    assert small["automorphisms"] == 24
    assert small["automorphisms_log10"] == pytest.approx(math.log10(24))
    assert "about 10^375 automorphisms" in run("topology", "bipartite:1x200").out


@pytest.mark.parametrize("suffix", ["json", "edges", "graphml"])
def test_conversion_round_trip(run: Run, tmp_path: Path, suffix: str) -> None:
    """What is written can be solved, and gives the same answer."""
    path = tmp_path / f"kautz.{suffix}"
    assert run("topology", "genkautz:n=12,d=3", "-o", path).code == 0
    times = [run("solve", spec, "--json").json["time"] for spec in ("genkautz:n=12,d=3", path)]
    assert times[0] == pytest.approx(times[1])
    assert run("verify", path).code == 0


def test_drawing_is_svg(run: Run, tmp_path: Path) -> None:
    """One line per cable and one disc per node."""
    path = tmp_path / "ring.svg"
    assert run("topology", "ring:5", "--draw", path).code == 0
    shapes = [element.get("class") for element in ET.fromstring(path.read_text()).iter()]
    assert shapes.count("cable") == 5
    assert shapes.count("node") == 5


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help_with_an_example(run: Run, verb: str) -> None:
    """Help says what the verb does and shows a call."""
    outcome = run(verb, "--help")
    assert outcome.code == 0
    assert f"alltoall {verb}" in outcome.out
    assert "Example" in outcome.out


def test_the_capacity_attribute_is_named(run: Run, tmp_path: Path) -> None:
    """Weights of GraphML are capacities if the user says so, and nothing is guessed if not."""
    path = tmp_path / "net.graphml"
    graph: nx.Graph[int] = nx.Graph()
    graph.add_weighted_edges_from((node, (node + 1) % 4, 4.0) for node in range(4))
    nx.write_graphml(graph, path)
    refused = run("topology", path)
    assert refused.code == 3
    assert "--capacity-attribute weight" in refused.err
    taken = run("topology", path, "--capacity-attribute", "weight", "--json").json
    assert taken["capacity"] == [4.0, 4.0]
    built = run("topology", "ring:4", "--capacity-attribute", "weight")
    assert (built.code, "GraphML" in built.err) == (2, True)
    plain = run("topology", write_edges(tmp_path), "--capacity-attribute", "weight")
    assert (plain.code, "no line has the attribute" in plain.err) == (3, True)


def write_edges(folder: Path) -> Path:
    """Return the path of an edge list."""
    path = folder / "net.edges"
    path.write_text("0 1\n1 2\n2 0\n")
    return path


def test_a_file_says_where_it_comes_from(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a block of its own; with a stated date equal calls give equal files."""
    path = tmp_path / "ring.json"
    words = ("topology", "ring:4", "--drop-links", 1, "--seed", 5, "-o", path)
    assert run(*words).code == 0
    value = json.loads(path.read_text())
    made = value.pop("provenance")
    assert (made["command"], made["seed"]) == (f"alltoall {' '.join(map(str, words))}", 5)
    assert "made by" in run("verify", path).out
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert run(*words).code == 0
    text = path.read_text()
    assert run(*words).code == 0
    assert path.read_text() == text
    assert json.loads(text)["provenance"]["date"] == "1970-01-01T00:00:00Z"
    assert json.loads(text).keys() == {*value, "provenance"}
