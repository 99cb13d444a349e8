"""`alltoall schedule`, as a user calls it."""

import importlib.util
import json
from pathlib import Path

import pytest

from command_line import Run

KEYS = {"nodes", "links", "time", "bound", "gap", "method", "seconds", "steps", "chunks_per_shard"}


def test_json_has_the_agreed_keys(run: Run) -> None:
    """The keys of every verb, and those of a schedule."""
    found = run("schedule", "bipartite:4x4", "--json").json
    assert KEYS | {"fractional_time"} <= found.keys()
    assert found["time"] == pytest.approx(2.5)
    assert found["chunks_per_shard"] == 2


def test_a_saved_schedule_verifies_and_a_broken_one_does_not(run: Run, tmp_path: Path) -> None:
    """Exit code 4 and the first wrong send."""
    path = tmp_path / "schedule.json"
    assert run("schedule", "torus:3x3", "--host-bandwidth", 2, "-o", path).code == 0
    assert run("verify", path, "--json").json["gap"] == pytest.approx(0.0, abs=1e-9)
    value = json.loads(path.read_text())
    del value["time"], value["gap"]
    value["steps"][0].pop()
    path.write_text(json.dumps(value))
    broken = run("verify", path)
    assert broken.code == 4
    assert "chunk" in broken.err


def test_demand_and_steps(run: Run, tmp_path: Path) -> None:
    """An uneven demand is scheduled; too few steps are an input error."""
    path = tmp_path / "demand.txt"
    path.write_text("0 2 0 1\n0 0 1 0\n3 0 0 0\n0 0 0 0\n")
    found = run("schedule", "ring:4", "--demand", path, "--steps", 6, "--json").json
    assert found["time"] == pytest.approx(1.8)
    outcome = run("schedule", "ring:6", "--steps", 2)
    assert outcome.code == 3
    assert "needs at least 3" in outcome.err


def test_the_sccl_baseline_or_how_to_install_it(run: Run) -> None:
    """With z3, a verified schedule; without, exit code 5 and the command."""
    outcome = run("schedule", "ring:4", "--method", "sccl", "--json")
    if importlib.util.find_spec("z3") is None:
        assert outcome.code == 5
        assert "'.[sccl]' in a clone" in outcome.err
    else:
        assert outcome.json["method"] == "sccl"
        assert outcome.json["time"] >= outcome.json["bound"]
    assert run("schedule", "ring:4", "--method", "magic").code == 2
