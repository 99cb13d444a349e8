"""Weights to whole chunks, and fewer routes per pair: still correct, at a small known cost."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alltoall
from alltoall.check.routes import check_routes
from alltoall.errors import InputError, UsageError
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.weights import route_extp
from alltoall.routes.whole_chunks import bounded_chunks, common_factor_chunks, limit_routes
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.spec import build
from strategies import problems

SETTINGS = RouteSettings()


@cache
def weighted(spec: str) -> Routes:
    """Return the optimal weighted routes of a topology."""
    return route_extp(Problem.all_to_all(build(spec)), SETTINGS)


@pytest.mark.parametrize(
    ("spec", "chunks"), [("hypercube:3", 1), ("bipartite:4x4", 2), ("genkautz:n=16,d=4", 7)]
)
def test_common_factor(spec: str, chunks: int) -> None:
    """The highest common factor of all weights gives the chunks, at no loss."""
    routes = weighted(spec)
    assert common_factor_chunks(routes) == chunks
    whole = bounded_chunks(routes, chunks, SETTINGS)
    assert whole.denominator == chunks
    assert whole.time == pytest.approx(routes.time)


def test_no_common_factor_within_the_limit() -> None:
    """Weights that no small number of chunks can give have none."""
    assert common_factor_chunks(weighted("genkautz:n=16,d=4"), most_chunks=6) is None


@pytest.mark.parametrize("chunks", [10**6, 10**20])
def test_more_chunks_than_fit_are_refused(chunks: int) -> None:
    """Before there is room for them, also where they are more than numbers count."""
    with pytest.raises(InputError, match="chunks of all shards; expected at most 20,000,000"):
        bounded_chunks(weighted("hypercube:3"), chunks, SETTINGS)


@pytest.mark.parametrize("chunks", [1, 2, 4, 8])
@pytest.mark.parametrize(
    "spec", ["hypercube:3", "bipartite:4x4", "torus:3x3x3", "genkautz:n=16,d=4"]
)
def test_bounded_chunks_lose_at_most_one_chunk(spec: str, chunks: int) -> None:
    """On these the time is the best that whole chunks can have, or one chunk more."""
    said: list[str] = []
    routes = weighted(spec)
    loud = RouteSettings(solve=SolveSettings(report=said.append))
    whole = bounded_chunks(routes, chunks, loud)
    report = check_routes(whole)
    assert whole.denominator == chunks
    assert report.max_routes_per_pair <= chunks
    least = np.ceil(routes.bound * chunks * (1 - 1e-9)) / chunks
    assert least - 1e-9 <= report.time <= least + (1 / chunks if chunks == 1 else 0.0) + 1e-9
    assert "loss" in said[-1]


@given(problem=problems(), chunks=st.integers(1, 4))
def test_any_demand_is_carried_in_whole_chunks(problem: Problem, chunks: int) -> None:
    """Whatever the demand, capacities and switches, the routes carry it exactly."""
    whole = bounded_chunks(route_extp(problem, SETTINGS), chunks, SETTINGS)
    check_routes(whole)
    assert bounded_chunks(whole, chunks, SETTINGS).time <= whole.time * (1 + 1e-9)


@given(problem=problems(), most_chunks=st.integers(1, 3))
def test_routes_are_limited(problem: Problem, most_chunks: int) -> None:
    """No pair has more routes than asked for, and all demand is carried."""
    limited = limit_routes(route_extp(problem, SETTINGS), most_chunks, SETTINGS)
    assert check_routes(limited).max_routes_per_pair <= most_chunks


def test_limiting_is_re_optimised() -> None:
    """Two routes per pair lose little where dropping the lightest would lose much."""
    routes = weighted("genkautz:n=16,d=4")
    limited = limit_routes(routes, 2, SETTINGS)
    assert limited.time <= routes.time * 1.02
    assert limit_routes(routes, 8, SETTINGS) is routes


def test_nonsense_is_refused() -> None:
    """At least one chunk, at least one route."""
    with pytest.raises(UsageError, match="at least 1"):
        bounded_chunks(weighted("hypercube:3"), 0, SETTINGS)
    with pytest.raises(UsageError, match="at least 1"):
        limit_routes(weighted("hypercube:3"), 0, SETTINGS)


@pytest.mark.parametrize("layering", ["none", "lash-sequential"])
def test_raw_routes_are_the_extracted_paths(layering: str) -> None:
    """On the 3x3x3 torus whole chunks and dimension order take fewer routes; raw ones stay."""
    ours = alltoall.route("torus:3x3x3", f"extp:layering={layering}")
    raw = alltoall.route("torus:3x3x3", f"extp:raw,layering={layering}")
    extracted = weighted("torus:3x3x3")
    assert raw.method == "extp:raw"
    assert raw.count > 1.1 * ours.count
    for key in ("source", "destination", "start", "link"):
        assert np.array_equal(getattr(raw, key), getattr(extracted, key))
    assert raw.weight == pytest.approx(extracted.weight, rel=1e-9)
    assert check_routes(raw).time == pytest.approx(raw.bound)


def test_only_extp_has_raw_paths() -> None:
    """Another method is told so."""
    with pytest.raises(UsageError, match="method single: no setting 'raw'"):
        alltoall.route("ring:4", "single:raw")
