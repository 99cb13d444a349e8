"""Spreading whole chunks by prices: sound paths, near the bound, the same however it is run."""

import numpy as np
import pytest
from hypothesis import given, settings

from alltoall.flows import sizes
from alltoall.flows.threads import using_threads
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.paths.any_path import Chunks, Table, negotiate
from alltoall.routes.best_response import best_response_paths
from alltoall.settings import SolveSettings, cores
from alltoall.topologies.spec import build
from strategies import problems


def chunks_of(problem: Problem) -> Chunks:
    """Return one chunk per pair."""
    terminals = problem.topology.terminals
    source, destination = problem.demand.pairs()
    size = problem.demand.rows(np.arange(len(terminals)))[source, destination]
    return Chunks(terminals[source], terminals[destination], size)


def time_of(problem: Problem, chunks: Chunks, table: Table) -> float:
    """Return the largest load over capacity, after checking that every row is a simple path."""
    topology = problem.topology
    load = np.zeros(topology.links)
    for row, links in enumerate(table):
        path = links[links != NOTHING]
        nodes = [chunks.start[row], *topology.head[path]]
        assert nodes[:-1] == topology.tail[path].tolist()
        assert nodes[-1] == chunks.end[row]
        assert len(set(nodes)) == len(nodes)
        load[path] += chunks.size[row]
    return float((load / topology.capacity).max())


@pytest.mark.parametrize(
    ("spec", "optimum"),
    [
        ("genkautz:n=64,d=4", 46.067),
        ("genkautz:n=100,d=4", 80.929),
        ("torus:4x4x4", 32),
        ("fattree:k=4", 15),
        ("slimfly:q=5", 13),
    ],
)
def test_single_paths_come_within_a_chunk_or_two_of_the_optimum(spec: str, optimum: float) -> None:
    """Without any flow to start from; the optima are those of the master program."""
    problem = Problem.all_to_all(build(spec))
    table = best_response_paths(problem.topology, chunks_of(problem), optimum, SolveSettings())
    time = time_of(problem, chunks_of(problem), table)
    assert optimum - 1e-3 <= time <= optimum + 2


@settings(max_examples=40)
@given(problem=problems())
def test_any_problem_gets_sound_paths(problem: Problem) -> None:
    """Whatever the demand, the capacities and the switches."""
    chunks = chunks_of(problem)
    table = best_response_paths(problem.topology, chunks, 1e-6, SolveSettings())
    assert time_of(problem, chunks, table) > 0


def test_wide_links_take_the_load_of_narrow_ones() -> None:
    """Two ways round a ring, one of a thousand times the capacity: all that can goes there."""
    ring = build("ring:6")
    wide = (ring.head - ring.tail) % 6 == 1
    capacity = np.where(wide, 1000.0, 1.0)
    problem = Problem.all_to_all(type(ring)(**{**vars(ring), "capacity": capacity}))
    chunks = chunks_of(problem)
    table = best_response_paths(problem.topology, chunks, 1e-3, SolveSettings())
    assert time_of(problem, chunks, table) == pytest.approx(15 / 1000)


def test_out_of_time_still_gives_every_chunk_a_path() -> None:
    """The paths of fewest hops, at worst."""
    problem = Problem.all_to_all(build("genkautz:n=32,d=4"))
    late = SolveSettings(time_limit=1e-9).begin()
    time_of(
        problem,
        chunks_of(problem),
        best_response_paths(problem.topology, chunks_of(problem), 1, late),
    )


def test_threads_and_blocks_do_not_change_the_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trees of a block are found under the same prices, whoever finds them."""
    monkeypatch.setattr(sizes, "FRESH_PRICE_SOURCES", 0)
    problem = Problem.all_to_all(build("genkautz:n=50,d=4"))
    tables = []
    for threads in (1, cores()):
        with using_threads(threads):
            tables.append(
                best_response_paths(problem.topology, chunks_of(problem), 32.5, SolveSettings())
            )
    assert np.array_equal(tables[0], tables[1])
    assert time_of(problem, chunks_of(problem), tables[0]) <= 35


def test_negotiation_heals_what_is_over_budget_and_leaves_its_input_alone() -> None:
    """All pairs of the 3-cube on paths of fewest hops, then within the optimum of 4."""
    problem = Problem.all_to_all(build("hypercube:3"))
    chunks = chunks_of(problem)
    late = SolveSettings(time_limit=1e-9).begin()
    start = best_response_paths(problem.topology, chunks, 4.0, late)
    kept = start.copy()
    assert time_of(problem, chunks, start) > 4
    tries = [negotiate(problem.topology, chunks, start, np.full(24, 4.0), 200, s) for s in range(8)]
    healed = [table for table, fits in tries if fits]
    assert healed
    assert time_of(problem, chunks, healed[0]) == 4
    assert np.array_equal(start, kept)
