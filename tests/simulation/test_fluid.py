"""Max-min fair fluid: held against a plain filling, SimGrid, and cases that a hand can work out."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import alltoall
from alltoall.errors import UsageError
from alltoall.ir.arrays import Floats
from alltoall.ir.fabric import Fabric
from alltoall.ir.paths import Paths
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.routes.phases import split_phases
from alltoall.simulation.fluid import Flows, FluidSettings, arrivals, flows_of
from strategies import problems

SYSTEM_PYTHON = Path("/usr/bin/python3")
"""Debian's python3-simgrid is a package of this interpreter."""


def plain_arrivals(flows: Flows, capacity: Floats) -> list[float]:
    """Return when flows end, by filling anew from nothing at every event, one flow at a time."""
    paths = flows.paths
    links = [paths.link[a:b] for a, b in zip(paths.start[:-1], paths.start[1:], strict=True)]
    left, ended, now = dict(enumerate(flows.bytes)), [0.0] * paths.count, 0.0
    while left:
        active = [flow for flow in left if flows.start[flow] <= now * (1 + 1e-12)]
        rate = plain_rates(active, links, flows.weight, capacity)
        begins = [flows.start[flow] for flow in left if flow not in active]
        ends = [now + left[flow] / rate[flow] for flow in active]
        then = min([*begins, *ends])
        for flow in active:
            left[flow] -= rate[flow] * (then - now)
            if left[flow] <= 1e-9 * flows.bytes[flow]:
                ended[flow] = then
                del left[flow]
        now = then
    return ended


def plain_rates(
    active: list[int], links: list[np.ndarray], weight: Floats, capacity: Floats
) -> dict[int, float]:
    """Return the rates of flows: all grow until a link is full, and those on it stay."""
    rate, free, growing = {}, capacity.copy(), list(active)
    while growing:
        used = np.zeros(len(capacity))
        for flow in growing:
            np.add.at(used, links[flow], weight[flow])
        share = np.where(used > 0, free / np.maximum(used, 1e-300), np.inf)
        full = int(np.argmin(share))
        level = share[full]
        for flow in [each for each in growing if full in links[each]]:
            rate[flow] = weight[flow] * level
            np.subtract.at(free, links[flow], rate[flow])
            growing.remove(flow)
    return rate


@cache
def routes_of(spec: str, method: str = "extp") -> Routes:
    """Return routes of a topology."""
    return alltoall.route(spec, f"{method}:layering=none")


def random_flows(draw: st.DrawFn, problem: Problem) -> Flows:
    """Draw flows over shortest routes of a problem, with sizes, weights and starts of their own."""
    routes = alltoall.route(problem, "ecmp:layering=none")
    few = draw(st.lists(st.integers(0, routes.count - 1), min_size=1, max_size=12, unique=True))
    paths = routes.select(np.array(few))

    def each(values: list[float]) -> Floats:
        drawn = st.lists(st.sampled_from(values), min_size=len(few), max_size=len(few))
        return np.array(draw(drawn))

    sizes, weights = each([1.0, 1.0, 2.0, 7.0, 1000.0]), each([1.0, 1.0, 0.5, 3.0])
    starts = each([0.0, 0.0, 0.0, 0.5, 2.0])
    return Flows(paths, sizes, weights, starts, np.ones(len(few), dtype=np.int64))


@given(st.data())
def test_events_change_what_a_filling_anew_would(data: st.DataObject) -> None:
    """Only levels above what ended are filled again, and no rate differs for that."""
    problem = data.draw(problems())
    flows = data.draw(st.composite(lambda draw: random_flows(draw, problem))())
    fabric = Fabric(problem.topology, 1.0)
    expected = plain_arrivals(flows, fabric.link_rates)
    assert arrivals(flows, fabric).tolist() == pytest.approx(expected, rel=1e-7)


def test_routes_at_their_weights_take_the_time_of_the_fullest_link() -> None:
    """Paced at their shares, the flows of the fullest link end together, when it is done."""
    routes = routes_of("genkautz:n=20,d=3")
    assert len(np.unique(routes.weight)) > 1
    found = alltoall.simulate(routes, link_bandwidth=1e9, bytes=10**6, weights="share")
    assert found.seconds == pytest.approx(routes.time * 1e-3)
    fair = alltoall.simulate(routes, link_bandwidth=1e9, bytes=10**6)
    assert fair.seconds > found.seconds * 1.001


