"""`alltoall solve` and `alltoall verify`, as a user calls them."""

import json
from pathlib import Path

import pytest

import alltoall
from command_line import Run

KEYS = {"nodes", "links", "time", "bound", "gap", "method", "seconds"}


def test_json_is_one_object_with_the_agreed_keys(run: Run) -> None:
    """Standard output is one JSON object and nothing else."""
    outcome = run("solve", "torus:3x3x3", "--json")
    assert outcome.code == 0
    assert outcome.json.keys() >= KEYS
    assert outcome.json["time"] == pytest.approx(9.0)
    assert outcome.json["gap"] <= 1e-6


def test_throughput_of_the_paper(run: Run) -> None:
    """The 27-node torus with host bottleneck: (N-1) f b = 6.02 GB/s."""
    words = ("solve", "torus:3x3x3", "--host-bandwidth", 4, "--link-bandwidth", "25Gbps")
    found = run(*words, "--json").json
    assert found["time"] == pytest.approx(13.5)
    assert found["throughput_bound_GBps"] == pytest.approx(26 * 2 / 27 * 3.125)
    assert "6.02 GB/s per node, the proven maximum" in run(*words).out


def test_methods_agree(run: Run) -> None:
    """The methods give the same time on a random graph."""
    times = [
        run("solve", "jellyfish:n=12,d=3,seed=1", "--method", method, "--json").json["time"]
        for method in ("link", "decomposed", "decomposed-lp", "grouped", "auto")
    ]
    assert times == pytest.approx([times[0]] * 5, rel=1e-6)


def test_saved_flow_verifies_and_a_tampered_one_does_not(run: Run, tmp_path: Path) -> None:
    """The file carries its own proof; changing a number breaks it, exit code 4."""
    path = tmp_path / "flow.json"
    assert run("solve", "genkautz:n=12,d=3", "-o", path).code == 0
    checked = run("verify", path, "--json")
    assert checked.code == 0
    assert checked.json["valid"] is True
    assert checked.json["gap"] <= 1e-6
    value = json.loads(path.read_text())
    value["flows"][0]["amounts"][0] *= 0.5
    path.write_text(json.dumps(value))
    broken = run("verify", path)
    assert broken.code == 4
    assert "not conserved" in broken.err
    value["bound"] = 99.0
    del value["gap"]
    path.write_text(json.dumps(value))
    assert "its lengths prove" in run("verify", path).err


def test_demand_from_a_file(run: Run, tmp_path: Path) -> None:
    """A matrix as text and as JSON give the same answer."""
    text, entries = tmp_path / "demand.txt", tmp_path / "demand.json"
    text.write_text("0 2 0\n0, 0, 1\n0 0 0\n")
    entries.write_text('{"format": "alltoall.demand/1", "entries": [[0, 1, 2], [1, 2, 1]]}')
    times = [
        run("solve", "ring:3", "--demand", path, "--json").json["time"] for path in (text, entries)
    ]
    assert times == pytest.approx([1.0, 1.0])


def test_punctured_topologies_are_reproducible(run: Run) -> None:
    """The same seed drops the same links, and says which."""
    words = ("solve", "torus:3x3", "--drop-links", 2, "--seed", 5)
    first, second = run(*words), run(*words)
    notes = [line for line in first.out.splitlines() if "seed 5" in line]
    assert notes
    assert notes == [line for line in second.out.splitlines() if "seed 5" in line]
    assert run(*words, "--json").json["links"] == 36 - 4


def test_named_changes(run: Run) -> None:
    """Links and nodes are removed and capacities set by name."""
    found = run("solve", "complete:5", "--remove-node", 4, "--remove-link", "0-1", "--json").json
    assert (found["nodes"], found["links"]) == (4, 10)
    wide = run("solve", "complete:3", "--scale-capacity", 2, "--json").json
    assert wide["time"] == pytest.approx(0.5)
    narrow = alltoall.topology("complete:3", set_capacities=["0-1=0.5"])
    assert alltoall.solve(narrow).time > 1.0


def test_a_time_limit_returns_a_certified_answer(run: Run) -> None:
    """Stopped early, the answer still has a time, a bound and a gap, and says why."""
    found = run("solve", "genkautz:n=60,d=4", "--time-limit", 0.05, "--json").json
    assert found["status"] in ("time_limit", "optimal")
    assert found["bound"] <= found["time"] * (1 + 1e-12)


def test_symmetry_can_be_switched_off(run: Run) -> None:
    """With and without, the time is the same, and proven."""
    words = ("solve", "torus:4x4", "--json", "--method")
    switches = ("", ":symmetry=true", ":symmetry=false")
    found = [run(*words, f"grouped{switch}").json for switch in switches]
    assert [each["time"] for each in found] == pytest.approx([8.0] * 3)
    assert all(each["gap"] <= 1e-6 for each in found)


def test_the_first_order_method_reaches_the_gap_asked_for(run: Run, tmp_path: Path) -> None:
    """Within the gap of the exact time, saved with its proof, whichever threads and symmetry."""
    path = tmp_path / "flow.npz"
    exact = run("solve", "jellyfish:n=16,d=3,seed=1", "--method", "grouped", "--json").json["time"]
    words = ("solve", "jellyfish:n=16,d=3,seed=1", "--gap", 1e-3, "--output", path, "--json")
    for threads, keys in ((1, ""), (2, ""), (1, ":symmetry=false")):
        found = run(*words, "--threads", threads, "--method", f"first-order{keys}").json
        assert (found["method"], found["status"]) == ("first-order", "optimal")
        assert exact * (1 - 1e-6) <= found["time"] <= exact * (1 + 1.1e-3)
        assert run("verify", path).code == 0


def test_a_compact_flow_is_saved_and_verified(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What stands for all sources by symmetry carries its proof too, and is found out if false."""
    monkeypatch.setattr("alltoall.flows.symmetry.orbits.MOST_ENTRIES", 50)
    path = tmp_path / "flow.json"
    saved = run("solve", "hypercube:5", "--method", "grouped", "-o", path, "--json")
    assert saved.json["time"] == pytest.approx(16.0)
    value = json.loads(path.read_text())
    assert len(value["flows"]) == 1
    assert value["generators"]
    assert run("verify", path, "--json").json["time"] == pytest.approx(16.0)
    first = value["generators"][0]
    first[0], first[1] = first[1], first[0]
    path.write_text(json.dumps(value))
    broken = run("verify", path)
    assert broken.code == 4
    assert "generator 0 does not map links" in broken.err
    value["generators"][0] = [0, 1]
    path.write_text(json.dumps(value))
    short = run("verify", path)
    assert short.code == 3
    assert "expected one for each of the 32 nodes" in short.err
