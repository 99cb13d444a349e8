"""Whole chunks: few of them, at little or no loss."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError, UsageError
from alltoall.flows import SolveSettings, sizes, solve
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.arrays import Ints
from alltoall.ir.demand import Demand
from alltoall.ir.files.json.saved_answers import answer_from_json, answer_to_json
from alltoall.ir.flow import Flow, Status
from alltoall.ir.paths import NOTHING
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.schedules import search, timestepped
from alltoall.schedules.chunks import rounded_to
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.search import choose_flow
from alltoall.schedules.timestepped import Expansion, skip_detours, without_detours
from alltoall.settings import ScheduleSettings
from alltoall.topologies.operators import (
    drop_links,
    drop_nodes,
    scale_capacities,
    set_capacities,
    with_host_bandwidth,
)
from alltoall.topologies.spec import build
from strategies import problems

EXACT = ["hypercube:3", "twisted-hypercube:3", "bipartite:4x4", "torus:3x3x3"]
TORUS = build("torus:3x3x3")
NEAR = {
    "genkautz n=16": build("genkautz:n=16,d=4"),
    "genkautz n=32": build("genkautz:n=32,d=4"),
    "hosted torus": with_host_bandwidth(TORUS, 4.0),
    **{f"links {seed}": drop_links(TORUS, 3, seed) for seed in range(10)},
    **{f"nodes {seed}": drop_nodes(TORUS, 3, seed) for seed in range(10)},
}


@pytest.mark.parametrize("spec", EXACT)
def test_symmetric_fabrics_lose_nothing(spec: str) -> None:
    """At most 16 chunks, time equal to the certified bound of any all-to-all."""
    schedule = find_schedule(Problem.all_to_all(build(spec)), "tsmcf", ScheduleSettings()).schedule
    report = check_schedule(schedule)
    assert schedule.chunks_per_shard <= 16
    assert report.gap == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("name", NEAR)
def test_other_fabrics_lose_at_most_two_percent(name: str) -> None:
    """At most 16 chunks and 2 % above the bound of any all-to-all, not just of the fraction."""
    problem = Problem.all_to_all(NEAR[name])
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(loss=0.01)).schedule
    assert schedule.chunks_per_shard <= 16
    assert check_schedule(schedule).gap <= 0.02


@given(problem=problems(max_nodes=5))
def test_schedules_of_random_problems_are_correct_and_survive_json(problem: Problem) -> None:
    """Any demand, capacities and switches: checked, written, read back, checked again."""
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(loss=0.2, max_chunks=4)).schedule
    report = check_schedule(schedule)
    assert report.time >= schedule.bound * (1 - 1e-9)
    value = answer_to_json(schedule)
    again = answer_from_json(value, "file")
    assert check_schedule(again) == report
    assert answer_to_json(again) == value


def test_a_given_number_of_chunks_is_used() -> None:
    """K4,4 needs two chunks; with one it takes longer and says how much."""
    problem = Problem.all_to_all(build("bipartite:4x4"))
    one = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=1)).schedule
    assert one.chunks_per_shard == 1
    assert one.loss == pytest.approx(0.2)
    assert find_schedule(
        problem, "tsmcf", ScheduleSettings(chunks=4)
    ).schedule.loss == pytest.approx(0.0)


def test_the_same_call_gives_the_same_schedule() -> None:
    """No hidden randomness."""
    problem = Problem.all_to_all(build("genkautz:n=9,d=3"))
    first, second = (
        answer_to_json(find_schedule(problem, "tsmcf", ScheduleSettings()).schedule)
        for _ in range(2)
    )
    assert first == second


def test_too_few_steps_are_refused() -> None:
    """Data cannot travel faster than one hop a step."""
    with pytest.raises(InputError, match="needs at least 3"):
        find_schedule(Problem.all_to_all(TORUS), "tsmcf", ScheduleSettings(steps=2))


def test_given_steps_are_kept() -> None:
    """Fewer steps than the best take longer; the bound stays that of any schedule."""
    problem = Problem.all_to_all(build("genkautz:n=16,d=4"))
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(steps=2)).schedule
    assert schedule.steps == 2
    assert schedule.time == pytest.approx(8.0)
    assert schedule.bound == pytest.approx(53 / 7)


@pytest.mark.parametrize(
    "wrong",
    [
        {"latency": -1.0},
        {"loss": -0.1},
        {"loss": 2.0},
        {"chunks": 0},
        {"max_chunks": 0},
        {"steps": 0},
    ],
)
def test_bad_settings_are_refused(wrong: dict[str, float]) -> None:
    """Each with the range that is expected."""
    with pytest.raises(UsageError, match="expected"):
        ScheduleSettings(**wrong)  # type: ignore[arg-type]


def test_rounding_keeps_the_sum() -> None:
    """Largest remainders get the units that are left."""
    assert rounded_to(np.array([1.5, 2.25, 2.25]), 6).tolist() == [2, 2, 2]
    assert rounded_to(np.array([0.4, 0.4, 0.2]), 1).tolist() == [1, 0, 0]


def test_uneven_capacities_are_respected() -> None:
    """A fat link carries proportionally more in the same step."""
    ring = Topology.from_links("fat", 3, [(0, 1, 4.0), (1, 2, 4.0), (2, 0, 4.0), (1, 0, 0.5)])
    schedule = find_schedule(Problem.all_to_all(ring), "tsmcf", ScheduleSettings()).schedule
    assert (schedule.loads() <= schedule.step_times()[:, None] * ring.capacity + 1e-9).all()


@pytest.mark.parametrize("factor", [0.3, 2.0, 1000.0])
def test_the_unit_of_capacity_does_not_matter(factor: float) -> None:
    """A cube of fast links needs no more chunks than one of slow links."""
    cube = scale_capacities(build("hypercube:3"), factor)
    schedule = find_schedule(Problem.all_to_all(cube), "tsmcf", ScheduleSettings()).schedule
    assert schedule.chunks_per_shard == 1
    assert schedule.gap == pytest.approx(0.0, abs=1e-9)


def test_steps_go_on_until_a_detour_pays_off() -> None:
    """One pair across a hair-thin link: the way round takes five steps, and is taken."""
    ring = set_capacities(build("ring:6"), {(0, 1): 0.01})
    matrix = np.zeros((6, 6))
    matrix[0, 1] = 1.0
    schedule = find_schedule(Problem(ring, Demand(6, matrix)), "tsmcf", ScheduleSettings()).schedule
    assert schedule.time <= 5.0 + 1e-9


def test_a_long_chain_of_switches_is_passed_in_one_step() -> None:
    """A hundred switches in a row between two terminals."""
    edges = [(i, i + 1) for i in range(101)]
    chain = Topology.from_edges("chain", 102, edges, terminals=[0, 101])
    schedule = find_schedule(Problem.all_to_all(chain), "tsmcf", ScheduleSettings()).schedule
    assert (schedule.steps, schedule.time) == (1, 1.0)


def test_a_time_limit_still_gives_a_schedule() -> None:
    """Out of time, the answer is a correct schedule that says so."""
    settings = ScheduleSettings(solve=SolveSettings(time_limit=1e-6))
    found = find_schedule(Problem.all_to_all(build("genkautz:n=16,d=4")), "tsmcf", settings)
    assert check_schedule(found.schedule).gap >= 0
    assert not found.status.done or found.schedule.gap < 0.1


def test_chunks_of_large_demands() -> None:
    """A demand in bytes is cut as one in shards; one chunk for each byte is refused."""
    matrix = np.array([[0.0, 1e9], [1.0, 0.0]])
    problem = Problem(build("complete:2"), Demand(2, matrix))
    assert find_schedule(problem, "tsmcf", ScheduleSettings()).schedule.chunk_counts().max() <= 32
    with pytest.raises(InputError, match="larger units"):
        find_schedule(problem, "tsmcf", ScheduleSettings(chunks=1))


@pytest.mark.parametrize("spec", ["hypercube:3", "torus:3x3x3", "torus:4x4x4", "hypercube:5"])
def test_one_chunk_per_shard_is_enough_on_cubes_and_tori(spec: str) -> None:
    """The paths of one source, translated, fill every link exactly."""
    problem = Problem.all_to_all(build(spec))
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=1)).schedule
    assert check_schedule(schedule).gap == pytest.approx(0.0, abs=1e-9)


def test_schedules_of_translated_paths_look_alike_from_every_source() -> None:
    """Every translation maps the sends of a torus of 64 nodes to themselves."""
    problem = Problem.all_to_all(build("torus:4x4x4"))
    schedule = find_schedule(problem, "tsmcf", ScheduleSettings(chunks=1)).schedule
    under = find_translations(problem)
    sends = np.stack((schedule.step, schedule.source, schedule.destination, schedule.link))
    known = set(map(tuple, sends.T.tolist()))
    for nodes, links in zip(under.members[:9], under.link_members[:9], strict=True):
        moved = (sends[0], nodes[sends[1]], nodes[sends[2]], links[sends[3]])
        assert set(map(tuple, np.stack(moved).T.tolist())) == known


def test_an_even_ring_needs_paths_that_are_not_images_of_each_other() -> None:
    """Opposite nodes go round either way in turn, so one chunk is enough without loss."""
    schedule = find_schedule(
        Problem.all_to_all(build("ring:8")), "tsmcf", ScheduleSettings()
    ).schedule
    assert (schedule.chunks_per_shard, schedule.time) == (1, 8.0)


@pytest.mark.parametrize("spec", ["genkautz:n=32,d=4", "jellyfish:n=16,d=4,seed=1", "fattree:k=4"])
def test_the_means_for_large_cases_give_correct_schedules(
    spec: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Primal-dual steps, no second form of the flow, few totals: within the loss all the same."""
    monkeypatch.setattr(sizes, "TIMED_FIRST_ORDER_VARIABLES", 0)
    monkeypatch.setattr(sizes, "WRITTEN_OUT_VARIABLES", 0)
    monkeypatch.setattr(sizes, "AFFORDABLE_WORK", 0)
    monkeypatch.setattr(sizes, "EVERY_TOTAL_WORK", 0)
    settings = ScheduleSettings(loss=0.1, solve=SolveSettings(gap=1e-3))
    schedule = find_schedule(Problem.all_to_all(build(spec)), "tsmcf", settings).schedule
    assert check_schedule(schedule).gap <= 0.11


