"""Fewer layers by other routes: sound, no slower than they say, and within what is allowed."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alltoall import Problem, Routes, Topology
from alltoall.check.routes import check_routes
from alltoall.ir.demand import Demand
from alltoall.routes import route
from alltoall.routes.layers.assign import Rerouting, assign_layers, layers_in_time
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build

QUIET = SolveSettings(workers=1)
KNOWN: dict[tuple[str, str], Routes] = {}


def layered(spec: str, method: str = "single", algorithm: str = "lash") -> Routes:
    """Return routes with the layers that a plain algorithm finds, made once."""
    if (spec, method) not in KNOWN:
        found = route(Problem.all_to_all(build(spec)), method, RouteSettings(solve=QUIET))
        KNOWN[spec, method] = assign_layers(found, algorithm)
    return KNOWN[spec, method]


@pytest.mark.parametrize("spec", ["genkautz:n=64,d=4", "jellyfish:n=40,d=4,seed=1"])
def test_fewer_layers_as_fast(spec: str) -> None:
    """At least one layer less than first fit, at the same time, one route per pair as before."""
    before = layered(spec)
    found, slower = Rerouting(before, QUIET).as_fast()
    assert found is not None
    report = check_routes(found)
    assert (report.layers or 0) < (before.layers or 0)
    assert report.time == before.time
    assert found.count == before.count
    assert slower is None or slower.time > before.time


@settings(max_examples=15)
@given(
    spec=st.sampled_from(("genkautz:n=32,d=4", "jellyfish:n=16,d=4,seed=1", "torus:5x5")),
    method=st.sampled_from(("single", "few", "extp")),
    layers=st.integers(1, 4),
)
def test_any_number_of_layers(spec: str, method: str, layers: int) -> None:
    """Routes are sound, in no more layers than that, and carry the same; or there are none."""
    before = layered(spec, method)
    if layers >= (before.layers or 0):
        return
    found = Rerouting(before, QUIET).within(layers)
    if found is not None:
        report = check_routes(found)
        assert (report.layers or 0) <= layers
        assert report.bound == before.bound
        assert found.weight.sum() == pytest.approx(before.weight.sum())
        assert found.routes_per_pair().max() <= before.routes_per_pair().max()
        assert found.denominator == before.denominator


def test_uneven_sizes_and_capacities_count() -> None:
    """Times are loads over capacity, and demands differ."""
    rng = np.random.default_rng(3)
    topology = build("jellyfish:n=32,d=4,seed=1")
    uneven = replace(topology, capacity=rng.choice([1.0, 4.0], topology.links))
    problem = Problem(uneven, Demand(32, rng.uniform(0.1, 2.0, (32, 32)) * (1 - np.eye(32))))
    before = assign_layers(route(problem, "single", RouteSettings(solve=QUIET)), "lash")
    found = Rerouting(before, QUIET).within((before.layers or 0) - 1)
    assert found is not None
    assert check_routes(found).time == pytest.approx(found.time)


def test_one_way_rings_have_no_other_routes() -> None:
    """Where pairs have one route only, layers stay as they are."""
    links = [(node, (node + 1) % 5) for node in range(5)]
    problem = Problem.all_to_all(Topology.from_links("one-way ring", 5, links))
    before = assign_layers(route(problem, "single", RouteSettings(solve=QUIET)))
    assert (before.layers or 0) > 1
    assert Rerouting(before, QUIET).within(1) is None
    assert Rerouting(before, QUIET).as_fast() == (None, None)


def test_without_time_nothing_is_rerouted() -> None:
    """A signal to stop leaves the layers that there are."""
    stopped = SolveSettings(stopped=lambda: True)
    assert Rerouting(layered("genkautz:n=32,d=4"), stopped).as_fast() == (None, None)


def test_a_limit_on_layers_costs_time_and_says_so() -> None:
    """What `--max-layers` gave up on before is found at a loss, and a note has both points."""
    plain = replace(layered("jellyfish:n=32,d=4,seed=1", "extp"), layer=None)
    free, notes = layers_in_time(plain, "lash-sequential", None, QUIET)
    allowed = (free.layers or 0) - 1
    assert f"another choice: other routes (--max-layers {allowed})" in notes[-1]
    found, notes = layers_in_time(plain, "lash-sequential", allowed, QUIET)
    assert (check_routes(found).layers or 0) <= allowed
    assert found.time > plain.time
    assert notes[0].startswith(f"other routes: time {found.time:.9g}, layers {found.layers}; inst")
