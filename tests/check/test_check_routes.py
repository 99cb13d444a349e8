"""The route checker finds each way in which routes can be wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest

from alltoall.check import routes as verify_routes
from alltoall.check.routes import check_routes
from alltoall.check.sums import runs
from alltoall.errors import FormatError, InputError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import starts_of
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.single import route_single
from alltoall.routes.weights import route_extp
from alltoall.settings import RouteSettings
from alltoall.topologies.spec import build

RING = route_single(Problem.all_to_all(build("ring:6")), RouteSettings())
CUBE = route_extp(Problem.all_to_all(build("bipartite:4x4")), RouteSettings())


def changed(values: Any, index: int, value: float) -> Any:
    """Return a copy with one entry replaced."""
    copy = np.array(values)
    copy[index] = value
    return copy


FAULTS: dict[str, tuple[Callable[[Routes], Routes], str]] = {
    "another source": (
        lambda r: replace(r, source=changed(r.source, 0, (r.source[0] + 2) % 6)),
        r"does not start at its source",
    ),
    "another destination": (
        lambda r: replace(r, destination=changed(r.destination, 0, (r.destination[0] + 2) % 6)),
        r"does not end at its destination",
    ),
    "a weight of nothing": (
        lambda r: replace(r, weight=changed(r.weight, 3, 0.0)),
        r"weights are not positive",
    ),
    "a weight too small": (
        lambda r: replace(r, weight=changed(r.weight, 3, 0.5), denominator=None),
        r"carry 0\.5 of the demand 1",
    ),
    "a weight that is no multiple": (
        lambda r: replace(r, denominator=1, weight=changed(r.weight, 3, 1 + 1e-4)),
        r"not a multiple of 1/1",
    ),
    "fractions that do not quite add up": (
        lambda r: replace(r, denominator=2**30, weight=changed(r.weight, 3, 1 - 2.0**-30)),
        r"carry 0\.999999999\d* of the demand 1",
    ),
    "all routes in one layer": (
        lambda r: replace(r, layer=np.zeros(r.count, dtype=np.int64)),
        r"layer 0 can deadlock",
    ),
    "a bound too high": (
        lambda r: replace(r, certificate=Certificate(r.certificate.lengths, 99.0)),
        r"its lengths prove",
    ),
}


@pytest.mark.parametrize("routes", [RING, CUBE], ids=["ring", "K4,4"])
def test_correct_routes_pass(routes: Routes) -> None:
    """The report repeats time and bound from the routes alone."""
    report = check_routes(routes)
    assert report.time == pytest.approx(routes.time)
    assert report.gap == pytest.approx(report.time / report.bound - 1)
    assert report.routes == routes.count
    assert report.max_routes_per_pair == routes.routes_per_pair().max()


def test_times_are_loads_over_capacities() -> None:
    """Twice as wide links take half as long, and a narrow one is the slowest."""
    topology = build("ring:6")
    wide = Problem.all_to_all(replace(topology, capacity=changed(2 * topology.capacity, 4, 0.5)))
    bound = Certificate(RING.certificate.lengths, 1e-3)
    report = check_routes(replace(RING, problem=wide, certificate=bound))
    load = np.bincount(RING.link, np.repeat(RING.weight, np.diff(RING.start)))
    assert report.time == pytest.approx(max(load[4] / 0.5, np.delete(load, 4).max() / 2))


def test_the_pair_that_lacks_something_is_named() -> None:
    """By both of its ends, wherever in the block it is."""
    wrong = int(np.flatnonzero((RING.source == 4) & (RING.destination == 2))[0])
    fewer = replace(RING, weight=changed(RING.weight, wrong, 0.5), denominator=None)
    with pytest.raises(VerificationError, match=r"from node 4 to node 2 carry 0\.5"):
        check_routes(fewer)


@pytest.mark.parametrize("block", [1, 7, 4_000_000])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found(fault: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each kind of tampering is named, however the routes are cut into blocks."""
    monkeypatch.setattr(verify_routes, "BLOCK", block)
    tamper, words = FAULTS[fault]
    with pytest.raises(VerificationError, match=words):
        check_routes(tamper(RING))


