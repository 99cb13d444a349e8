"""After a failure: routes are renewed from the last ones, and hold."""

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import alltoall
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.ir.demand import Demand
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.layers.assign import keep_layers
from alltoall.routes.renew import Renewed, last_places, renew_routes
from alltoall.routes.search import find_routes
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.operators import remove_links, remove_nodes
from alltoall.topologies.spec import build
from command_line import Run

KAUTZ = build("genkautz:n=16,d=3")
LAST = alltoall.route(KAUTZ, "single:layering=none")
LINK = (int(KAUTZ.tail[5]), int(KAUTZ.head[5]))


def test_nothing_moves_where_nothing_failed() -> None:
    """And routes that are as good as can be stay."""
    ring = alltoall.route("ring:5", "single:layering=none")
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
    last = alltoall.route(KAUTZ, "extp:layering=none", demand=few)
    problem = Problem(KAUTZ, Demand(16, matrix))
    found = renew_routes(problem, last, SolveSettings())
    check_routes(found.routes)
    assert ((found.routes.source == 0) & (found.routes.destination == 5)).any()


def test_a_pair_that_is_cut_off_is_named() -> None:
    """No routes are better than routes that do not arrive."""
    line = build("mesh:1x3")
    last = alltoall.route(line, "single:layering=none")
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
    assert "the old routes lose" in run(*words).out
    refused = run("route", "torus:4x4", "--from", saved)
    assert refused.code == 3
    assert "is for genkautz:n=16,d=3" in refused.err
    refused = run(*words, "--method", "single")
    assert refused.code == 2
    assert "a method of their own" in refused.err


@pytest.mark.parametrize(
    ("spec", "stays"), [("genkautz:n=12,d=3", True), ("jellyfish:n=16,d=4,seed=1", False)]
)
def test_routes_that_stay_keep_their_layer(spec: str, stays: bool) -> None:
    """Unless that takes more layers; what moved is counted in the end."""
    healthy = alltoall.route(spec, method="single")
    topology = healthy.problem.topology
    left = remove_links(topology, [(int(topology.tail[0]), int(topology.head[0]))])
    settings = RouteSettings(solve=SolveSettings(gap=0.01))
    found = find_routes(Problem.all_to_all(left), "extp", settings, healthy)
    place = last_places(found.routes, healthy)
    assert found.renewed is not None
    assert found.renewed.moved == (place == NOTHING).sum()
    assert found.routes.layer is not None
    assert healthy.layer is not None
    kept = found.routes.layer == healthy.layer[place]
    assert kept[place != NOTHING].all() == stays
    assert found.routes.layers == healthy.layers


def test_layers_that_stay_are_filled_up() -> None:
    """Routes that moved go behind those that did not, or to a new layer."""
    healthy = alltoall.route("genkautz:n=24,d=3", method="single")
    left = remove_links(healthy.problem.topology, [(1, 20)])
    now = renew_routes(Problem.all_to_all(left), healthy, SolveSettings()).routes
    assert healthy.layer is not None
    place = last_places(now, healthy)
    last = np.where(place == NOTHING, NOTHING, healthy.layer[place])
    stays = last != NOTHING
    assert stays.sum() > 0.7 * now.count
    kept = keep_layers(now, last, SolveSettings())
    assert kept.layer is not None
    assert np.array_equal(kept.layer[stays], last[stays])
    check_routes(kept)


def test_renewed_routes_need_no_tables() -> None:
    """Routes that move need not go on together, so that is not asked of them."""
    settings = RouteSettings(destination_based=True)
    with pytest.raises(UsageError, match="leave out one of the two"):
        find_routes(LAST.problem, "single", settings, LAST)


def test_routes_by_destination_become_single_ones() -> None:
    """Routes that move need not go on together where they meet, so they do not claim it."""
    last = alltoall.route("torus:3x3", "single:destination-based")
    assert last.method == "single by destination"
    left = remove_links(last.problem.topology, [(0, 1)])
    assert alltoall.route(left, from_=last).method == "single"


def fewest_by_greed(found: Renewed, last: Routes, limit: float) -> int:
    """Return how many routes a straightforward search moves until the time is within a limit.

    Each displaced route takes the path that leaves the lowest loads, then routes leave the fullest
    link, each for such a path, one at a time.
    """
    topology = found.routes.problem.topology
    place = {
        (int(u), int(v)): n
        for n, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True))
    }
    old = last.problem.topology
    load, stays, lost = np.zeros(topology.links), [], []
    for row in range(last.count):
        links = last.link[last.start[row] : last.start[row + 1]]
        ends = [(int(old.tail[link]), int(old.head[link])) for link in links]
        if all(pair in place for pair in ends):
            stays.append([place[pair] for pair in ends])
            load[stays[-1]] += 1
        else:
            lost.append((ends[0][0], ends[-1][1]))

    def best_path(start: int, end: int) -> list[int]:
        """Return the path of least steep cost."""
        cost = 20.0 ** (load - limit + 1)
        graph: nx.DiGraph[int] = nx.DiGraph()
        for pair, link in place.items():
            graph.add_edge(*pair, cost=float(cost[link]))
        nodes = nx.dijkstra_path(graph, start, end, weight="cost")
        return [place[pair] for pair in pairwise(nodes)]

    for start, end in lost:
        load[best_path(start, end)] += 1
    moves, untouched = len(lost), list(stays)
    while load.max() > limit + 1e-9 and moves < last.count:
        full = int(load.argmax())
        chosen = next((each for each in untouched if full in each), [])
        if not chosen:
            return last.count
        untouched.remove(chosen)
        load[chosen] -= 1
        load[best_path(int(topology.tail[chosen[0]]), int(topology.head[chosen[-1]]))] += 1
        moves += 1
    return moves


@pytest.mark.parametrize("gap", [0.2, 0.01])
@pytest.mark.parametrize("spec", ["torus:4x4", "genkautz:n=24,d=3"])
def test_as_few_routes_move_as_the_gap_allows(spec: str, gap: float) -> None:
    """None that moved could have stayed alone, and a straightforward search moves no fewer."""
    last = alltoall.route(spec, method="single:layering=none")
    topology = last.problem.topology
    ends = int(topology.tail[0]), int(topology.head[0])
    left = remove_links(topology, [ends, ends[::-1]] if topology.bidirectional else [ends])
    found = renew_routes(Problem.all_to_all(left), last, SolveSettings(gap=gap))
    routes = found.routes
    limit = max(routes.bound * (1 + gap), routes.time)
    assert found.moved <= fewest_by_greed(found, last, limit)
    load, place = routes.load(), last_places(routes, last)
    node = {(int(u), int(v)): n for n, (u, v) in enumerate(zip(left.tail, left.head, strict=True))}
    pairs = {
        (int(s), int(d)): n
        for n, (s, d) in enumerate(zip(last.source, last.destination, strict=True))
    }
    for route in np.flatnonzero(place == NOTHING):
        before = pairs[int(routes.source[route]), int(routes.destination[route])]
        links = last.link[last.start[before] : last.start[before + 1]]
        back = [node.get((int(topology.tail[each]), int(topology.head[each]))) for each in links]
        if None not in back:
            alone = load.copy()
            alone[routes.link[routes.start[route] : routes.start[route + 1]]] -= 1
            alone[np.array(back)] += 1
            assert alone.max() > limit * (1 + 1e-9)
