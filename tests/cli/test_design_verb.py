"""`alltoall design`: a table for people, an object for programs, and files to build from."""

import json
from pathlib import Path

import numpy as np

from alltoall.topologies.formats import read_topology
from command_line import Run


def test_a_design_is_told_and_saved(run: Run, tmp_path: Path) -> None:
    """The table has the bound and every candidate; the files are read back."""
    names = ("best.json", "best.svg", "cables.csv")
    best, drawing, cables = (tmp_path / name for name in names)
    words = ("--output", best, "--draw", drawing, "--patch", cables)
    shown = run("design", "--nodes", 12, "--degree", 3, *words)
    assert shown.code == 0, shown.err
    assert "12 nodes, 3 ports each, one-way links" in shown.out
    assert "for any such network" in shown.out
    assert "genkautz:n=12,d=3,rewire=true" in shown.out
    assert "hypercube: nearest with 8 nodes" in shown.out
    assert drawing.read_text().startswith("<svg")
    assert cables.read_text().startswith("cable,from,from_port,to,to_port\n1,0,1,")
    topology = read_topology(best)
    assert set(topology.out_degree.tolist()) == {3}
    assert topology.provenance is not None
    assert "alltoall design" in json.dumps(json.loads(best.read_text())["provenance"])
    solved = run("solve", best, "--json").json
    assert f"{solved['time']:.4g}" in shown.out


def test_the_object_has_what_programs_need(run: Run) -> None:
    """Nodes, degree, the bound, the candidates and the best of them."""
    found = run("design", "--nodes", 10, "--degree", 3, "--bidirectional", "--json").json
    assert (found["nodes"], found["degree"], found["directed"]) == (10, 3, False)
    assert found["bound"] == 5.0
    assert found["best"]["time"] == min(each["time"] for each in found["candidates"]) == 5.0
    assert found["best"]["diameter"] == 2  # That of Petersen's graph.
    for each in found["candidates"]:
        assert {"name", "time", "ratio", "diameter", "layers"} <= each.keys()
        assert each["ratio"] * found["bound"] == each["time"]


def test_failures_and_a_workload(run: Run, tmp_path: Path) -> None:
    """Columns that were asked for are there."""
    matrix = np.ones((8, 8)) - np.eye(8)
    matrix[0] *= 3
    np.savetxt(tmp_path / "demand.csv", matrix, delimiter=",")
    words = ("--nodes", 8, "--degree", 3, "--failures", 2)
    shown = run("design", *words, "--workload", tmp_path / "demand.csv")
    assert shown.code == 0, shown.err
    assert "worst failure" in shown.out
    found = run("design", *words, "--json").json
    assert found["best"]["worst_failure"] >= found["best"]["time"] * (1 - 1e-3)


def test_what_cannot_be_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    """With one line that says what was expected."""
    for words, expected in (
        (("--nodes", 5, "--degree", 3, "--bidirectional"), "a cable takes two"),
        (("--nodes", 8, "--degree", 9), "a degree from 1 to 7"),
        (("--nodes", 8), "a number of nodes and a degree"),
        (("--nodes", 8, "--degree", 3, "--draw", tmp_path / "x.png"), "drawings are SVG"),
    ):
        outcome = run("design", *words)
        assert outcome.code == 2
        assert expected in outcome.err
