"""Files of what differs after a failure: they lead back to all routes, and to no others."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.check.routes import check_routes
from alltoall.errors import AlltoallError, InputError
from alltoall.ir.files.artefacts import artefact_of, read_artefact
from alltoall.ir.files.json import HEALTHY_FILE, switch_over_to_json
from alltoall.ir.files.json.switch_over import digest_of
from alltoall.ir.routes import Routes
from alltoall.routes.layers.assign import assign_layers
from alltoall.routes.renew import renew_routes
from alltoall.settings import SolveSettings
from alltoall.topologies.failures import Failure

KAUTZ = "genkautz:n=12,d=3"


def uneven() -> alltoall.Demand:
    """Return a demand in which pairs differ."""
    amounts = 1.0 + np.arange(144, dtype=np.float64).reshape(12, 12) % 3
    np.fill_diagonal(amounts, 0.0)
    return alltoall.Demand(12, amounts)


HEALTHY: dict[str, Routes] = {
    "single": alltoall.route(KAUTZ, method="single"),
    "weighted": alltoall.route(KAUTZ, demand=uneven()),
    "without layers": alltoall.route("torus:3x3", method="single", layers=None),
    "with names": alltoall.route("dgx1", method="single"),
    "changing layers": alltoall.route("ring:5", deadlock_free=2, layer_change=True),
}
"""Routes of every kind."""


def failures(routes: Routes) -> list[Failure]:
    """Return a link, a node, and both, none of which cuts anyone off."""
    topology = routes.problem.topology
    link = int(topology.tail[3]), int(topology.head[3])
    if topology.name == "ring:5":
        return [Failure(links=(link,))]
    other = next(node for node in range(topology.nodes) if node not in link)
    return [Failure(links=(link,)), Failure(nodes=(1,)), Failure((link,), (other,))]


def saved(folder: Path, healthy: Routes, now: Routes, failure: Failure) -> Path:
    """Save a difference, and the healthy routes beside it."""
    links = failure.numbers_of_links(healthy.problem.topology)
    value = switch_over_to_json(healthy, now, links, np.array(failure.nodes, dtype=np.int64))
    healthy.save(folder / HEALTHY_FILE)
    path = folder / "failed.json"
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize("name", HEALTHY)
def test_what_is_read_back_is_what_was_found(name: str, tmp_path: Path) -> None:
    """The same routes with the same weights, layers and proof, on what is left."""
    healthy = HEALTHY[name]
    for failure in failures(healthy):
        left = failure.left_of(healthy.problem)
        now = renew_routes(left, healthy, SolveSettings(workers=1)).routes
        if healthy.layers is not None:
            now = assign_layers(now)
        found = read_artefact(saved(tmp_path, healthy, now, failure))
        assert isinstance(found, Routes)
        assert found.problem == left
        assert found.certificate == now.certificate
        assert found.problem.topology.names == left.topology.names
        assert sorted(_rows(found)) == sorted(_rows(now))
        assert check_routes(found) == check_routes(now)
        assert alltoall.load(tmp_path / "failed.json") == found


def _rows(routes: Routes) -> list[Any]:
    """Return the routes as plain values; a fraction may be off by a last digit."""
    columns = {**routes._columns(), "weight": routes.weight.round(12)}
    return list(zip(*(map(str, column) for column in columns.values()), strict=True))


def test_the_digest_is_of_what_routes_say(tmp_path: Path) -> None:
    """Whatever the form of their file; and another route makes another."""
    healthy = HEALTHY["single"]
    for name in ("routes.json", "routes.npz"):
        healthy.save(tmp_path / name)
        found = read_artefact(tmp_path / name)
        assert isinstance(found, Routes)
        assert digest_of(found) == digest_of(healthy)
    digests = {digest_of(each) for each in HEALTHY.values()}
    assert len(digests) == len(HEALTHY)


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "another file": (
        {"healthy": {"file": "../x.npz", "digest": ""}},
        "expected the name of a file",
    ),
    "no digest": ({"healthy": {"file": HEALTHY_FILE}}, "digest is missing"),
    "other routes": (
        {"healthy": {"file": HEALTHY_FILE, "digest": "0" * 64}},
        "expected the healthy routes that it was made with",
    ),
    "a link that is none": ({"failed": {"links": [999], "nodes": []}}, "links is .999."),
    "nothing failed": ({"failed": None}, "expected an object"),
    "a route over the failed link": ({"removed": []}, "has a node or link that failed"),
    "a route twice": ({"removed": [1, 1]}, "removed is .1, 1.; expected numbers"),
    "a layer of no route": ({"layers": [[999, 0]]}, "layers of route 999"),
    "half a layer": ({"layers": [[1]]}, "expected .route, layer."),
    "too few lengths": ({"lengths": [1.0]}, "1 lengths; expected"),
    "no list": ({"added": 3}, "added is 3; expected an array"),
    "no links": ({"added": [{"src": 0}]}, "links is missing"),
    "no node": ({"added": [{"src": [], "dst": 1, "links": []}]}, "failed or is none"),
    "another time": ({"time": 1.0}, "time"),
}
"""What is wrong with a difference, and what is said."""


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_wrong_is_said(name: str, tmp_path: Path) -> None:
    """With the name of the file."""
    healthy = HEALTHY["single"]
    failure = failures(healthy)[0]
    now = renew_routes(failure.left_of(healthy.problem), healthy, SolveSettings(workers=1)).routes
    path = saved(tmp_path, healthy, assign_layers(now), failure)
    change, said = CHANGES[name]
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(AlltoallError, match=f"(?s)failed.json.*{said}"):
        read_artefact(path)


def test_a_difference_needs_what_it_is_to(tmp_path: Path) -> None:
    """Routes, in the same folder; what comes by other ways has no folder."""
    healthy = HEALTHY["single"]
    path = saved(tmp_path, healthy, healthy, Failure())
    assert read_artefact(path).time == healthy.time
    with pytest.raises(InputError, match="a difference to routes that are not here"):
        artefact_of(path.read_bytes(), "bytes")
    alltoall.solve("ring:4").save(tmp_path / HEALTHY_FILE)
    with pytest.raises(InputError, match=r"expected 'alltoall\.routes/1', to which"):
        read_artefact(path)