def line(*hops: tuple[int, ...]) -> Paths:
    """Return paths over the links of a line of three nodes, there and back."""
    source = {0: 0, 1: 1, 2: 1, 3: 2}
    target = {0: 1, 1: 2, 2: 0, 3: 1}
    return Paths(
        np.array([source[each[0]] for each in hops]),
        np.array([target[each[-1]] for each in hops]),
        np.cumsum([0, *map(len, hops)]),
        np.concatenate([np.array(each) for each in hops]),
    )


LINE = alltoall.Topology.from_links("line", 3, [(0, 1, 1), (1, 2, 1), (1, 0, 1), (2, 1, 1)])


def flows_on_line(hops: list[tuple[int, ...]], **given_too: list[float]) -> Flows:
    """Return flows of 12 bytes on the line, with what a case changes."""
    ones = [1.0] * len(hops)
    values = {"bytes": [12.0] * len(hops), "weight": ones, "start": [0.0] * len(hops)}
    floats = {key: np.array(given_too.get(key, each)) for key, each in values.items()}
    rounds = np.array(given_too.get("rounds", ones), dtype=np.int64)
    return Flows(line(*hops), **floats, rounds=rounds)


def test_what_a_flow_leaves_is_taken_up() -> None:
    """Two share the first link; the long one then has the second link to itself."""
    flows = flows_on_line([(0,), (0, 1), (1,)], bytes=[3.0, 12.0, 12.0])
    # At 1/2 each until 6; then the long flow and the third share link 1 until both have ended.
    assert arrivals(flows, Fabric(LINE, 1.0)).tolist() == pytest.approx([6.0, 24.0, 24.0])


def test_latency_overhead_start_and_injection() -> None:
    """A byte is in after its links' latencies; a message waits for its sender; terminals limit."""
    alone = flows_on_line([(0, 1)])
    fabric = Fabric(LINE, 1.0, latency=np.array([1.0, 2.0, 4.0, 8.0]), overhead=0.5)
    assert arrivals(alone, fabric).tolist() == pytest.approx([0.5 + 12.0 + 3.0])
    late = flows_on_line([(0, 1)], start=[7.0])
    assert arrivals(late, fabric).tolist() == pytest.approx([22.5])
    both = flows_on_line([(1,), (2,)])
    assert arrivals(both, Fabric(LINE, 1.0)).tolist() == pytest.approx([12.0, 12.0])
    assert arrivals(both, Fabric(LINE, 1.0, injection=1.0)).tolist() == pytest.approx([24.0, 24.0])
    into = flows_on_line([(0,), (3,)])
    assert arrivals(into, Fabric(LINE, 1.0, injection=1.0)).tolist() == pytest.approx([24.0, 24.0])


def test_a_message_after_the_other() -> None:
    """Each costs its overhead, while others have the link; without overhead they are one."""
    alone = flows_on_line([(0,)], rounds=[4.0])
    assert arrivals(alone, Fabric(LINE, 1.0, overhead=0.5)).tolist() == pytest.approx([14.0])
    assert arrivals(alone, Fabric(LINE, 1.0)).tolist() == pytest.approx([12.0])


def test_messages_and_flows_of_a_route() -> None:
    """A route of fewer messages has fewer flows; side by side they cost their sender less time."""
    routes = routes_of("genkautz:n=20,d=3")
    begin = np.zeros(20)
    flows = flows_of(routes, 1000.0, begin, FluidSettings(flows=4, chunk_bytes=100))
    messages = np.ceil(routes.weight * 1000 / 100 * (1 - 1e-9))
    assert flows.weight.tolist() == np.minimum(messages, 4).tolist()
    assert flows.rounds.tolist() == np.ceil(messages / flows.weight).tolist()
    asked: dict[str, Any] = {"bytes": 10**5, "overhead": 1e-5, "chunk_bytes": 10**4}
    one, four = (
        alltoall.simulate(routes, link_bandwidth=1e9, flows=each, **asked).seconds
        for each in (1, 4)
    )
    assert four < one


def test_phases_follow_each_other() -> None:
    """Each begins when the last byte of the one before is in."""
    routes = routes_of("ring:5", "single")
    phase = split_phases(routes, 2, 0.5)
    found = alltoall.simulate(
        routes, link_bandwidth=1e9, bytes=10**6, latency=1e-3, phases=2, phase_loss=0.5,
        weights="share",
    )  # fmt: skip
    parts = [routes.select(np.flatnonzero(phase == each)) for each in range(2)]
    time = sum(float((part.load() / part.problem.topology.capacity).max()) for part in parts)
    assert found.seconds >= time * 1e-3
    assert found.seconds <= (time + sum(int(part.hops.max()) for part in parts)) * 1e-3 + 1e-9


