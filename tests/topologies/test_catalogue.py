"""The catalogue: what it says of its networks is true, and they are better than families."""

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import alltoall
from alltoall.designs.candidate import certify_candidate
from alltoall.designs.design import Wanted
from alltoall.designs.search import search_regular
from alltoall.designs.wiring import regular_wiring
from alltoall.errors import TopologyError
from alltoall.flows.bounds import cable_bound, regular_bound
from alltoall.ir.demand import Demand
from alltoall.settings import SolveSettings
from alltoall.topologies.expanders import times
from alltoall.topologies.properties import mean_distance
from catalogue import Task, search_entry

TIMES = times()
KEYS = [(n, d, bool(one_way)) for n, d, one_way in TIMES["key"].tolist()]


def spec_of(key: tuple[int, int, bool]) -> str:
    """Return the SPEC of an entry."""
    n, d, one_way = key
    return f"best:n={n},d={d}" + ("" if one_way else ",bidirectional=true")


def test_every_entry_is_regular_connected_and_as_near_as_its_time() -> None:
    """Its certified time is not below what its distances need, nor below a bound."""
    for key, time, bound in zip(KEYS, TIMES["time"], TIMES["bound"], strict=True):
        n, d, one_way = key
        topology = alltoall.topology(spec_of(key))
        assert set(topology.out_degree.tolist()) == set(topology.in_degree.tolist()) == {d}
        assert topology.bidirectional or one_way
        needed = mean_distance(topology) * (n - 1) / d
        assert needed <= time * (1 + 1e-9)
        of_any = float((regular_bound if one_way else cable_bound)(n, d))
        assert max(of_any, bound) <= time * (1 + 1e-9)
        assert time <= bound * (1 + 1e-3)


@pytest.mark.parametrize("key", KEYS[:: len(KEYS) // 6])
def test_a_solver_finds_the_time_of_an_entry(key: tuple[int, int, bool]) -> None:
    """From its links alone."""
    flow = alltoall.solve(spec_of(key), method="first-order", gap=1e-3)
    time = TIMES["time"][KEYS.index(key)]
    assert flow.bound <= time * (1 + 1e-9)
    assert flow.time == pytest.approx(time, rel=3e-3)


def test_no_entry_is_worse_than_generalized_kautz_and_most_are_better() -> None:
    """On average more than half of its distance to the bound is closed."""
    one_way = TIMES["key"][:, 2] == 1
    time, kautz = TIMES["time"][one_way], TIMES["kautz"][one_way]
    bound = np.array([float(regular_bound(n, d)) for n, d, _ in TIMES["key"][one_way].tolist()])
    assert (time <= kautz * (1 + 1e-9)).all()
    open_ = kautz > bound * (1 + 1e-3)
    closed = (kautz - time)[open_] / (kautz - bound)[open_]
    assert closed.mean() >= 0.5


@pytest.mark.parametrize(
    "task",
    [
        Task(16, 3, True, 60.0, 5),
        Task(24, 3, False, 1.0, 0),
        Task(20, 4, True, 1.0, 0),
        Task(90, 4, True, 0.3, 5),
    ],
)
def test_a_fresh_search_does_not_beat_the_catalogue(task: Task) -> None:
    """With counted work from a fixed seed: whoever makes the search better searches again."""
    known = TIMES["time"][KEYS.index((task.nodes, task.degree, task.directed))]
    assert search_entry(task).time >= known * (1 - 1e-6)


GAP = 1e-3
"""The certified gap of the times of entries."""

FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"
EFFORT, EXAMPLES = (0.3, 40) if FULL else (0.02, 6)
"""How long is searched: `make fuzz` does it for longer."""

KEPT = 3
"""How many of what a search finds are certified."""

SIZES = [key for key in KEYS if key[0] <= 128]


@settings(max_examples=EXAMPLES)
@given(size=st.sampled_from(SIZES), seed=st.integers(0, 99))
def test_a_fresh_search_finds_nothing_better(size: tuple[int, int, bool], seed: int) -> None:
    """It starts from nothing that the catalogue knows."""
    nodes, degree, directed = size
    wiring, solving = regular_wiring(nodes, degree, directed), SolveSettings(gap=GAP, workers=1)
    wanted = Wanted(wiring, degree, Demand(nodes))
    pool = search_regular(wanted.wiring, degree, seed, solving, KEPT, EFFORT)
    known = TIMES["time"][KEYS.index(size)]
    for found in pool:
        if found.time < known:
            topology = found.wiring.topology(found.name)
            fresh = certify_candidate(wanted.problem_on(topology), wanted.bound, True, solving)
            assert known <= fresh.time * (1 + GAP)


@pytest.mark.parametrize(
    ("nodes", "degree", "found"), [(16, 3, 10), (52, 4, 32.41), (90, 4, 64.03)]
)
def test_what_half_a_minute_found_is_in_it(nodes: int, degree: int, found: float) -> None:
    """Times that a search of half a minute once reached where the catalogue was behind."""
    assert TIMES["time"][KEYS.index((nodes, degree, True))] <= found * (1 + 1e-9)


def test_what_is_not_there_is_said() -> None:
    """With what is."""
    with pytest.raises(TopologyError, match=r"the catalogue, which has n = 8 to .* and d = 2 to 8"):
        alltoall.topology("best:n=5,d=2")