def test_symmetry_can_be_switched_off() -> None:
    """Without it the answer is another one, and as good."""
    problem = Problem.all_to_all(build("torus:3x3"))
    settings = ScheduleSettings(solve=SolveSettings(symmetry=False))
    assert find_schedule(problem, "tsmcf", settings).schedule.gap == pytest.approx(0.0, abs=1e-9)


def test_an_interrupt_of_the_plain_flow_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flow that Ctrl-C cut short is not turned into a schedule."""

    def cut_short(problem: Problem, settings: SolveSettings) -> Flow:
        return replace(solve(problem, "grouped", settings), status=Status.INTERRUPTED)

    monkeypatch.setattr(search, "solve_master", cut_short)
    with pytest.raises(KeyboardInterrupt):
        find_schedule(Problem.all_to_all(build("ring:5")), "tsmcf", ScheduleSettings())


@pytest.mark.parametrize(("latency", "steps"), [(0.0, 3), (100.0, 2)])
def test_large_cases_spare_a_step_only_if_steps_cost_something(
    latency: float, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least number of steps is skipped where it is hard to solve for and steps are free."""
    monkeypatch.setattr(sizes, "TIMED_FIRST_ORDER_VARIABLES", 0)
    monkeypatch.setattr(timestepped, "COARSE_GAP", 0.05)
    settings = ScheduleSettings(latency=latency, solve=SolveSettings(gap=0.05))
    master = solve(Problem.all_to_all(build("genkautz:n=20,d=4")), "grouped")
    assert choose_flow(master, settings).expansion.steps == steps