def test_a_resolution_only_ever_adds() -> None:
    """Capacity that is not taken up at once is lost: a coarse answer is above the exact one."""
    routes = routes_of("genkautz:n=20,d=3")
    times = [
        alltoall.simulate(routes, link_bandwidth=1e9, resolution=each).seconds
        for each in (0.0, 0.001, 0.1)
    ]
    assert times[0] <= times[1] * (1 + 1e-9)
    assert times[1] == pytest.approx(times[0], rel=5e-3)
    assert times[0] < times[2] < 1.5 * times[0]


def test_start_times_delay_what_begins_late(tmp_path: Path) -> None:
    """By terminal, from an array or from a file."""
    routes = routes_of("ring:5", "single")
    path = tmp_path / "starts.txt"
    path.write_text("0 0\n1 0\n2 0.01\n3 0\n4 0\n")
    times = [
        alltoall.simulate(routes, link_bandwidth=1e9, start=start).seconds
        for start in (None, [0, 0, 0.01, 0, 0], path)
    ]
    assert times[1] == times[2]
    assert times[0] + 0.01 >= times[1] > max(times[0], 0.01)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"weights": "unequal"}, "weights 'unequal'; expected one of equal, share"),
        ({"flows": 0}, "0 flows of each route"),
        ({"chunk_bytes": 0}, "messages of 0 bytes"),
        ({"chunk_bytes": 1, "bytes": 1 << 30}, "1.07e.09 messages"),
        ({"resolution": 2.0}, "resolution 2"),
        ({"sync": "step"}, "sync or sharing with routes"),
        ({"sharing": "fair"}, "sync or sharing with routes"),
        ({"sharing": "kind"}, "sharing 'kind'; expected one of due, fair"),
        ({"sync": "never"}, "sync 'never'; expected one of dataflow, step"),
        ({"link_bandwidth": None}, "no link bandwidth"),
        ({"link_bandwidth": "25"}, "bandwidth '25'"),
        ({"latency": -1.0}, "a negative or infinite latency or overhead"),
        ({"injection": 0.0}, "an? injection limit of 0"),
        ({"bytes": []}, r"sizes \[\]"),
        ({"topology": "ring:5"}, "a topology with what says its own"),
    ],
)
def test_what_cannot_be_is_refused(asked: dict[str, object], expected: str) -> None:
    """Before anything is simulated."""
    with pytest.raises(UsageError, match=expected):
        alltoall.simulate(routes_of("ring:5", "single"), **{"link_bandwidth": 1e9, **asked})  # type: ignore[arg-type]


def has_simgrid() -> bool:
    """Whether the system's interpreter has SimGrid."""
    if shutil.which(str(SYSTEM_PYTHON)) is None:
        return False
    words = [str(SYSTEM_PYTHON), "-c", "import simgrid"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


@pytest.mark.parametrize("spec", ["hypercube:3", "genkautz:n=9,d=2", "mesh:3x3"])
def test_simgrid_finds_the_same(spec: str, tmp_path: Path) -> None:
    """Pure max-min over the same routes, sizes and starts: every flow ends at the same time."""
    if not has_simgrid():
        pytest.skip("SimGrid is not installed; Debian's package is python3-simgrid")
    routes = routes_of(spec, "ecmp")
    rng = np.random.default_rng(7)
    size = rng.integers(1, 5, routes.count).astype(np.float64) * 1e6
    start = rng.choice([0.0, 0.0, 1e-3, 2e-3], routes.count)
    platform, asked = tmp_path / "platform.xml", tmp_path / "flows.json"
    lowered = alltoall.lower(routes, "simgrid:latency=0", link_bandwidth="8Gbps")
    platform.write_text(str(lowered.text))
    node = [f"node-{each}" for each in routes.problem.topology.terminals]
    rows = zip(routes.source, routes.destination, size.tolist(), start.tolist(), strict=True)
    asked.write_text(json.dumps([[node[s], node[d], int(b), t] for s, d, b, t in rows]))
    script = Path(__file__).with_name("simgrid_flows.py")
    words = [str(SYSTEM_PYTHON), str(script), str(platform), str(asked)]
    theirs = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    ones = np.ones(routes.count)
    flows = Flows(routes, size, ones, start, ones.astype(np.int64))
    ours = arrivals(flows, Fabric(routes.problem.topology, 1e9))
    assert ours.tolist() == pytest.approx(theirs, rel=1e-6)
