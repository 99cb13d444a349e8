"""Which routes get layers: the given ones, in dimension order, or rerouted, case by case."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from alltoall.errors import InputError, UsageError
from alltoall.ir.arrays import Ints
from alltoall.routes.layers import assign
from alltoall.routes.layers.assign import assign_layers, fewest_layers, layers_in_time
from alltoall.routes.weights import NO_LOSS
from alltoall.settings import SolveSettings

SETTINGS = SolveSettings()


@dataclass(frozen=True)
class Stub:
    """What of routes the choice depends on; `needed` is what the layering will find."""

    time: float
    needed: int
    method: str = "extp"
    problem: Any = None
    certificate: Any = None
    count: int = 12
    layer: Ints | None = None

    @property
    def layers(self) -> int | None:
        """The layers that were assigned."""
        return None if self.layer is None else len(self.layer)


@dataclass(frozen=True)
class Rerouted:
    """In the place of the rerouting: what it finds, by layers."""

    times: dict[int, float]

    def __call__(self, *_: Any) -> "Rerouted":
        """Take any routes and settings."""
        return self

    def within(self, layers: int) -> Stub | None:
        """Return routes of so many layers."""
        return (
            Stub(self.times[layers], 0, layer=np.arange(layers)) if layers in self.times else None
        )

    def as_fast(self) -> tuple[Stub | None, Stub | None]:
        """Return the fewest layers at a time of 1, and one less."""
        fewest = min((each for each, time in self.times.items() if time == 1.0), default=0)
        return self.within(fewest), self.within(fewest - 1)


class Topologies:
    """In the place of a problem."""

    topology = "grid"


@dataclass
class Case:
    """What is given, and in which order other things are asked for."""

    mine: Stub
    other: Stub
    asked: list[str]
    seeds: list[int]

    def fewest(self, algorithm: str = "lash-sequential", most: int | None = None) -> Any:
        """Return the routes that are chosen, and the notes."""
        return fewest_layers(self.mine, algorithm, most, SETTINGS)  # type: ignore[arg-type]


@pytest.fixture
def case(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Case:
    """Return the given routes and those in dimension order, by time and layers."""
    mine, other = (Stub(time, needed, problem=Topologies) for time, needed in request.param)
    found = Case(mine, other, [], [])

    def layering(routes: Stub, seed: int, _: SolveSettings) -> Ints:
        found.seeds.append(seed)
        return np.arange(routes.needed)

    def grid_of(topology: str) -> str | None:
        found.asked.append(topology)
        return "a grid" if topology == "grid" else None

    def dimension(*given: Any) -> Stub:
        assert given == (Topologies, "a grid", None, mine.method)
        return other

    for name in assign.LAYERINGS:
        monkeypatch.setitem(assign.LAYERINGS, name, layering)
    monkeypatch.setattr(assign, "grid_of", grid_of)
    monkeypatch.setattr(assign, "route_by_dimension", dimension)
    monkeypatch.setattr(assign, "Rerouting", Rerouted({}))
    return found


def given(*pairs: tuple[tuple[float, int], tuple[float, int]]) -> pytest.MarkDecorator:
    """Run a test with times and layers of both kinds of routes."""
    return pytest.mark.parametrize("case", pairs, indirect=True)


@given(((1.0, 2), (1.0, 1)), ((1.0, 2), (0.5, 1)), ((1.0, 2), (1 + NO_LOSS, 1)))
@pytest.mark.parametrize("most", [None, 1, 2])
def test_as_fast_in_fewer_layers(case: Case, most: int | None) -> None:
    """Dimension order is taken whatever is allowed."""
    routes, notes = case.fewest(most=most)
    assert (routes.time, routes.layers) == (case.other.time, 1)
    assert notes == ("routes in dimension order: as fast, 1 instead of 2 layers",)
    assert case.seeds == [0, 0]


@given(((1.0, 3), (1.0, 2)))
def test_as_fast_and_still_too_many(case: Case) -> None:
    """The message says what the better ones need."""
    with pytest.raises(InputError, match=r"needs 2 virtual layers .* and 1 are allowed; allow 2"):
        case.fewest(most=1)


SLOWER = ((1.0, 3), (1.5, 1)), ((1.0, 3), (1 + 3 * NO_LOSS, 1))
"""Three layers at the best time, one at a longer one."""


@given(*SLOWER)
@pytest.mark.parametrize("most", [None, 3, 4])
def test_slower_in_fewer_layers_is_another_choice(case: Case, most: int | None) -> None:
    """The given routes are kept as long as their layers are allowed."""
    routes, notes = case.fewest(most=most)
    assert (routes.time, routes.layers) == (1.0, 3)
    assert notes == (
        "another choice: routes in dimension order (--max-layers 2): "
        f"time {case.other.time:.9g}, layers 1; instead of time 1, layers 3",
    )


@given(*SLOWER)
@pytest.mark.parametrize("most", [1, 2])
def test_slower_if_there_are_no_more_layers(case: Case, most: int) -> None:
    """Then dimension order is taken, and a note says what it costs."""
    routes, notes = case.fewest(most=most)
    assert (routes.time, routes.layers) == (case.other.time, 1)
    words = f"time {case.other.time:.9g}, layers 1; instead of time 1, layers 3"
    assert notes == (f"routes in dimension order: {words}",)


@given(((1.0, 3), (1.5, 2)))
def test_neither_fits(case: Case) -> None:
    """The given routes say how many layers they need."""
    with pytest.raises(InputError, match="needs 3 virtual layers for these 12 routes and 1 are"):
        case.fewest(most=1)


@given(((1.0, 2), (1.0, 2)), ((1.0, 2), (1.0, 3)), ((1.0, 1), (1.0, 1)))
def test_no_fewer_layers(case: Case) -> None:
    """The given routes stay, without a word; one layer cannot be improved on."""
    routes, notes = case.fewest()
    assert (routes.layers, notes) == (case.mine.needed, ())
    assert case.asked == ([] if case.mine.needed == 1 else ["grid"])


@given(((1.0, 2), (1.0, 1)))
@pytest.mark.parametrize("algorithm", ["lash", "df-sssp"])
def test_what_is_compared_with_keeps_its_routes(case: Case, algorithm: str) -> None:
    """Other algorithms get the routes that they are given."""
    assert case.fewest(algorithm)[0].layers == 2
    assert case.asked == []


@given(((1.0, 2), (1.0, 1)))
@pytest.mark.parametrize("changes", [{"method": "ecmp"}, {"problem": "no grid"}])
def test_certain_routes_and_other_graphs_stay(case: Case, changes: dict[str, str]) -> None:
    """A method that promises certain routes keeps them; elsewhere there is no dimension."""
    problem = type("Other", (), {"topology": "no grid"})
    known: dict[str, Any] = {"problem": problem} if "problem" in changes else changes
    case.mine = Stub(1.0, 2, **{"problem": Topologies} | known)
    assert case.fewest()[0].layers == 2
    assert case.asked == (["no grid"] if "problem" in changes else [])


@given(((1.0, 2), (1.0, 1)))
def test_dimension_order_may_come_too_late(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The given routes have their layers by then."""

    def late(routes: Stub, *_: Any) -> Ints:
        if routes is case.other:
            raise TimeoutError
        return np.arange(routes.needed)

    monkeypatch.setitem(assign.LAYERINGS, "lash-sequential", late)
    routes, notes = case.fewest()
    assert (routes.layers, notes) == (2, ())


