"""Taking flows apart: into paths that are widest, and into one flow per commodity."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given

from alltoall.check.flow import check_flow
from alltoall.errors import InputError
from alltoall.flows import SolveSettings, decompose, solve
from alltoall.flows.decompose import (
    FlowBlock,
    per_commodity,
    split,
    split_by_programs,
    widest_paths,
)
from alltoall.ir.arrays import Floats, frozen
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.topologies.spec import build
from strategies import problems

ALONE = SolveSettings(workers=1)


def master_flow(problem: Problem) -> Flow:
    """Return an optimal flow per source: that of the pairs, added up."""
    flow = solve(problem, "link", ALONE)
    links = problem.topology.links
    volumes = np.zeros((problem.demand.terminals, links))
    source = np.repeat(flow.source, np.diff(flow.start))
    np.add.at(volumes, (source, flow.link), flow.amount)
    return per_source(flow, volumes)


def per_source(flow: Flow, amounts: Floats) -> Flow:
    """Return a flow with these amounts [terminals, links] instead of its own."""
    group, link = np.nonzero(amounts)
    sources = np.unique(group)
    return replace(
        flow,
        source=sources,
        destination=None,
        start=np.append(np.searchsorted(group, sources), len(group)),
        link=link,
        amount=amounts[group, link],
    )


def mixed_flow(spec: str) -> Flow:
    """Return a flow per source with many splits: the average of the optima of three demands."""
    topology = build(spec)
    terminals = len(topology.terminals)
    volumes = np.zeros((terminals, topology.links))
    total = np.zeros((terminals, terminals))
    for seed in range(3):
        matrix = np.random.default_rng(seed).uniform(0.5, 1.5, (terminals, terminals))
        np.fill_diagonal(matrix, 0.0)
        flow = master_flow(Problem(topology, Demand(terminals, matrix)))
        group = np.repeat(np.arange(flow.groups), np.diff(flow.start))
        volumes[group, flow.link] += flow.amount * flow.time
        total += matrix
    problem = Problem(topology, Demand(terminals, total))
    return per_source(replace(flow, problem=problem, rate=1.0), volumes)


def one_block(
    links: list[tuple[int, int, float]], wanted: dict[int, float], nodes: int = 5
) -> FlowBlock:
    """Return the flow of one group from node 0, with amounts on links, to a few nodes."""
    # As those of a topology are: kernels of other kinds of arrays would be compiled for this alone.
    tail, head = (frozen([link[end] for link in links], np.int64) for end in range(2))
    return FlowBlock(
        nodes=nodes,
        tail=tail,
        head=head,
        source=np.array([0]),
        begin=np.array([0]),
        start=np.array([0, len(links)]),
        link=np.arange(len(links)),
        amount=np.array([amount for *_, amount in links]),
        pairs=np.array([0, len(wanted)]),
        destination=np.array(list(wanted)),
        end=np.array(list(wanted)),
        demand=np.array(list(wanted.values())),
    )


def as_lists(block: FlowBlock) -> list[tuple[int, list[int], float]]:
    """Return pair, links and width of every path that a block is split into."""
    paths, width, pair = split(block)
    assert paths.destination.tolist() == block.destination[pair].tolist()
    links = [part.tolist() for part in np.split(paths.link, paths.start[1:-1])]
    return list(zip(pair.tolist(), links, width.tolist(), strict=True))


def check_paths(flow: Flow) -> None:
    """Check that the widest paths of a flow are simple, deliver the demand, and fit into it."""
    topology, problem = flow.problem.topology, flow.problem
    paths, width = widest_paths(flow, ALONE)
    first, last = paths.start[:-1], paths.start[1:] - 1
    assert (width > 0).all()
    assert (topology.tail[paths.link[first]] == topology.terminals[paths.source]).all()
    assert (topology.head[paths.link[last]] == topology.terminals[paths.destination]).all()
    inner = np.setdiff1d(np.arange(len(paths.link)), first)
    assert (topology.tail[paths.link[inner]] == topology.head[paths.link[inner - 1]]).all()
    path = np.repeat(np.arange(paths.count), np.diff(paths.start))
    visits = path * topology.nodes + topology.head[paths.link]
    assert len(np.unique(visits)) == len(visits)
    carried = np.zeros((problem.demand.terminals,) * 2)
    np.add.at(carried, (paths.source, paths.destination), width)
    wanted = problem.demand.rows(np.arange(problem.demand.terminals))
    assert carried == pytest.approx(wanted, rel=1e-13)
    load = np.bincount(paths.link, width[path], topology.links)
    assert (load <= flow.load() * flow.time * (1 + 1e-9) + 1e-9).all()
    pairs = np.count_nonzero(wanted)
    assert paths.count <= len(flow.link) + pairs


@given(problem=problems())
def test_paths_deliver_the_demand_within_the_flow(problem: Problem) -> None:
    """Any capacities, demand and switches; per source and, again, per commodity."""
    flow = master_flow(problem)
    check_paths(flow)
    split_up = per_commodity(flow, ALONE)
    assert split_up.time == pytest.approx(flow.time, rel=1e-12)
    check_flow(split_up)
    check_paths(split_up)


def widest_by_relaxation(topology: Topology, left: Floats, begin: int, end: int) -> float:
    """Return the width of the widest path over what is left, by passes over all links."""
    width = np.zeros(topology.nodes)
    width[begin] = np.inf
    for _ in range(topology.nodes):
        np.maximum.at(width, topology.head, np.minimum(width[topology.tail], left))
        width[begin] = np.inf
    return float(width[end])


@pytest.mark.parametrize("spec", ["genkautz:n=10,d=3", "hypercube:3", "torus:3x3"])
def test_every_path_is_a_widest_one(spec: str) -> None:
    """A relaxation over all links finds no wider path in what the paths before have left."""
    flow = mixed_flow(spec)
    topology = flow.problem.topology
    paths, width = widest_paths(flow, ALONE)
    left = np.zeros((flow.groups, topology.links))
    group = np.repeat(np.arange(flow.groups), np.diff(flow.start))
    left[group, flow.link] = flow.amount
    rest = flow.problem.demand.rows(flow.source)
    assert paths.count > np.count_nonzero(rest)
    for path in range(paths.count):
        source, destination = paths.source[path], paths.destination[path]
        begin, end = topology.terminals[[source, destination]]
        widest = widest_by_relaxation(topology, left[source], begin, end)
        expected = min(widest, rest[source, destination])
        assert width[path] == pytest.approx(expected, rel=1e-6)
        left[source, paths.link[paths.start[path] : paths.start[path + 1]]] -= width[path]
        rest[source, destination] -= width[path]
    check_paths(flow)


def test_the_wider_way_is_found_behind_a_wide_last_link() -> None:
    """The largest inflow of the end comes from a narrow link; the widest path does not."""
    links = [(0, 1, 1.0), (0, 2, 4.0), (0, 3, 5.0), (1, 4, 6.0), (2, 4, 4.0), (3, 1, 5.0)]
    found = as_lists(one_block(links, {4: 10.0}))
    assert found == [(0, [2, 5, 3], 5.0), (0, [1, 4], 4.0), (0, [0, 3], 1.0)]


def test_cycles_of_flow_deliver_nothing_and_are_left_out() -> None:
    """A cycle on the way is cancelled, however much flows in it."""
    links = [(0, 1, 2.0), (1, 2, 9.0), (2, 1, 7.0), (2, 3, 2.0)]
    assert as_lists(one_block(links, {3: 2.0})) == [(0, [0, 1, 3], 2.0)]


def test_a_demand_that_rounding_swallowed_is_still_served() -> None:
    """Its last link has inflow, the one before only that of a much larger demand."""
    tiny = 1e-20
    links = [(0, 1, 1.0), (1, 2, tiny), (0, 3, 1.0), (3, 1, 0.0)]
    found = as_lists(one_block(links, {1: 1.0, 2: tiny, 3: 1.0}))
    assert found == [(0, [0], 1.0), (1, [0, 1], tiny), (2, [2], 1.0)]


def test_what_rounding_leaves_of_a_demand_goes_with_the_widest_path() -> None:
    """Widths add up to the demand although the flow falls short of it."""
    links = [(0, 1, 1.0), (0, 2, 2.0), (2, 1, 2.0)]
    found = as_lists(one_block(links, {1: 3.0 + 1e-8}))
    assert found == [(0, [1, 2], pytest.approx(2.0 + 1e-8, rel=1e-14)), (0, [0], 1.0)]


def test_a_flow_that_does_not_arrive_is_refused() -> None:
    """Nothing leads to node 3, which wants something."""
    with pytest.raises(InputError, match="no flow from node 0 leads to node 3, which wants 2"):
        split(one_block([(0, 1, 1.0)], {1: 1.0, 3: 2.0}))


def test_neither_threads_nor_blocks_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """One block on one thread, and many on several, give the same arrays."""
    flow = mixed_flow("genkautz:n=10,d=3")
    paths, width = widest_paths(flow, ALONE)
    whole = per_commodity(flow, ALONE)
    monkeypatch.setattr(decompose, "BLOCK_ENTRIES", 40)
    messages: list[str] = []
    several = SolveSettings(workers=3, report=messages.append)
    again, same_width = widest_paths(flow, several)
    assert "blocks of sources: 5 of" in " ".join(messages)
    for key in ("source", "destination", "start", "link"):
        assert np.array_equal(getattr(paths, key), getattr(again, key))
    assert np.array_equal(width, same_width)
    parts = per_commodity(flow, several)
    for key in ("source", "destination", "start", "link", "amount"):
        assert np.array_equal(getattr(whole, key), getattr(parts, key))


def test_a_flow_that_stands_for_its_images_is_taken_apart_for_all_sources() -> None:
    """One source of four is written down; paths and commodities are there for all of them."""
    whole = master_flow(Problem.all_to_all(build("complete:4")))
    flow = replace(
        whole,
        source=whole.source[:1],
        start=whole.start[:2],
        link=whole.link[: whole.start[1]],
        amount=whole.amount[: whole.start[1]],
        generators=np.array([[1, 2, 3, 0], [1, 0, 2, 3]]),
    )
    for split_up in (per_commodity(flow, ALONE), split_by_programs(flow, ALONE)):
        assert check_flow(split_up).groups == 12
        assert split_up.time == pytest.approx(whole.time, rel=1e-9)
    assert len(np.unique(widest_paths(flow, ALONE)[0].source)) == 4


def test_the_child_programs_give_the_same_rate() -> None:
    """Paths and the paper's programs both lose nothing against the master."""
    problem = Problem.all_to_all(build("genkautz:n=12,d=3"))
    flows = [solve(problem, method) for method in ("grouped", "decomposed", "decomposed-lp")]
    assert [flow.method for flow in flows] == ["grouped", "decomposed", "decomposed-lp"]
    assert [flow.destination is not None for flow in flows] == [False, True, True]
    assert [flow.time for flow in flows] == pytest.approx([flows[0].time] * 3, rel=1e-9)


@pytest.mark.parametrize("method", ["decomposed", "decomposed-lp"])
def test_stopped_while_splitting_the_master_is_the_answer(method: str) -> None:
    """Ctrl-C after the master program: same rate, per source, and still proven optimal."""

    def interrupt(message: str) -> None:
        if " of " in message:
            raise KeyboardInterrupt

    problem = Problem.all_to_all(build("genkautz:n=12,d=3"))
    flow = solve(problem, method, SolveSettings(workers=1, report=interrupt))
    assert (flow.status.done, flow.method) == (True, method)
    assert flow.destination is None
    check_flow(flow)


def test_a_time_limit_ends_the_splitting() -> None:
    """Who asks for paths too late is told."""
    flow = master_flow(Problem.all_to_all(build("ring:5")))
    with pytest.raises(TimeoutError):
        per_commodity(flow, SolveSettings(workers=1, time_limit=1e-9))
