"""Robust templates: they lose less to skew than plain ones, under demands that they do not know."""

from pathlib import Path

import numpy as np
import pytest

import alltoall
from alltoall.check.routes import check_routes
from alltoall.check.schedule import check_schedule
from alltoall.check.template import template_time
from alltoall.errors import InputError, UsageError
from alltoall.ir.demand import Demand
from alltoall.routes import robust
from alltoall.routes.robust import SKEWS, Family, judge, route_robust, worst_of_hose
from alltoall.schedules.methods import find_schedule
from alltoall.settings import RouteSettings, ScheduleSettings, SolveSettings
from alltoall.verification import predict
from command_line import Run

TORUS = alltoall.Problem.all_to_all(alltoall.topology("torus:4x4"))
SMALL = alltoall.Problem.all_to_all(alltoall.topology("genkautz:n=9,d=3"))
PLAIN = alltoall.route(TORUS, "extp:layering=none")


@pytest.mark.parametrize("family", ["pairs", "destinations"])
def test_it_loses_less_than_a_plain_template(family: str) -> None:
    """Under other demands than it was made with, each against its own certified bound."""
    made = route_robust(TORUS, RouteSettings(robust=("skew",)))
    check_routes(made)
    ours, theirs = (judge(each, (family,), 0, SolveSettings()) for each in (made, PLAIN))
    assert ours is not None
    assert theirs is not None
    assert ours.median <= 0.75 * theirs.median
    assert 0 <= ours.losses[0] <= ours.median <= ours.worst


def test_the_worst_of_the_hose_model_is_known() -> None:
    """Twice the time of the uniform demand is what no permutation needs more than; plain has 64."""
    made = route_robust(TORUS, RouteSettings(robust=("hose",)))
    worst = Demand(16, worst_of_hose(TORUS, made, made.weight)[0])
    plain = Demand(16, worst_of_hose(TORUS, PLAIN, PLAIN.weight)[0])
    assert template_time(made, worst) <= 17.0
    assert template_time(PLAIN, plain) > 22.0
    random = np.random.default_rng(0)
    for matrix in Family(TORUS, ("hose",)).draw(random, 20):
        assert template_time(made, Demand(16, matrix)) <= template_time(made, worst) + 1e-9


def test_given_demands_are_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files in the place of a family: the worst loss of all of them is small."""
    monkeypatch.setattr(robust, "STEPS", 200)
    files = []
    for seed in range(2):
        matrix = np.random.default_rng(seed).lognormal(0, 1, (9, 9))
        np.fill_diagonal(matrix, 0.0)
        files.append(str(tmp_path / f"{seed}.csv"))
        np.savetxt(files[-1], matrix, delimiter=",")
    made = alltoall.route(SMALL, f"robust:demands={'+'.join(map(str, files))}")
    plain = alltoall.route(SMALL)
    losses = [[predict(each, f).template_loss for f in files] for each in (made, plain)]
    assert max(losses[0]) <= 0.5 * max(losses[1])


def test_families_scale_the_demand_and_keep_its_zeros() -> None:
    """Every matrix has the total of the problem's own, and nothing where that has nothing."""
    groups = alltoall.Demand.of_groups(9, [(0, 1, 2), (3, 4)])
    problem = alltoall.Problem(SMALL.topology, groups)
    for name in SKEWS:
        drawn = Family(SMALL, (name,)).draw(np.random.default_rng(1), 6)
        assert drawn.shape == (6, 9, 9)
        assert drawn.sum(axis=(1, 2)) == pytest.approx(72.0)
    drawn = Family(problem, ("pairs", "destinations")).draw(np.random.default_rng(1), 5)
    assert len(drawn) == 5
    assert not drawn[:, groups.table() == 0].any()


def test_same_seed_same_routes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demands that make a template are drawn by its seed."""
    monkeypatch.setattr(robust, "STEPS", 20)
    once, again, other = (route_robust(SMALL, RouteSettings(seed=seed)) for seed in (1, 1, 2))
    assert np.array_equal(once.weight, again.weight)
    assert not np.array_equal(once.weight, other.weight)


def test_a_template_in_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks are spread as the shares are, and the schedule says what it loses."""
    monkeypatch.setattr(robust, "STEPS", 50)
    settings = ScheduleSettings(robust=("skew",), chunks=4)
    found = find_schedule(SMALL, settings=settings)
    check_schedule(found.schedule)
    assert found.schedule.method == "list"
    assert found.robust is not None
    assert found.learnt()["robust"]["median_loss"] == found.robust.median
    with pytest.raises(UsageError, match="robust schedule by tsmcf; expected the method list"):
        find_schedule(SMALL, "tsmcf", settings)


def test_what_cannot_be_meant_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unknown families, families next to files, another method, too many paths."""
    with pytest.raises(UsageError, match="'hoes', which is no file; expected one of skew"):
        alltoall.route(SMALL, "robust:demands=hoes")
    with pytest.raises(UsageError, match="families and files at once"):
        alltoall.route(SMALL, "robust:demands=skew+some.csv")
    with pytest.raises(UsageError, match="method single: no setting 'demands'"):
        alltoall.route(SMALL, "single:demands=skew")
    monkeypatch.setattr(robust, "MOST_PATHS", 10)
    with pytest.raises(InputError, match=r"shortest paths; expected at most 10 .* Use ewsp"):
        alltoall.route(SMALL, "robust:demands=skew")
    monkeypatch.undo()
    monkeypatch.setattr("alltoall.routes.robust.MOST_CELLS", 10)
    with pytest.raises(InputError, match=r"for the hose model\. Use robust skew"):
        alltoall.route(SMALL, "robust:demands=hose")


def test_the_verb_says_what_it_loses(monkeypatch: pytest.MonkeyPatch, run: Run) -> None:
    """Median and worst loss, in words and as numbers."""
    monkeypatch.setattr(robust, "STEPS", 20)
    lines = run("route", "ring:5", "--method", "robust:demands=pairs").out
    assert "(median) to" in lines
    assert "under 12 other demands of pairs" in lines.replace("\n", " ")
    words = ("route", "ring:5", "--method", "robust:demands=pairs", "--json")
    assert len(run(*words).json["robust"]["losses"]) == 12
