"""From fractions to whole chunks, piece by piece: which totals, budgets and slacks are tried."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from alltoall.check.schedule import check_schedule
from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.lp.program import LinearProgram, LPResult
from alltoall.lp.settings import LPStatus, never
from alltoall.lp.solve import solve_program
from alltoall.schedules import chunks
from alltoall.schedules.chunks import Rounded, TimedChunks, round_flow, schedule_from, squeeze
from alltoall.schedules.timestepped import TimedFlow, solve_timestepped, useful_variables
from alltoall.settings import SolveSettings
from alltoall.topologies.operators import scale_capacities
from alltoall.topologies.spec import build

SETTINGS = SolveSettings()
NO_PATHS = np.zeros((3, 7), dtype=np.int64)

Loss = Callable[[float], tuple[float, bool]]
"""By the sum of the durations, or by the number of the call: the loss, and whether chunks fit."""


class Script:
    """In the place of `TimedChunks`: remembers what it is asked for, and answers as it is told."""

    def __init__(self, loss_of: Loss, cheap: bool = True) -> None:
        self.loss_of, self.cheap = loss_of, cheap
        self.calls: list[tuple[Floats, Any, int, Any]] = []

    def __call__(self, flow: Any, per_shard: int, _: SolveSettings) -> "Script":
        """Be made for a flow."""
        self.flow, self.per_shard = flow, per_shard
        return self

    def route(self, durations: Floats, volumes: Any, tries: int = 1, late: Any = None) -> Rounded:
        """Answer for the total of the durations; their number is in the place of the time."""
        self.calls.append((durations, volumes, tries, late))
        loss, fits = self.loss_of(float(durations.sum()))
        none = np.zeros(0, dtype=np.int64)
        total = float(durations.sum())
        return Rounded(self.flow, self.per_shard, total, loss, none, none, none, NO_PATHS, fits)

    @property
    def totals(self) -> list[float]:
        """What the durations of each call add up to."""
        return [float(durations.sum()) for durations, *_ in self.calls]


def stub(durations: list[float]) -> Any:
    """Return what of a flow the choice of durations depends on."""
    problem = SimpleNamespace(topology=SimpleNamespace(name="stub"))
    expansion = SimpleNamespace(steps=len(durations), problem=problem)
    return SimpleNamespace(
        durations=np.array(durations), time=sum(durations), expansion=expansion, volumes="volumes"
    )


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Script]:
    """Return a way to put a script in the place of the search; a busy link has capacity 2."""
    monkeypatch.setattr(chunks, "capacity_unit", lambda _: 2.0)

    def put(loss_of: Loss, cheap: bool = True) -> Script:
        script = Script(loss_of, cheap)
        monkeypatch.setattr(chunks, "TimedChunks", script)
        return script

    return put


def rounded(loss: float, flow: Any, per_shard: int = 5, refine: bool = False) -> Rounded | None:
    """Round a flow within a loss; five chunks over a capacity of 2 make 10 units of its time."""
    return round_flow(flow, per_shard, loss, SETTINGS, refine)


def test_totals_are_tried_from_the_least_on(scripted: Callable[..., Script]) -> None:
    """Where it is cheap: all that the loss allows, each once, until one keeps it."""
    script = scripted(lambda _: (np.inf, False))
    assert rounded(0.3, stub([0.75, 0.25])) is None
    assert script.totals == [10.0, 11.0, 12.0, 13.0]
    assert {tries for *_, tries, _ in script.calls} == {chunks.ROUNDING.tries}
    assert all(volumes == "volumes" for _, volumes, *_ in script.calls)
    script = scripted(lambda total: (0.2 if total >= 12 else np.inf, True))
    found = rounded(0.3, stub([0.75, 0.25]))
    assert found is not None
    assert (found.time, script.totals) == (12.0, [10.0, 11.0, 12.0])


def test_many_totals_are_spread_over_the_range(scripted: Callable[..., Script]) -> None:
    """From the least to the largest that the loss allows, a handful."""
    script = scripted(lambda _: (np.inf, False))
    assert rounded(1.0, stub([1.0]), per_shard=50) is None
    assert (script.totals[0], script.totals[-1]) == (100.0, 200.0)
    assert len(script.totals) == chunks.ROUNDING.totals
    assert script.totals == sorted(set(script.totals))


def test_there_may_be_no_total_at_all(scripted: Callable[..., Script]) -> None:
    """Between 12.5 and 12.6 there is no whole number."""
    for cheap in (True, False):
        script = scripted(lambda _: (0.0, True), cheap)
        assert rounded(0.008, stub([1.25])) is None
        assert script.calls == []


@pytest.mark.parametrize(
    ("loss", "fitting", "tried", "taken"),
    [
        (0.4, {10, 11, 12, 13, 14}, [14, 12], 12),
        (0.4, {13, 14}, [14, 12], 14),
        (0.4, {10, 11, 12, 13}, [14], None),
        (0.1, {10, 11}, [11, 10], 10),
        (0.0, {10}, [10], 10),
        (0.0, set(), [10], None),
    ],
)
def test_where_it_is_dear_two_totals_are_tried(
    scripted: Callable[..., Script],
    loss: float,
    fitting: set[int],
    tried: list[float],
    taken: float | None,
) -> None:
    """The largest that the loss allows, and the middle one if that does."""
    script = scripted(lambda total: (0.0 if total in fitting else np.inf, True), cheap=False)
    found = rounded(loss, stub([1.0]))
    assert script.totals == tried
    assert (None if found is None else found.time) == taken
    assert {tries for *_, tries, _ in script.calls} == {chunks.ROUNDING.tries}


@pytest.mark.usefixtures("scripted")
def test_budgets_are_whole_and_refined(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the flow shares them; then even ones, those, and half the way, solved for anew."""
    asked: list[list[float]] = []

    def refined(_: Any, durations: Floats, __: SolveSettings) -> str | None:
        asked.append((durations * 10).tolist())
        return None if asked[-1] == [6.0, 2.0, 1.0] else f"refined {len(asked)}"

    monkeypatch.setattr(chunks, "_refine", refined)
    found: list[Any] = list(chunks._budgets(stub([6.0, 2.0, 1.0]), 5, 9, True, SETTINGS))
    assert asked == [[3.0, 3.0, 3.0], [6.0, 2.0, 1.0], [5.0, 2.0, 2.0]]
    assert [(each.tolist(), volumes) for each, volumes in found] == [
        ([6, 2, 1], "volumes"),
        ([3, 3, 3], "refined 1"),
        ([5, 2, 2], "refined 3"),
    ]
    plain = list(chunks._budgets(stub([6.0, 2.0, 1.0]), 5, 18, False, SETTINGS))
    assert [each.tolist() for each, _ in plain] == [[12, 4, 2]]


