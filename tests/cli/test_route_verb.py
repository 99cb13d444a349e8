"""`alltoall route`, as a user calls it."""

import json
from pathlib import Path

import pytest

from alltoall.lowering import TARGETS
from alltoall.routes import ROUTERS
from command_line import Run

KEYS = {
    *("nodes", "links", "time", "bound", "gap", "method", "seconds"),
    *("routes", "max_routes_per_pair", "layers"),
}


@pytest.mark.parametrize("method", ROUTERS)
def test_every_method_gives_routes_with_layers(run: Run, method: str) -> None:
    """The agreed keys, a time that is never below the certified bound, and layers."""
    found = run("route", "torus:3x3", "--method", method, "--json").json
    assert found.keys() >= KEYS
    assert found["time"] >= found["bound"] * (1 - 1e-9)
    assert found["bound"] == pytest.approx(3.0)
    assert found["layers"] >= 1


def test_a_saved_table_verifies_and_a_broken_one_does_not(run: Run, tmp_path: Path) -> None:
    """Exit code 4 and the name of what is wrong."""
    path = tmp_path / "routes.json"
    assert run("route", "genkautz:n=12,d=3", "--method", "single", "-o", path).code == 0
    found = run("verify", path, "--json").json
    assert found["max_routes_per_pair"] == 1
    value = json.loads(path.read_text())
    del value["time"], value["gap"]
    value["routes"][0]["dst"], value["routes"][1]["dst"] = (
        value["routes"][1]["dst"],
        value["routes"][0]["dst"],
    )
    path.write_text(json.dumps(value))
    broken = run("verify", path)
    assert broken.code == 4
    assert "does not end at its destination" in broken.err


def test_deadlock_freedom_by_construction(run: Run) -> None:
    """With enough layers the optimum of the ring is reached; with one it is not."""
    one = run("route", "ring:6", "--method", "deadlock-free:layers=1", "--json").json
    three = run("route", "ring:6", "--method", "deadlock-free:layers=3", "--json").json
    assert one["layers"] == 1
    assert one["time"] > 4.5 * 1.01
    assert three["time"] == pytest.approx(4.5, rel=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (("--method", "magic"), 2, "extp"),
        (("--method", "pmcf:paths=magic"), 2, "disjoint"),
        (("--method", "extp:layering=magic"), 2, "lash"),
        (("--method", "single", "--max-layers", "1"), 3, "layers"),
        (("--method", "deadlock-free:layers=0"), 2, "0"),
    ],
)
def test_bad_words(run: Run, words: tuple[str, ...], code: int, expected: str) -> None:
    """Usage and input errors are told apart."""
    outcome = run("route", "ring:6", *words)
    assert outcome.code == code
    assert expected in outcome.err


@pytest.mark.parametrize("target", ["routes", "ompi", "srv6"])
def test_routes_are_lowered_and_read_back(run: Run, tmp_path: Path, target: str) -> None:
    """Whole chunks on layered routes fit every target that steers; a schedule's is refused."""
    routes, file = tmp_path / "routes.json", tmp_path / f"file{TARGETS[target].suffix}"
    words = ("route", "bipartite:4x4", "--method", "few", "--max-routes", 2, "--chunks", 2)
    assert run(*words, "-o", routes).code == 0
    lowered = run("lower", routes, "--to", target, "-o", file)
    assert lowered.code == 0, lowered.err
    checked = run("verify", file, "--topology", "bipartite:4x4", "--json")
    assert checked.code == 0, checked.err
    assert checked.json["max_routes_per_pair"] <= 2
    wrong = run("lower", routes, "--to", "msccl")
    assert wrong.code == 2
    assert "routes, ompi, opensm, simgrid, srv6, linux" in wrong.err


def test_path_sets_and_the_common_factor(run: Run) -> None:
    """Longer paths help on K4,4 not at all, and its weights have a common denominator."""
    words = ("route", "bipartite:4x4", "--json", "--method")
    for paths in ("bounded,slack=2", "k-shortest,k=4", "columns"):
        found = run(*words, f"pmcf:paths={paths}").json
        assert found["time"] == pytest.approx(2.5)
        assert found["common_factor_chunks"] >= 2
    assert run(*words, "pmcf:paths=k-shortest,k=0").code == 2