def test_paths_without_detours() -> None:
    """A terminal once left is not returned to, nor a switch within a step; waiting goes too."""
    links = [(0, 1), (1, 0), (1, 2), (2, 1), (1, 3), (3, 1), (3, 2)]
    hub = Topology.from_links("hub", 4, [(u, v, 1.0) for u, v in links], terminals=[0, 1, 2])
    expansion = Expansion(Problem.all_to_all(hub), 5)
    wait = expansion.timed_links

    def timed(step: int, tail: int, head: int) -> int:
        return step * hub.links + links.index((tail, head))

    back_and_forth = [timed(0, 0, 1), timed(1, 1, 0), wait + 2 * 3, timed(3, 0, 1), timed(4, 1, 2)]
    by_switch = [timed(0, 0, 1), timed(1, 1, 3), timed(1, 3, 1), timed(2, 1, 3), timed(2, 3, 2)]
    on_and_on = [timed(0, 0, 1), timed(1, 1, 2), timed(2, 2, 1), timed(3, 1, 2), wait + 4 * 3 + 2]
    nothing = [NOTHING] * 5
    found = without_detours(
        expansion, np.array([back_and_forth, by_switch, on_and_on, nothing], dtype=np.int64)
    )
    assert [[link for link in path if link != NOTHING] for path in found.tolist()] == [
        [timed(3, 0, 1), timed(4, 1, 2)],
        [timed(0, 0, 1), timed(2, 1, 3), timed(2, 3, 2)],
        [timed(0, 0, 1), timed(3, 1, 2)],
        [],
    ]


def plain_path(path: list[int], tail: Ints, head: Ints) -> list[int]:
    """Return a path without its cycles, each cut out as soon as it closes."""
    kept: list[int] = []
    for link in path:
        places = [tail[path[0]], *(head[each] for each in kept)]
        kept = kept[: places.index(head[link])] if head[link] in places else [*kept, link]
    return kept


@given(st.integers(0, 2**32 - 1), st.integers(0, 4), st.integers(0, 8))
def test_skip_detours(seed: int, rows: int, width: int) -> None:
    """Walks become paths; read-only and strided tables are taken, and stay as they are."""
    rng = np.random.default_rng(seed)
    tail, head = rng.integers(0, 4, 12), rng.integers(0, 4, 12)
    table = np.full((rows, 2 * width), -1)
    for row in table[:, ::2]:
        place = int(rng.integers(0, 4))
        for hop in range(int(rng.integers(0, width + 1))):
            out = np.flatnonzero(tail == place)
            if not len(out):
                break
            row[hop] = rng.choice(out)
            place = head[row[hop]]
    table.flags.writeable = False
    before = table.copy()
    found = skip_detours(table[:, ::2], tail, head)
    walks = [[link for link in row if link >= 0] for row in table[:, ::2].tolist()]
    paths = [[link for link in row if link >= 0] for row in found.tolist()]
    assert paths == [plain_path(walk, tail, head) for walk in walks]
    assert found.shape == (rows, width)
    assert (table == before).all()
