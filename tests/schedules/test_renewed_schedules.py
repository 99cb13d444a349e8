"""After a failure: a schedule begins with the last paths, keeps its chunks, and holds."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.errors import FormatError, InputError, UsageError, VerificationError
from alltoall.flows.program import certify
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.placing.chunks import Chunks, Table
from alltoall.routes.weights import routes_from_weights
from alltoall.schedules.by_list import routes_of
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.orders import order_by_list, place_all
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import remove_links, remove_nodes, with_host_bandwidth
from alltoall.topologies.spec import build
from command_line import Run

KAUTZ = build("genkautz:n=16,d=3")
LAST = alltoall.schedule(KAUTZ, chunks=2)
LINK = (int(KAUTZ.tail[5]), int(KAUTZ.head[5]))
CUT = remove_links(KAUTZ, [LINK])


@pytest.mark.parametrize("topology", [CUT, remove_nodes(KAUTZ, [3])], ids=["link", "node"])
def test_a_schedule_avoids_what_failed(topology: alltoall.Topology) -> None:
    """It is checked, has as many chunks, and says what the last one loses."""
    problem = Problem.all_to_all(topology)
    found = find_schedule(problem, last=LAST)
    schedule = found.schedule
    assert check_schedule(schedule).time == pytest.approx(schedule.time)
    assert (schedule.chunks_per_shard, schedule.method) == (2, "list")
    optimum = alltoall.solve(problem).time
    assert schedule.bound <= optimum * (1 + 1e-6)
    assert schedule.time <= optimum * 1.15
    said = found.learnt()["last"]
    assert 0 < said["unserved"] < 0.2
    assert said["repaired_gap"] > schedule.gap


@pytest.mark.parametrize(
    "topology",
    [KAUTZ, build("fattree:k=4"), with_host_bandwidth(build("torus:3x3"), 2.0)],
    ids=["direct", "switches", "hosts"],
)
def test_the_sends_of_a_chunk_are_a_path(topology: alltoall.Topology) -> None:
    """Also over switches, within a step: routes that carry all, and as much on each link."""
    schedule = alltoall.schedule(topology, method="list", chunks=2)
    routes = routes_of(schedule)
    assert routes.count == schedule.chunks.total
    check_routes(_merged(routes))
    assert routes.load() == pytest.approx(schedule.loads().sum(axis=0))


def _merged(routes: Routes) -> Routes:
    paths, weight = routes.merge_equal(routes.weight)
    return routes_from_weights(routes.problem, paths, weight, routes.certificate, routes.method)


def test_a_chunk_may_pass_a_switch_twice() -> None:
    """Its path has more links than there are nodes, and stays as it is where nothing failed."""
    star = build("switch:3")
    problem = Problem.all_to_all(star)
    link = {ends: each for each, ends in enumerate(zip(star.tail, star.head, strict=True))}

    def by_way_of_another(cut: Chunks) -> Table:
        table = np.full((len(cut.start), 4), NOTHING, dtype=np.int32)
        for row, (start, end) in enumerate(zip(cut.start, cut.end, strict=True)):
            stops = [start, 3, end]
            if (start, end) == (0, 2):
                stops = [0, 3, 1, 3, 2]
            table[row, : len(stops) - 1] = [link[hop] for hop in pairwise(stops)]
        return table

    order = order_by_list(place_all(problem, 1, by_way_of_another), 1.0)
    assert order is not None
    last = order.write(certify(problem, [np.ones(star.links)]), 2.0)
    assert routes_of(last).hops.max() == 4
    found = alltoall.schedule(star, from_=last)
    assert check_schedule(found).time == pytest.approx(2.0)


def test_uneven_demands_and_units_of_their_own() -> None:
    """Shards of all sizes over links of 25: the same after a failure, in the caller's units."""
    matrix = 1.0 + np.arange(16**2, dtype=np.float64).reshape(16, 16) % 3
    np.fill_diagonal(matrix, 0.0)
    wide = replace(KAUTZ, capacity=KAUTZ.capacity * 25)
    last = alltoall.schedule(wide, demand=matrix, method="list", chunks=2)
    cut = remove_links(wide, [LINK])
    found = alltoall.schedule(cut, demand=matrix, from_=last)
    check_schedule(found)
    assert found.chunks == last.chunks
    optimum = alltoall.solve(cut, demand=matrix).time
    assert optimum * (1 - 1e-6) <= found.time <= optimum * 1.15


def test_little_time_is_enough_for_an_answer() -> None:
    """Displaced chunks find a way, and the rest stays where it is."""
    check_schedule(alltoall.schedule(CUT, from_=LAST, time_limit=1e-3))


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        ({"method": "tsmcf"}, "--method tsmcf"),
        ({"method": "sccl"}, "--method sccl"),
        ({"method": "list:demands=skew"}, "demands="),
        ({"method": "auto:message-cost=0.1"}, "message-cost="),
        ({"chunks": 3}, "--chunks"),
        ({"method": "auto:max-chunks=3"}, "max-chunks="),
    ],
)
def test_what_means_nothing_is_refused(asked: dict[str, Any], named: str) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=f"{named} with a schedule to begin with.*leave it out"):
        alltoall.schedule(CUT, from_=LAST, **asked)


def test_steps_are_those_asked_for_or_refused() -> None:
    """The longest path needs a step per hop."""
    assert alltoall.schedule(CUT, from_=LAST, steps=6).steps <= 6
    with pytest.raises(InputError, match="1 steps; expected at least"):
        find_schedule(Problem.all_to_all(CUT), "list", ScheduleSettings(steps=1), LAST)


def test_a_schedule_that_is_wrong_is_no_beginning() -> None:
    """Its sends are no paths."""
    keep = np.arange(LAST.sends - 1)
    columns = ("step", "source", "destination", "chunk", "link")
    some: dict[str, Any] = {key: getattr(LAST, key)[keep] for key in columns}
    with pytest.raises(VerificationError, match="never arrive"):
        alltoall.schedule(CUT, from_=replace(LAST, **some))


def test_the_verb_begins_with_a_saved_schedule(run: Run, tmp_path: Path) -> None:
    """It says what the last one loses; the new one is saved and verifies; flows are refused."""
    saved, renewed, flow = (tmp_path / name for name in ("last.npz", "new.json", "flow.json"))
    LAST.save(saved)
    words = ("schedule", "genkautz:n=16,d=3", "--remove-link", f"{LINK[0]}-{LINK[1]}", "--from")
    found = run(*words, saved, "--output", renewed, "--json").json
    assert list(found["last"]) == ["unserved", "repaired_gap", "moved"]
    assert isinstance(alltoall.load(renewed), Schedule)
    assert run("verify", renewed).code == 0
    assert "the old schedule loses" in run(*words, saved).out
    alltoall.solve(KAUTZ).save(flow)
    assert "expected 'alltoall.schedule/1'" in run(*words, flow).err
    with pytest.raises(FormatError):
        alltoall.schedule(CUT, from_=flow)
