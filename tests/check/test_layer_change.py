"""Routes that change layer on the way: the checker, the noun and its files take a layer per hop."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check import routes as verify_routes
from alltoall.check.routes import check_routes
from alltoall.errors import FormatError, InputError, LimitError, VerificationError
from alltoall.ir.arrays import Ints
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.loading import load
from alltoall.lowering import TARGETS
from alltoall.lowering.options import Options
from alltoall.routes.single import route_single
from alltoall.settings import RouteSettings
from alltoall.topologies.spec import build
from alltoall.verification import verify, verify_text

RING = route_single(Problem.all_to_all(build("ring:6")), RouteSettings())


def dateline(first: int = 0, last: int = 1) -> Routes:
    """Return the routes of a ring; those that cross from node 5 to 0, or back, change layer."""
    topology = RING.problem.topology
    wraps = np.abs(topology.head[RING.link] - topology.tail[RING.link]) == 5
    crossed = np.cumsum(wraps)
    before = np.concatenate(([0], crossed))[RING.start[:-1]]
    passed = crossed > np.repeat(before, RING.hops)
    return replace(RING, layer=None, hop_layer=np.where(passed, last, first))


def graph_of(routes: Routes, layer: Ints) -> "nx.DiGraph[tuple[int, int]]":
    """Return the dependencies of (link, layer), by another way than the checker's."""
    graph: nx.DiGraph[tuple[int, int]] = nx.DiGraph()
    for begin, end in zip(routes.start[:-1], routes.start[1:], strict=True):
        channels = list(
            zip(routes.link[begin:end].tolist(), layer[begin:end].tolist(), strict=True)
        )
        nx.add_path(graph, channels)
    return graph


def test_a_dateline_makes_a_ring_free_of_deadlocks() -> None:
    """Two layers are enough with a change, in whichever order they are numbered."""
    for routes in (dateline(), dateline(1, 0), dateline(7, 2**40)):
        report = check_routes(routes)
        assert report.layers == routes.layers
        assert routes.layer is None
        assert routes.changes_layer.any()


@given(data=st.data(), block=st.sampled_from([1, 7, 4_000_000]))
def test_the_checker_agrees_with_a_graph_library(data: st.DataObject, block: int) -> None:
    """Any layers per hop pass if and only if the channels that they make have no cycle."""
    flips = data.draw(st.lists(st.integers(0, len(RING.link) - 1), max_size=6))
    layer = np.array(dateline().hop_layer)
    layer[flips] = data.draw(st.integers(0, 2))
    routes = replace(RING, layer=None, hop_layer=layer)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verify_routes, "BLOCK", block)
        if nx.is_directed_acyclic_graph(graph_of(RING, layer)):
            check_routes(routes)
        else:
            with pytest.raises(VerificationError, match="can deadlock"):
                check_routes(routes)


def test_layers_that_never_change_are_one_per_route() -> None:
    """Equal routes are equal, whichever way their layers were given."""
    layer = np.arange(RING.count)
    per_hop = replace(RING, layer=None, hop_layer=layer[RING.path_of_link])
    assert per_hop == replace(RING, layer=layer)
    assert per_hop.hop_layer is None
    assert not per_hop.changes_layer.any()


def test_some_of_the_routes_keep_their_layers() -> None:
    """Selected in another order, hops and layers still belong together."""
    routes = dateline()
    back = routes.select(np.arange(routes.count)[::-1]).select(np.arange(routes.count)[::-1])
    assert back == routes


@pytest.mark.parametrize(
    "wrong",
    [
        {"hop_layer": np.zeros(3, dtype=np.int64)},
        {"layer": np.zeros(RING.count), "hop_layer": np.zeros(len(RING.link))},
        {"hop_layer": np.full(len(RING.link), -1)},
    ],
)
def test_layers_that_do_not_fit_are_refused(wrong: dict[str, Any]) -> None:
    """One per hop, none below 0, and not together with one per route."""
    with pytest.raises(InputError, match=r"or one per hop|expected 0 or more"):
        replace(RING, **wrong)


@pytest.mark.parametrize("name", ["routes.json", "routes.npz"])
def test_files_keep_a_layer_per_hop(name: str, tmp_path: Path) -> None:
    """Both forms are read back as they were, and are verified."""
    dateline().save(tmp_path / name)
    assert load(tmp_path / name) == dateline()
    assert verify(tmp_path / name).facts["layers"] == 2
    if name.endswith("json"):
        rows = json.loads((tmp_path / name).read_text())["routes"]
        assert {frozenset(row) & {"layer", "layers"} for row in rows} == {
            frozenset({"layer"}),
            frozenset({"layers"}),
        }
        assert all(len(row["layers"]) == len(row["links"]) for row in rows if "layers" in row)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"layers": [0]}, "expected one layer, or one per hop"),
        ({"layers": [0, 1, 0], "layer": 1}, "3 layers and a layer; expected one layer"),
        ({"layers": [0, "1", 0]}, "layers"),
        ({"layers": 3}, "layers"),
        ({"layers": None}, "layers"),
    ],
)
def test_wrong_layers_in_a_file_are_named(change: dict[str, Any], words: str) -> None:
    """Too few, no numbers, or two kinds of them."""
    value = answer_to_json(dateline())
    row = next(row for row in value["routes"] if len(row.get("layers", [])) == 3)
    del row["layers"]
    row.update(change)
    with pytest.raises(FormatError, match=words):
        answer_from_json(value, "file")
    row.pop("layers")
    row.pop("layer", None)
    with pytest.raises(FormatError, match="routes have a layer; expected all"):
        answer_from_json(value, "file")


@pytest.mark.parametrize("target", ["routes", "srv6"])
def test_tables_carry_a_layer_per_hop(target: str) -> None:
    """What is written is read back, and held against the routes."""
    routes = dateline()
    text = TARGETS[target].emit(routes, Options())
    assert verify_text(text, "text", routes)["layers"] == 2
    other = np.array(routes.hop_layer)
    other[routes.changes_layer[routes.path_of_link]] += 2
    with pytest.raises(VerificationError, match="differ from the saved ones"):
        verify_text(text, "text", replace(routes, hop_layer=other))


def test_a_table_that_can_deadlock_is_refused() -> None:
    """The layers of hops that a table has are judged too."""
    layer = np.zeros(len(RING.link), dtype=np.int64)
    layer[RING.start[np.argmax(RING.hops)]] = 1
    text = TARGETS["routes"].emit(replace(RING, layer=None, hop_layer=layer), Options())
    with pytest.raises(VerificationError, match="can deadlock"):
        verify_text(text, "text")


def test_a_fabric_with_one_layer_per_route_says_what_to_do() -> None:
    """It refuses, and names the way out."""
    with pytest.raises(LimitError, match=r"5 routes change layer .* without change=true, or"):
        TARGETS["ompi"].emit(dateline(), Options())
