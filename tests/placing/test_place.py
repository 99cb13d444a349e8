"""Best responses to link prices: sound paths, near the bound, the same on any number of threads."""

import numpy as np
import pytest
from hypothesis import given

from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.placing.chunks import Chunks, Table
from alltoall.placing.negotiate import negotiate
from alltoall.placing.network import any_path
from alltoall.placing.place import PlacementParams, place
from alltoall.topologies.spec import build
from strategies import problems


def chunks_of(problem: Problem) -> Chunks:
    """Return one chunk per pair."""
    terminals = problem.topology.terminals
    source, destination = problem.demand.pairs()
    size = problem.demand.rows(np.arange(len(terminals)))[source, destination]
    return Chunks(terminals[source], terminals[destination], size)


def placed(problem: Problem, goal: float, late: bool = False, **params: int) -> Table:
    """Return the paths of one chunk per pair."""
    settings = PlacementParams(**params)
    network = any_path(problem.topology)
    found = place(network, chunks_of(problem), goal, settings, late=lambda: late)
    assert found is not None
    assert found.time == pytest.approx(time_of(problem, chunks_of(problem), found.table))
    return found.table


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
    table = placed(problem, optimum)
    time = time_of(problem, chunks_of(problem), table)
    assert optimum - 1e-3 <= time <= optimum + 2


@given(problem=problems())
def test_any_problem_gets_sound_paths(problem: Problem) -> None:
    """Whatever the demand, the capacities and the switches."""
    chunks = chunks_of(problem)
    table = placed(problem, 1e-6)
    assert time_of(problem, chunks, table) > 0


def test_wide_links_take_the_load_of_narrow_ones() -> None:
    """Two ways round a ring, one of a thousand times the capacity: all that can goes there."""
    ring = build("ring:6")
    wide = (ring.head - ring.tail) % 6 == 1
    capacity = np.where(wide, 1000.0, 1.0)
    problem = Problem.all_to_all(type(ring)(**{**vars(ring), "capacity": capacity}))
    chunks = chunks_of(problem)
    table = placed(problem, 1e-3)
    assert time_of(problem, chunks, table) == pytest.approx(15 / 1000)


def test_out_of_time_still_gives_every_chunk_a_path() -> None:
    """The paths of fewest hops, at worst."""
    problem = Problem.all_to_all(build("genkautz:n=32,d=4"))
    time_of(problem, chunks_of(problem), placed(problem, 1.0, late=True))


def test_threads_do_not_change_the_answer() -> None:
    """Sixteen sources search at the same prices, on whichever thread."""
    problem = Problem.all_to_all(build("genkautz:n=50,d=4"))
    tables = [placed(problem, 32.5, fresh_sources=0, threads=threads) for threads in (1, 2, 8)]
    assert np.array_equal(tables[0], tables[1])
    assert np.array_equal(tables[0], tables[2])
    assert time_of(problem, chunks_of(problem), tables[0]) <= 35


def test_chunks_without_a_path_move_first() -> None:
    """The others stay where they are as long as the goal allows it."""
    problem = Problem.all_to_all(build("genkautz:n=32,d=4"))
    start = placed(problem, 1.0)
    time = time_of(problem, chunks_of(problem), start)
    start[::7] = NOTHING
    found = place(any_path(problem.topology), chunks_of(problem), 1.5 * time, start=start)
    assert found is not None
    assert np.array_equal(found.table, found.repaired)
    kept = start[:, 0] != NOTHING
    assert np.array_equal(found.table[kept], start[kept])
    time_of(problem, chunks_of(problem), found.table)


def test_negotiation_heals_what_is_over_budget_and_leaves_its_input_alone() -> None:
    """All pairs of the 3-cube on paths of fewest hops, then within the optimum of 4."""
    problem = Problem.all_to_all(build("hypercube:3"))
    chunks = chunks_of(problem)
    start = placed(problem, 4.0, late=True)
    kept = start.copy()
    assert time_of(problem, chunks, start) > 4
    network, budget = any_path(problem.topology), np.full(24, 4.0)
    tries = [negotiate(network, chunks, start, budget, seed) for seed in range(8)]
    healed = [table for table, fits in tries if fits]
    assert healed
    assert time_of(problem, chunks, healed[0]) == 4
    assert np.array_equal(start, kept)