@pytest.mark.parametrize("block", [1, 5, 7])
def test_blocks_do_not_change_the_report(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks smaller than a route, and blocks that end within a source, find the same."""
    whole = check_routes(CUBE)
    monkeypatch.setattr(verify_routes, "BLOCK", block)
    assert check_routes(CUBE) == whole


def test_all_wrong_routes_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is over all blocks, and the first is the first of all."""
    monkeypatch.setattr(verify_routes, "BLOCK", 4)
    source = np.array(RING.source)
    source[5:20] = (source[5:20] + 1) % 6
    found = r"15 routes: the first, route 5 from node \d to node \d, does not start"
    with pytest.raises(VerificationError, match=found):
        check_routes(replace(RING, source=source))


def test_weights_are_multiples_of_one_over_the_denominator() -> None:
    """Halves are multiples of a half and of a sixth, not of a third."""
    half = replace(
        RING,
        problem=Problem(RING.problem.topology, Demand(6, (1 - np.eye(6)) / 2)),
        weight=RING.weight / 2,
        certificate=Certificate(np.ones(12), 0.1),
    )
    for denominator in (2, 6):
        assert check_routes(replace(half, denominator=denominator)).time == RING.time / 2
    with pytest.raises(VerificationError, match="not a multiple of 1/3"):
        check_routes(replace(half, denominator=3))


@pytest.mark.parametrize("block", [1, 3, 50, 4_000_000])
def test_layers_are_found_in_any_block(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two layers that deadlock beside some that do not, however the routes are cut."""
    monkeypatch.setattr(verify_routes, "BLOCK", block)
    forward = RING.problem.topology.head[RING.link[RING.start[:-1]]] == (RING.source + 1) % 6
    layer = np.where(forward, 5, 2)
    layer[forward & (RING.source == 3)] = 7
    layer[~forward & (RING.source == 3)] = 1
    words = r"layer 2 can deadlock: .* near link \d+ \(\d -> \d\) \(and 1 more layer\)$"
    with pytest.raises(VerificationError, match=words) as caught:
        check_routes(replace(RING, layer=layer))
    link = int(str(caught.value).partition("near link ")[2].partition(" ")[0])
    topology = RING.problem.topology
    assert (topology.tail[link] - topology.head[link]) % 6 == 1


def test_blocks_hold_whole_routes() -> None:
    """As many as fit; a route that is longer than a block is one by itself."""
    found = runs(starts_of([2, 3, 1, 7, 1, 4, 1]), 5)
    assert [(run.start, run.stop) for run in found] == [(0, 2), (2, 3), (3, 4), (4, 6), (6, 7)]


@pytest.mark.parametrize("block", [1, 7, 10**6])
def test_every_layer_is_looked_at(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle in one of many layers is found in that layer, however large the blocks are."""
    monkeypatch.setattr(verify_routes, "BLOCK", block)
    forward = RING.problem.topology.head[RING.link[RING.start[:-1]]] == (RING.source + 1) % 6
    apart = np.where(forward, 2**40, np.arange(RING.count))
    layer = rf"layer {2**40} can deadlock: its channel dependencies have a cycle near link \d+"
    with pytest.raises(VerificationError, match=layer):
        check_routes(replace(RING, layer=apart))
    assert check_routes(replace(RING, layer=np.arange(RING.count))).layers == RING.count


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_layer_of_any_number_is_looked_at(layer: int) -> None:
    """The first one that has routes too, whatever it is called."""
    layered = replace(RING, layer=np.full(RING.count, layer))
    with pytest.raises(VerificationError, match=f"layer {layer} can deadlock"):
        check_routes(layered)


def test_layers_that_deadlock_are_counted() -> None:
    """The first of them is named."""
    forward = RING.problem.topology.head[RING.link[RING.start[:-1]]] == (RING.source + 1) % 6
    with pytest.raises(VerificationError, match=r"layer 3 can deadlock.* \(and 1 more layer\)"):
        check_routes(replace(RING, layer=np.where(forward, 3, 8)))


def test_a_detour_over_a_visited_node_is_found() -> None:
    """A route that leaves a node and comes back is not simple."""
    topology = build("ring:4")
    forth = {
        (int(u), int(v)): i
        for i, (u, v) in enumerate(zip(topology.tail, topology.head, strict=True))
    }
    value = answer_to_json(route_single(Problem.all_to_all(topology), RouteSettings()))
    for row in value["routes"]:
        if (row["src"], row["dst"]) == (0, 1):
            row["links"] = [forth[0, 3], forth[3, 0], forth[0, 1]]
    del value["time"], value["gap"]
    with pytest.raises(VerificationError, match="visits a node twice"):
        check_routes(answer_from_json(value, "file"))


@pytest.mark.parametrize("seed", range(20))
def test_cycles_of_dependencies_are_those_of_the_graph(seed: int) -> None:
    """What is left after peeling is on a cycle or behind one, as another library finds them."""
    edges = np.unique(np.random.default_rng(seed).integers(0, 30, (30, 2)), axis=0)
    graph: nx.DiGraph[int] = nx.DiGraph(edges.tolist())
    parts = [part for part in nx.strongly_connected_components(graph) if len(part) > 1]
    cyclic = set().union(*parts) | {u for u, v in edges.tolist() if u == v}
    behind = cyclic.union(*(nx.descendants(graph, each) for each in cyclic))
    assert verify_routes._find_cyclic(edges[:, 0], edges[:, 1]).tolist() == sorted(behind)


def test_acyclic_layers_pass() -> None:
    """Clockwise and anticlockwise routes of a ring, each cut at one node, do not deadlock."""
    topology = RING.problem.topology
    first = RING.link[RING.start[:-1]]
    forward = (topology.head[first] - topology.tail[first]) % 6 == 1
    wraps = np.zeros(RING.count, dtype=bool)
    np.logical_or.at(
        wraps,
        RING.path_of_link,
        np.isin(topology.tail[RING.link], 0) & (RING.link != first[RING.path_of_link]),
    )
    layered = replace(RING, layer=(2 * forward + wraps).astype(np.int64))
    assert check_routes(layered).layers == 4


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"routes": [3]}, r"routes\[0\] is 3"),
        ({"routes": [{"src": 0, "dst": 1, "links": [0]}]}, "weight is missing"),
        ({"routes": [{"src": 0, "dst": 1, "links": [0], "weight": "1/0"}]}, "p/q"),
        ({"routes": [{"src": 0, "dst": 1, "links": "0", "weight": 1}]}, "links"),
        ({"routes": [{"src": 0, "dst": 9, "links": [0], "weight": 1}]}, r"routes\[0\]\.dst is 9"),
        ({"routes": [{"src": 0, "dst": 1, "links": [True], "weight": 1.0}]}, r"links is \[true\]"),
        ({"routes": [{"src": 0, "dst": 1, "links": [10**30], "weight": 1.0}]}, "links is"),
        ({"routes": [{"src": 0, "dst": 1, "links": [0], "weight": 1.0, "layer": 0.5}]}, "layer is"),
        ({"routes": [{"src": 0, "dst": 1, "links": [], "weight": 1}]}, "at least one link"),
        ({"routes": [{"src": 0, "dst": 1, "links": [99], "weight": 1}]}, "link 99"),
        ({"lengths": [1]}, "one length per link"),
    ],
)
def test_malformed_files_are_named(changes: dict[str, object], words: str) -> None:
    """The message names the route and the key."""
    value = answer_to_json(RING)
    del value["time"], value["gap"]
    with pytest.raises((FormatError, InputError), match=words):
        answer_from_json(value | changes, "file")


def test_fractions_are_exact() -> None:
    """Weights written as p/q come back with their denominator."""
    value = answer_to_json(RING)
    assert value["routes"][0]["weight"] == "1/1"
    assert answer_from_json(value, "file").denominator == 1
