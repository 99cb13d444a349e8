"""`solve --survive`: a flow for every failure, before it happens."""

from pathlib import Path

import pytest

import alltoall
from alltoall.flows import SolveSettings
from alltoall.flows.survive import survive_failures
from alltoall.flows.warm import unserved
from alltoall.ir.problem import Problem
from alltoall.topologies.operators import remove_links
from command_line import Run


def test_every_failure_has_a_flow_that_verifies(run: Run, tmp_path: Path) -> None:
    """With the worst loss said, on the command line."""
    folder = tmp_path / "over"
    words = ("solve", "mesh:2x3", "--survive", "links:1", "--switch-over", folder)
    found = run(*words, "--json").json["survive"]
    assert (found["failures"], found["cut_off"]) == (7, [])
    assert found["worst_loss"] >= found["mean_loss"] >= 0
    assert found["worst_gap"] <= 1e-6
    files = sorted(folder.iterdir())
    assert len(files) == 7
    for file in files:
        assert run("verify", file).code == 0
    assert "as it is, this flow would leave up to" in run(*words).out


def test_the_worst_loss_is_that_of_a_solve_from_scratch() -> None:
    """Each failure is solved to the gap asked for."""
    flow = alltoall.solve("ring:5")
    found = survive_failures(flow, "links:1", SolveSettings())
    line = alltoall.solve(remove_links(flow.problem.topology, [(0, 1)]))
    assert [each.time for each in found.survivors] == pytest.approx([line.time] * 5)


def test_a_flow_loses_what_crossed_the_failed_cable() -> None:
    """On a ring of three, that is what its two ends send each other."""
    flow = alltoall.solve("ring:3")
    left = Problem.all_to_all(remove_links(flow.problem.topology, [(0, 1)]))
    assert unserved(left, flow) == pytest.approx(2 / 6)
    assert unserved(flow.problem, flow) == pytest.approx(0.0)


def test_a_pair_that_is_cut_off_is_said(run: Run) -> None:
    """That is no failure of the command; a folder without failures is."""
    done = run("solve", "mesh:1x3", "--survive", "nodes:1", "--json")
    assert done.json["survive"]["cut_off"] == ["node 1"]
    assert run("solve", "ring:4", "--switch-over", "x").code == 2
