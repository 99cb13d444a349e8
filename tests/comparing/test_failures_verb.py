"""`failures`: what each failure costs, worst first, and an answer ready for it."""

import json
from pathlib import Path

import pytest

import alltoall
from alltoall.comparing.failures import _Folder
from alltoall.ir.names import MAX_STEM
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from command_line import Run

RACK = Topology.from_edges(
    "rack", 5, [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2), (3, 4)], names=["a", "b", "c/1", "d", "e"]
)
"""Four hosts in a ring with a chord, and one on a single cable."""

KEYS = ["failure", "lost", "time", "slower", "bound", "gap", "moved", "reason", "file"]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Save routes on the rack."""
    path = tmp_path / "best.json"
    alltoall.route(RACK, method="single").save(path)
    return path


def test_failures_are_told_worst_first_by_name(run: Run, saved: Path) -> None:
    """What is cut off comes first and is no error; JSON has the same rows."""
    found = run("failures", saved, "--json").json
    names = [row["failure"] for row in found["rows"]]
    assert names[0] == "link d-e"
    assert sorted(names) == [
        "link a-b",
        "link a-c/1",
        "link a-d",
        "link b-c/1",
        "link c/1-d",
        names[0],
    ]
    assert all(list(row) == KEYS for row in found["rows"])
    assert found["rows"][0]["time"] is None
    assert "terminal a cannot reach terminal e" in found["rows"][0]["reason"]
    slower = [row["slower"] for row in found["rows"][1:]]
    assert slower == sorted(slower, reverse=True)
    assert (found["failures"], found["not_solved"], found["kind"]) == (6, 0, "routes")
    text = run("failures", saved)
    assert text.code == 0
    assert text.out.startswith("worst    link d-e leaves no routes\n")
    lines = [line.split()[:2] for line in text.out.splitlines() if "link" in line]
    assert [" ".join(words) for words in lines[1:]] == names


def test_rerouting_is_proven_against_the_bound() -> None:
    """Lost is what crossed the cable; the time after it is that of the optimum on a line."""
    found = alltoall.failures(alltoall.route("ring:5", method="single"), gap=1e-6)
    line = alltoall.solve("mesh:1x5")
    for row in found.rows:
        assert row.lost == pytest.approx(6 / 20)
        assert row.time == pytest.approx(line.time)
        assert row.bound == pytest.approx(line.bound, rel=1e-4)
        assert row.slower == pytest.approx(line.time / 3 - 1)
        assert row.moved == 6


def test_nodes_fail_too(saved: Path) -> None:
    """What they sent themselves is not lost but gone; several kinds at once are one list."""
    both = alltoall.failures(saved, links=1, nodes=1)
    assert len(both.rows) == 6 + 5
    nodes = {row.failure: row for row in alltoall.failures(saved, nodes=1).rows}
    assert len(nodes) == 5
    assert nodes["node d"].reason is not None
    assert nodes["node e"].lost == 0
    assert nodes["node e"].moved == 0
    only = alltoall.failures(saved, only="a-b,e")
    assert [row.failure for row in only.rows] == ["link a-b", "node e"]
    assert only.rows[1] == nodes["node e"]
    assert alltoall.failures(saved, only=["a-b+e"]).rows[0].failure == "link a-b + node e"


@pytest.mark.parametrize("suffix", ["json", "npz"])
@pytest.mark.parametrize("verb", ["route", "schedule"])
def test_files_are_ready_for_each_failure(verb: str, suffix: str, run: Run, tmp_path: Path) -> None:
    """Each is verified, has the time that its row says, and is in the index."""
    path, folder = tmp_path / f"best.{suffix}", tmp_path / "ready"
    answer = alltoall.route(RACK) if verb == "route" else alltoall.schedule(RACK)
    answer.save(path)
    found = run("failures", path, "-o", folder, "--nodes", 1, "--links", 1, "--json").json
    index = json.loads((folder / "index.json").read_text())
    assert index["rows"] == found["rows"]
    files = {row["file"]: row["time"] for row in index["rows"] if row["file"] is not None}
    assert f"link-b-c%2F1.{suffix}" in files
    assert files.keys() | {"index.json"} == {each.name for each in folder.iterdir()}
    assert len(files) == 11 - 2
    for name, time in files.items():
        checked = run("verify", folder / name, "--json")
        assert checked.code == 0, checked.err
        assert checked.json["time"] == pytest.approx(time)
        ready = alltoall.load(folder / name)
        assert isinstance(ready, Routes if verb == "route" else Schedule)
        assert ready.problem.topology.names is not None


def test_routes_that_stay_keep_their_layer(tmp_path: Path) -> None:
    """Files have layers where the healthy routes have some, and no more of them here."""
    healthy = alltoall.route("genkautz:n=12,d=3", method="single")
    alltoall.failures(healthy, only="0-9", output=tmp_path)
    ready = alltoall.load(tmp_path / "link-0-9.json")
    assert isinstance(ready, Routes)
    assert ready.layers is not None
    assert healthy.layers is not None
    assert ready.layers <= healthy.layers
    plain = alltoall.route("ring:5", "single:layering=none")
    alltoall.failures(plain, only="0-1", output=tmp_path)
    ready = alltoall.load(tmp_path / "link-0-1.json")
    assert isinstance(ready, Routes)
    assert ready.layers is None


def test_names_of_files_are_safe_and_distinct(tmp_path: Path) -> None:
    """Whatever hosts are called, on file systems that ignore case too."""
    folder, answer = _Folder(tmp_path, ""), alltoall.route("ring:3")
    failures = ["node a/b", "node a b", "node A-B", "node ../../x", "node é", "node " + 300 * "n"]
    files = [folder.save(each, answer) for each in failures]
    assert [Path(file).stem for file in files[:4]] == [
        "node-a%2Fb", "node-a-b", "node-A-B~2", "node-..%2F..%2Fx"
    ]  # fmt: skip
    assert len({name.lower() for name in files}) == len(files)
    assert max(len(Path(file).stem) for file in files) <= MAX_STEM
    assert {each.name for each in tmp_path.iterdir()} == set(files)


def test_a_time_limit_keeps_what_was_found(
    run: Run, saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever it strikes, rows that were done are told, and the others counted."""
    seconds = iter(range(10**9))
    monkeypatch.setattr("alltoall.settings.clock", lambda: float(next(seconds)))
    whole = run("failures", saved, "--nodes", 1, "--time-limit", 1e6, "--json").json
    took, late = next(seconds), set()
    for share in (0.0, 0.4, 0.8):
        limit = max(1, share * took)
        folder = saved.parent / f"ready-{share}"
        words = ("failures", saved, "--nodes", 1, "--time-limit", limit, "-o", folder)
        found = run(*words, "--json").json
        assert found["failures"] == len(found["rows"]) + found["not_solved"] == 5
        assert {row["failure"] for row in found["rows"]} <= {
            row["failure"] for row in whole["rows"]
        }
        index = json.loads((folder / "index.json").read_text())
        assert len(index["rows"]) == len(found["rows"])
        late.add(found["not_solved"])
    assert late - {0, 5}, late
    assert "as the time was up" in run("failures", saved, "--time-limit", 1).out


def test_what_cannot_fail_is_refused(run: Run, saved: Path, tmp_path: Path) -> None:
    """With the exit code of its kind."""
    flow, file = tmp_path / "flow.json", tmp_path / "file"
    alltoall.solve("ring:3").save(flow)
    file.write_text("")
    for words, code, said in (
        ((flow,), 3, "expected routes or a schedule"),
        ((tmp_path / "none.json",), 3, "none.json"),
        ((saved, "--only", "a-x"), 2, "a-x"),
        ((saved, "--only", "a-e"), 3, "there is no link a -> e"),
        ((saved, "--only", "a", "--nodes", 1), 2, "leave one of them out"),
        ((saved, "--links", 0), 2, "expected at least 1"),
        ((saved, "-o", file), 2, "name another folder"),
        ((saved, "-o", "-"), 2, "name a folder"),
    ):
        refused = run("failures", *words)
        assert refused.code == code, refused.err
        assert said in refused.err


def test_wrong_routes_are_not_renewed(run: Run, saved: Path) -> None:
    """They are verified first."""
    value = json.loads(saved.read_text())
    value["routes"][0]["weight"] = "1/2"
    saved.write_text(json.dumps(value))
    assert run("failures", saved).code in (3, 4)
