"""After a failure, or before it: routes are renewed from the last ones, and hold."""

from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.files.json import switch_over_to_json
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.routes.layers.keep import keep_layers
from alltoall.routes.renew import renew_routes
from alltoall.routes.survive import _last_layers
from alltoall.settings import SolveSettings
from alltoall.topologies.failures import Failure, failures_of
from alltoall.topologies.operators import remove_links, remove_nodes
from alltoall.topologies.spec import build
from command_line import Run

KAUTZ = build("genkautz:n=16,d=3")
LAST = alltoall.route(KAUTZ, method="single", layers=None)
LINK = (int(KAUTZ.tail[5]), int(KAUTZ.head[5]))


def test_nothing_moves_where_nothing_failed() -> None:
    """And routes that are as good as can be stay."""
    ring = alltoall.route("ring:5", method="single", layers=None)
    found = renew_routes(ring.problem, ring, SolveSettings())
    assert (found.moved, found.unserved) == (0, 0.0)
    assert found.routes.time == ring.time == pytest.approx(found.repaired)


@pytest.mark.parametrize(
    "topology", [remove_links(KAUTZ, [LINK]), remove_nodes(KAUTZ, [3])], ids=["link", "node"]
)
def test_routes_avoid_what_failed_and_beat_a_repair(topology: alltoall.Topology) -> None:
    """They are checked, no worse than moving only what was displaced, and have a bound."""
    problem = Problem.all_to_all(topology)
    found = renew_routes(problem, LAST, SolveSettings())
    check_routes(found.routes)
    assert found.routes.time <= found.repaired + 1e-9
    assert 0 < found.unserved < 0.5
    assert found.moved > 0
    optimum = alltoall.solve(problem).time
    assert found.routes.bound <= optimum * (1 + 1e-6)


def test_shares_of_weighted_routes_and_new_demands_are_carried_over() -> None:
    """Weights keep their share of a demand that changed, and a new pair gets a route."""
    matrix = 1.0 + np.arange(16**2, dtype=np.float64).reshape(16, 16) % 3
    np.fill_diagonal(matrix, 0.0)
    few = matrix.copy()
    few[0, 5] = 0.0
    last = alltoall.route(KAUTZ, demand=few, layers=None)
    problem = Problem(KAUTZ, Demand(16, matrix))
    found = renew_routes(problem, last, SolveSettings())
    check_routes(found.routes)
    assert ((found.routes.source == 0) & (found.routes.destination == 5)).any()


def test_a_pair_that_is_cut_off_is_named() -> None:
    """No routes are better than routes that do not arrive."""
    line = build("mesh:1x3")
    last = alltoall.route(line, method="single", layers=None)
    with pytest.raises(InputError):
        renew_routes(Problem.all_to_all(remove_links(line, [(0, 1)])), last, SolveSettings())


def test_the_verb_begins_with_saved_routes(run: Run, tmp_path: Path) -> None:
    """It says what the last routes lose; a method beside them is refused."""
    saved = tmp_path / "routes.json"
    LAST.save(saved)
    words = ("route", "genkautz:n=16,d=3", "--remove-link", f"{LINK[0]}-{LINK[1]}", "--from", saved)
    found = run(*words, "--json").json
    assert found["last"]["repaired_gap"] >= found["gap"]
    assert found["layers"] >= 1
    assert "does not arrive if they stay as they are" in run(*words).out
    refused = run("route", "torus:4x4", "--from", saved)
    assert refused.code == 3
    assert "is for genkautz:n=16,d=3" in refused.err
    refused = run(*words, "--method", "single")
    assert refused.code == 2
    assert "a method of their own" in refused.err
    refused = run(
        "route", "mesh:2x3", "--method", "single", "--survive", "links:1", "--destination-based"
    )
    assert refused.code == 2
    assert "leave out one of the two" in refused.err


