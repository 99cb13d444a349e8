"""Nodes by name on the command line: what is removed, set, demanded and grouped."""

from pathlib import Path

import pytest

from command_line import Run

FABRIC = """# a triangle of racks behind a switch
rack-a !spine 2
rack-b spine 2
rack-c spine 2
rack-a rack-b
"""


@pytest.fixture
def fabric(tmp_path: Path) -> Path:
    """Return an edge list with names."""
    path = tmp_path / "fabric.edges"
    path.write_text(FABRIC)
    return path


def test_the_description_has_the_names(run: Run, fabric: Path) -> None:
    """People see the first of them, programs all."""
    assert "rack-a, spine, rack-b, rack-c" in run("topology", fabric).out
    assert run("topology", fabric, "--json").json["names"][1] == "spine"


def test_links_and_nodes_by_name(run: Run, fabric: Path) -> None:
    """Notes say by name what was done."""
    words = ("--remove-link", "rack-a-rack-b", "--set-capacity", "spine->rack-c=4")
    notes = run("topology", fabric, *words, "--json").json["notes"]
    assert notes == [
        "removed 1 cable rack-a-rack-b",
        "set the capacity of spine -> rack-c to 4",
    ]
    found = run("topology", fabric, "--remove-node", "rack-c", "--json").json
    assert found["names"] == ["rack-a", "spine", "rack-b"]
    assert "names" not in run("topology", "ring:3", "--json").json


def test_halves_of_hosts_have_names(run: Run, fabric: Path) -> None:
    """They are called after their host."""
    names = run("topology", fabric, "--host-bandwidth", "1", "--json").json["names"]
    assert names[4:] == [f"rack-{host}/nic-{way}" for way in ("in", "out") for host in "abc"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--remove-node", "rack-d"), "no node 'rack-d'; expected a name, such as"),
        (("--remove-link", "rack-a-rack-d"), "did you mean"),
        (("--group", "rack-a,spine"), "node spine in it, which is not a terminal"),
        (("--group", "rack-a,rack-b", "--demand", "x"), "demand and groups"),
        (("--directed", "--parallel"), "expected one of them"),
    ],
)
def test_bad_names_are_usage_errors(
    run: Run, fabric: Path, words: tuple[str, ...], expected: str
) -> None:
    """Exit code 2, and what there is."""
    outcome = run("solve", fabric, *words)
    assert (outcome.code, outcome.out) == (2, "")
    assert expected in outcome.err


DEMANDS = {
    "entries.json": '{"format":"alltoall.demand/1","entries":[["rack-a","rack-b",3],[0,3,1]]}',
    "matrix.json": '{"format":"alltoall.demand/1","names":["rack-b","rack-a","rack-c"],'
    '"matrix":[[0,0,0],[3,0,1],[0,0,0]]}',
    "corner.csv": ",rack-b,rack-c\nrack-a,3,1\n",
    "order.csv": "rack-c,rack-a,rack-b\n0,0,0\n1,0,3\n0,0,0\n",
    "blanks.txt": "rack-b rack-c\nrack-a 3 1\n",
    "numbers.csv": "0,3,1\n0,0,0\n0,0,0\n",
}


@pytest.mark.parametrize("name", sorted(DEMANDS))
def test_demands_by_name(run: Run, fabric: Path, tmp_path: Path, name: str) -> None:
    """All forms say the same: three shards from a to b, and one to c."""
    path = tmp_path / name
    path.write_text(DEMANDS[name])
    found = run("solve", fabric, "--demand", path, "--json").json
    assert found["time"] == pytest.approx(4 / 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rack-a,rack-z\n0,1\n1,0\n", "no node 'rack-z'"),
        ("rack-a,spine\n0,1\n1,0\n", "names node spine, which is not a terminal"),
        ("rack-a,rack-a\n0,1\n1,0\n", "'rack-a' is there twice"),
        ("rack-a,rack-b\n0,1\n", "a matrix of 1x2 cells for 2 senders"),
        ("rack-a,rack-b\n", "names and no rows"),
        ('{"format":"alltoall.demand/1","entries":[["rack-a","nobody",1]]}', "no node 'nobody'"),
        ('{"format":"alltoall.demand/1","names":[1],"matrix":[[0]]}', "names is [1]"),
    ],
)
def test_bad_demands_by_name(
    run: Run, fabric: Path, tmp_path: Path, text: str, expected: str
) -> None:
    """Exit code 3, with the file and who is meant."""
    path = tmp_path / "demand"
    path.write_text(text)
    outcome = run("solve", fabric, "--demand", path)
    assert outcome.code == 3
    assert expected in outcome.err
    assert outcome.err.startswith(f"error: {path}: ")


def test_groups_by_name(run: Run, fabric: Path, tmp_path: Path) -> None:
    """An option for each group, or a file with one a line, by names or numbers."""
    both = run("solve", "complete:4", "--group", "0,1", "--group", "2,3", "--json").json
    assert both["time"] == pytest.approx(0.5)
    alone = run("route", fabric, "--group", "rack-a,rack-b", "--json").json
    assert alone["time"] == pytest.approx(1 / 3)
    path = tmp_path / "groups"
    path.write_text("# one group\nrack-a rack-b\n")
    again = run("schedule", fabric, "--group", f"@{path}", "--json").json
    assert again["bound"] == pytest.approx(1 / 3)
    path.write_text("rack-a rack-x\n")
    assert run("solve", fabric, "--group", f"@{path}").code == 3
    assert run("solve", fabric, "--group", "rack-a").code == 2


def test_undirected(run: Run, tmp_path: Path) -> None:
    """Links that have no way back get one, of any format; what is there already stays."""
    path = tmp_path / "one-way.edges"
    path.write_text("# directed\n0 1 2\n1 2\n2 1\n")
    found = run("topology", path, "--undirected", "--json").json
    assert (found["links"], found["bidirectional"]) == (4, True)
    assert found["notes"] == ["taken as undirected: 1 link added"]
    assert run("topology", "ring:4", "--undirected", "--json").json["notes"] == []
    assert run("topology", "debruijn:d=2,k=2", "--undirected", "--json").json["bidirectional"]
    path.write_text("# directed\n0 1 2\n1 0\n")
    assert "different capacities" in run("topology", path, "--undirected").err
