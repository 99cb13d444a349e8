"""Synthesis by SMT on a handful of nodes."""

import sys

import numpy as np
import pytest

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError, MissingComponentError, TimeLimitError
from alltoall.flows import SolveSettings
from alltoall.ir.demand import Demand
from alltoall.ir.problem import Problem
from alltoall.schedules.sccl import synthesise
from alltoall.topologies.operators import set_capacities, with_host_bandwidth
from alltoall.topologies.spec import build


@pytest.mark.parametrize(
    ("spec", "chunks", "steps", "time"),
    [
        ("complete:4", 1, 1, 1.0),
        ("ring:4", 1, 2, 2.0),
        ("ring:4", 2, 2, 2.0),
        ("ring:5", 1, 2, 3.0),
        ("bipartite:2x2", 1, 2, 2.0),
    ],
)
def test_fewest_steps_and_rounds(spec: str, chunks: int, steps: int, time: float) -> None:
    """The schedule has the diameter's steps and the optimum's time."""
    schedule = synthesise(Problem.all_to_all(build(spec)), chunks)
    report = check_schedule(schedule)
    assert report.steps == steps
    assert report.time == pytest.approx(time)


def test_more_steps_than_the_diameter() -> None:
    """Links that are reached only past a chunk's destination are on no way of it."""
    schedule = synthesise(Problem.all_to_all(build("mesh:1x3")), steps=3)
    assert check_schedule(schedule).time == pytest.approx(2.0)


def test_uneven_demand_and_capacities() -> None:
    """Chunks of different sizes over links of different widths."""
    ring = set_capacities(build("ring:4"), {(0, 1): 2.0, (1, 2): 0.5})
    matrix = np.array([[0, 2, 1, 0], [0, 0, 1, 0], [0.5, 0, 0, 1], [0, 0, 0, 0]], dtype=float)
    assert check_schedule(synthesise(Problem(ring, Demand(4, matrix)))).steps == 2


def test_too_few_steps_or_chunks_are_told() -> None:
    """What cannot be is said with what to allow."""
    problem = Problem.all_to_all(build("ring:4"))
    with pytest.raises(InputError, match="allow at least 2"):
        synthesise(problem, steps=1)
    with pytest.raises(InputError, match="0 chunks"):
        synthesise(problem, chunks=0)


def test_switches_are_refused() -> None:
    """Nodes that store nothing are not SCCL's."""
    hosted = with_host_bandwidth(build("ring:4"), 1.0)
    with pytest.raises(InputError, match="not terminals"):
        synthesise(Problem.all_to_all(hosted))


def test_no_time_is_told() -> None:
    """A search that cannot even begin says so rather than returning nothing."""
    problem = Problem.all_to_all(build("hypercube:3"))
    with pytest.raises(TimeLimitError, match="time limit of 1e-06 s came before any schedule of 3"):
        synthesise(problem, settings=SolveSettings(time_limit=1e-6))


def test_missing_z3_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without z3 the message is a command."""
    monkeypatch.setitem(sys.modules, "z3", None)
    with pytest.raises(MissingComponentError, match=r"pip install '\.\[sccl\]' in a clone"):
        synthesise(Problem.all_to_all(build("ring:4")))