def test_every_failure_has_a_file_that_verifies(run: Run, tmp_path: Path) -> None:
    """With the worst loss said, on the command line."""
    folder = tmp_path / "over"
    words = ("route", "mesh:2x3", "--method", "single", "--survive", "links:1")
    found = run(*words, "--switch-over", folder, "--json").json["survive"]
    assert (found["failures"], found["cut_off"]) == (7, [])
    assert found["worst_loss"] >= found["mean_loss"] >= 0
    files = sorted(folder.iterdir())
    assert [file.name for file in files[:2]] == ["healthy.npz", "link-0-1.json"]
    assert len(files) == 8
    for file in files:
        assert run("verify", file).code == 0
    lowered = run("lower", files[1], "--to", "routes", "-o", tmp_path / "table.json")
    assert lowered.code == 0, lowered.err
    assert "failures lose" in run(*words).out
    whole = tmp_path / "whole"
    assert run(*words, "--switch-over", whole, "--whole").code == 0
    assert len(list(whole.glob("*.npz"))) == 7
    for file in whole.iterdir():
        both = (run("verify", each, "--json").json for each in (file, folder / f"{file.stem}.json"))
        assert next(both)["time"] == next(both)["time"]
    refused = run(*words, "--whole")
    assert refused.code == 2
    assert "--whole without --switch-over" in refused.err


def test_routes_that_stay_keep_their_layer() -> None:
    """Unless that takes more layers; so little differs from the healthy routes."""
    healthy = alltoall.route("genkautz:n=24,d=3", method="single")
    failure = Failure(links=((1, 20),))
    links = failure.numbers_of_links(healthy.problem.topology)
    none = np.zeros(0, dtype=np.int64)
    now = renew_routes(failure.left_of(healthy.problem), healthy, SolveSettings()).routes
    last = _last_layers(now, healthy, links, none)
    kept = keep_layers(now, last, SolveSettings())
    assert kept.layer is not None
    stays = last != NOTHING
    assert stays.sum() > 0.7 * now.count
    assert np.array_equal(kept.layer[stays], last[stays])
    check_routes(kept)
    changed = switch_over_to_json(healthy, kept, links, none)
    assert changed["layers"] == []
    assert len(changed["added"]) == (~stays).sum()


def test_failures_come_from_a_file(tmp_path: Path) -> None:
    """A line is what fails together; what is not there cannot."""
    file = tmp_path / "failures.txt"
    file.write_text(f"# two lines\n{LINK[0]}-{LINK[1]}, 7\n2\n")
    assert failures_of(KAUTZ, str(file)) == [Failure((LINK,), (7,)), Failure((), (2,))]
    assert len(failures_of(KAUTZ, "nodes:1")) == 16
    for text, said in (
        ("2\n99\n", "failures.txt: line 2: .*99"),
        ("a-b\n", "line 1: link 'a-b'; expected two nodes, such as 3-4"),
        ("0-0\n", "line 1: .*there is no link 0 -> 0"),
        ("# nothing yet\n", "failures.txt: no failures; expected one a line"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            failures_of(KAUTZ, str(file))
    with pytest.raises(UsageError, match="links:1"):
        failures_of(KAUTZ, "links:2")


def test_failures_are_named_as_nodes_are(tmp_path: Path) -> None:
    """Names may have hyphens; then an arrow says where a link is cut."""
    edges = [(0, 1), (1, 2), (2, 0), (1, 0), (2, 1), (0, 2)]
    named = alltoall.Topology.from_edges("three", 3, edges, names=["gpu-a", "gpu-b", "c"])
    file = tmp_path / "failures.txt"
    file.write_text("gpu-a->gpu-b\nc, gpu-a\n1-2\n")
    with pytest.raises(InputError, match="line 2"):  # One terminal is left of three.
        failures_of(named, str(file))
    file.write_text("gpu-a->gpu-b\nc\ngpu-b-c\n")
    assert failures_of(named, str(file)) == [
        *(Failure(((0, 1),)), Failure((), (2,)), Failure(((1, 2),))),
    ]


def test_routes_by_destination_become_single_ones() -> None:
    """Routes that move need not go on together where they meet, so they do not claim it."""
    last = alltoall.route("torus:3x3", method="single", destination_based=True)
    assert last.method == "single by destination"
    left = remove_links(last.problem.topology, [(0, 1)])
    assert alltoall.route(left, last=last).method == "single"


def test_a_line_of_nodes_is_cut_off_by_its_links(run: Run) -> None:
    """That is said, and is no failure of the command."""
    done = run("route", "mesh:1x3", "--method", "single", "--survive", "nodes:1", "--json")
    assert done.json["survive"]["cut_off"] == ["node 1"]
    assert run("route", "ring:4", "--switch-over", "x").code == 2