def test_flows_are_refined_unless_told_otherwise(
    scripted: Callable[..., Script], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last argument of `round_flow` may be left out."""
    monkeypatch.setattr(chunks, "_refine", lambda *_: "refined")
    script = scripted(lambda _: (np.inf, False))
    assert round_flow(stub([0.75, 0.25]), 5, 0.0, SETTINGS) is None
    assert "refined" in [volumes for _, volumes, *_ in script.calls]


SLACKS = {
    "too narrow, then wide enough": (
        [(0.64, False), (0.3, False), (0.08, True), (0.2, False), (0.05, True)],
        0.05,
        [
            np.sqrt(1e-3 * 0.64),
            np.sqrt(np.sqrt(1e-3 * 0.64) * 0.3),
            np.sqrt(np.sqrt(1e-3 * 0.64) * 0.08),
            np.sqrt(np.sqrt(np.sqrt(1e-3 * 0.64) * 0.08) * 0.08),
        ],
        0.05,
    ),
    "fits at once": ([(0.64, False), (0.5, True), (0.01, True)], 0.01, None, 0.01),
    "good enough": ([(0.04, False)], 0.05, [], 0.04),
    "as narrow as is tried": ([(1e-3, False)], 0.0, [], 1e-3),
}


@pytest.mark.parametrize("name", SLACKS)
def test_the_slack_is_narrowed_down(scripted: Callable[..., Script], name: str) -> None:
    """By the geometric mean of a slack that does not do and one that does, or the best loss."""
    answers, enough, slacks, best = SLACKS[name]
    queue = list(answers)
    script = scripted(lambda _: queue.pop(0))
    found = squeeze(stub([0.75, 0.25]), 5, enough, SETTINGS)
    assert found.loss == best
    assert queue == []
    durations, volumes, _, late = script.calls[0]
    assert (durations.tolist(), volumes, late) == ([np.inf, np.inf], "volumes", never)
    if slacks is None:
        slacks = [np.sqrt(1e-3 * 0.64), np.sqrt(1e-3 * np.sqrt(1e-3 * 0.64))]
    tried = [durations / np.array([7.5, 2.5]) - 1 for durations, *_ in script.calls[1:]]
    assert np.array(tried).reshape(-1, 2) == pytest.approx(np.repeat(slacks, 2).reshape(-1, 2))


def test_squeezing_ends(scripted: Callable[..., Script]) -> None:
    """After some rounds; and with the first try where time is up."""
    script = scripted(lambda _: (0.5, False))
    assert squeeze(stub([1.0]), 5, 0.0, SETTINGS).loss == 0.5
    assert len(script.calls) == 1 + chunks.ROUNDING.squeezes
    script = scripted(lambda _: (0.5, False))
    late = SolveSettings(stopped=lambda: True)
    assert squeeze(stub([1.0]), 5, 0.0, late).loss == 0.5
    assert len(script.calls) == 1


def test_paths_that_have_no_room_are_refused(scripted: Callable[..., Script]) -> None:
    """A loss without end says that a path is missing."""
    scripted(lambda _: (np.inf, False))
    with pytest.raises(InputError, match="stub: the paths of 3 chunks are longer than 7 links"):
        squeeze(stub([1.0]), 5, 0.0, SETTINGS)


@pytest.fixture(scope="module")
def ring() -> TimedFlow:
    """Return the flow of a ring of four in two steps."""
    problem = Problem.all_to_all(scale_capacities(build("ring:4"), 2.0))
    return solve_timestepped(problem, 2, SETTINGS)


def test_refining_takes_the_durations_that_it_is_given(
    ring: TimedFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the fewest hops; nothing where they are too short, or the program too large."""
    seen: list[LinearProgram] = []

    def watched(program: LinearProgram, *others: Any) -> LPResult:
        seen.append(program)
        return solve_program(program, *others)

    monkeypatch.setattr(chunks, "solve_program", watched)
    found = chunks._refine(ring, ring.durations, SETTINGS)
    assert found is not None
    assert ring.program.durations(ring.program.weight @ found) == pytest.approx(ring.durations)
    link = useful_variables(ring.program)[1]
    assert seen[0].cost.tolist() == (link < ring.expansion.timed_links).astype(float).tolist()
    assert ring.expansion.timed_links in link.tolist()
    assert chunks._refine(ring, 0.9 * ring.durations, SETTINGS) is None
    monkeypatch.setattr(sizes, "WRITTEN_OUT_VARIABLES", len(link))
    assert chunks._refine(ring, ring.durations, SETTINGS) is not None
    monkeypatch.setattr(sizes, "WRITTEN_OUT_VARIABLES", len(link) - 1)
    assert chunks._refine(ring, ring.durations, SETTINGS) is None


def test_refining_may_be_cut_short(ring: TimedFlow, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a solver has when time is up is not what was asked for; a signal goes on."""
    ended = LPStatus.TIME_LIMIT

    def cut_short(*given: Any) -> LPResult:
        return replace(solve_program(*given), status=ended)

    monkeypatch.setattr(chunks, "solve_program", cut_short)
    assert chunks._refine(ring, ring.durations, SETTINGS) is None
    ended = LPStatus.INTERRUPTED
    with pytest.raises(KeyboardInterrupt):
        chunks._refine(ring, ring.durations, SETTINGS)


def sends(paths: list[list[int]]) -> list[tuple[int, ...]]:
    """Return the sends of two terminals and a switch between them, of chunks on timed paths."""
    star = Topology.from_links("star", 3, [(2, 1), (0, 2), (1, 2), (2, 0)], [0, 1])
    flow = solve_timestepped(Problem.all_to_all(star), 3, SETTINGS)
    timed = TimedChunks(flow, 1, SETTINGS)
    table: Ints = np.array(paths, dtype=np.int64)
    ends = (timed.source, timed.destination, timed.chunk)
    whole = Rounded(flow, 1, 1.0, 0.0, *ends, table, True)
    schedule = schedule_from(whole, Certificate(np.ones(4), 1.0), "tsmcf")
    check_schedule(schedule)
    columns = (schedule.step, schedule.source, schedule.destination, schedule.link)
    assert schedule.method == "tsmcf"
    return list(zip(*(each.tolist() for each in columns), strict=True))


def test_sends_come_by_step_chunk_and_link() -> None:
    """Whatever the order on the path; steps in which nothing moves are left out."""
    assert sends([[4 + 1, 4 + 0], [8 + 2, 8 + 3]]) == [
        (0, 0, 1, 0),
        (0, 0, 1, 1),
        (1, 1, 0, 2),
        (1, 1, 0, 3),
    ]