@given(((1.0, 2), (1.0, 1)))
def test_layers_of_given_routes(case: Case) -> None:
    """By name, with the seed, within what is allowed, and not once time is up."""
    mine: Any = case.mine
    assert assign_layers(mine, max_layers=2).layers == 2
    assert assign_layers(mine, "lash", seed=7).layers == 2
    assert case.seeds == [0, 7]
    with pytest.raises(InputError, match="needs 2 virtual layers"):
        assign_layers(mine, max_layers=1)
    with pytest.raises(UsageError, match="unknown layering 'lsah'; expected one of lash, lash-s"):
        assign_layers(mine, "lsah")
    before = len(case.seeds)
    with pytest.raises(TimeoutError):
        assign_layers(mine, settings=SolveSettings(stopped=lambda: True))
    assert len(case.seeds) == before


@given(((1.0, 2), (1.0, 1)))
def test_late_routes_have_no_layers(case: Case) -> None:
    """A note says so, and progress was reported before."""
    said: list[str] = []
    late = SolveSettings(stopped=lambda: True, report=said.append)
    mine: Any = case.mine
    routes, notes = layers_in_time(mine, "lash", None, late)
    assert routes is mine
    assert notes[0].startswith("a signal to stop came before all 12 routes had a layer")
    assert said == ["assigning layers"]


@given(((1.0, 5), (1.0, 5)))
def test_rerouted_in_fewer_layers(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """As fast is taken; what is slower in fewer layers is another choice, or taken if it must."""
    monkeypatch.setattr(assign, "Rerouting", Rerouted({4: 1.0, 3: 1.0, 2: 1.25, 1: 2.0}))
    fast = "other routes: as fast, 3 instead of 5 layers"
    choice = "time 1.25, layers 2; instead of time 1, layers 3"
    for most in (None, 3, 5):
        routes, notes = case.fewest(most=most)
        assert (routes.time, routes.layers) == (1.0, 3)
        assert notes == (fast, f"another choice: other routes (--max-layers 2): {choice}")
    for most, time in ((2, 1.25), (1, 2.0)):
        routes, notes = case.fewest(most=most)
        assert (routes.time, routes.layers) == (time, most)
        words = f"time {time:g}, layers {most}; instead of time 1, layers 5"
        assert notes == (f"other routes: {words}",)
    with pytest.raises(InputError, match=r"needs 3 virtual layers .* and 0 are allowed"):
        case.fewest(most=0)


@given(((1.0, 5), (1.5, 2)))
def test_the_faster_of_both_is_taken(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there are too few layers for what is as fast."""
    monkeypatch.setattr(assign, "Rerouting", Rerouted({2: 1.25}))
    routes, notes = case.fewest(most=2)
    assert (routes.time, routes.layers) == (1.25, 2)
    assert notes[0].startswith("other routes: time 1.25")
    monkeypatch.setattr(assign, "Rerouting", Rerouted({2: 1.75}))
    assert case.fewest(most=2)[0].time == 1.5
