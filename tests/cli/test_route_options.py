"""Settings of every method of `route`: each means something, or is refused."""

import inspect

import pytest

from alltoall.cli.answers import route_verb, schedule_verb, solve_verb
from alltoall.flows import METHODS as SOLVERS
from alltoall.grammar import ROUTE, ROUTE_KEYS, SCHEDULE, SOLVE
from alltoall.routes import ROUTERS, USED_BY
from alltoall.schedules.methods import METHODS as SCHEDULERS
from command_line import Run

VALUES = {
    "paths": "shortest",
    "raw": "true",
    "slack": "2",
    "k": "2",
    "loss": "0.5",
    "epsilon": "0.5",
    "published": "true",
    "shape": "3x3",
    "demands": "pairs",
    "change": "true",
    "layers": "2",
    "destination-based": "true",
    "solver": "ipm",
    "symmetry": "false",
    "layering": "df-sssp",
}
"""A value of each setting."""

PATHS = {"slack": "paths=bounded,", "k": "paths=k-shortest,"}
"""Settings that other settings need."""

KEYS = {key for method in ROUTE.values() for key in method.keys}


def test_the_tables_have_all_methods_and_settings() -> None:
    """Who adds a method or a setting adds its row and a value here."""
    assert ROUTE.keys() - {"auto"} == set(ROUTERS.known)
    assert SOLVE.keys() - {"auto"} == set(SOLVERS.known)
    assert set(SCHEDULE) == set(SCHEDULERS)
    assert KEYS | ROUTE_KEYS.keys() == VALUES.keys() | {"cluster"}


@pytest.mark.parametrize("verb", [route_verb, schedule_verb, solve_verb])
def test_a_verb_has_at_most_24_options(verb: object) -> None:
    """The context and the SPEC are none."""
    assert len(inspect.signature(verb).parameters) - 2 <= 24  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ROUTERS.known)
@pytest.mark.parametrize("key", sorted(KEYS | {"solver", "symmetry", "layering"}))
def test_a_setting_is_used_or_refused(run: Run, key: str, method: str) -> None:
    """Refused with exit code 2 and the settings that the method has, else obeyed."""
    asked = f"{method}:{PATHS.get(key, '')}{key}={VALUES[key]}"
    outcome = run("route", "torus:3x3", "--method", asked, "--json")
    if key in ROUTE[method].keys or (key in ROUTE_KEYS and method != "deadlock-free"):
        assert outcome.code == 0, outcome.err
    elif key in ROUTE_KEYS:
        assert outcome.code == (2 if key == "layering" else 0)
    else:
        assert outcome.code == 2
        assert f"method {method}: no setting " in outcome.err


@pytest.mark.parametrize("method", ROUTERS.known)
@pytest.mark.parametrize(("option", "value"), [("--max-routes", "1"), ("--chunks", "3")])
def test_a_limit_is_kept_or_refused(run: Run, option: str, value: str, method: str) -> None:
    """Refused with exit code 2 and the methods that use it, else obeyed."""
    outcome = run("route", "torus:3x3", "--method", method, option, value, "--json")
    users = USED_BY[option[2:].replace("-", "_")]
    if method not in users:
        assert outcome.code == 2
        assert f"with method {method}, which does not use it" in outcome.err
        assert users[0] in outcome.err
        return
    assert outcome.code == 0, outcome.err
    if option == "--max-routes":
        assert outcome.json["max_routes_per_pair"] == 1
    else:
        assert 3 % outcome.json["common_factor_chunks"] == 0


def test_layers_are_said_once(run: Run) -> None:
    """By the option or by the method; both must agree."""
    short = ("--method", "deadlock-free:layers=1")
    long = ("--method", "deadlock-free", "--max-layers", 1)
    found = [run("route", "ring:5", *words, "--json").json for words in (short, long)]
    for each in found:
        assert each["method"] == "deadlock-free"
        assert each["layers"] == 1
        assert each["time"] == pytest.approx(found[0]["time"])
    outcome = run("route", "ring:5", *short, "--max-layers", 3)
    assert outcome.code == 2
    assert "at most 3 layers with method deadlock-free:layers=1" in outcome.err


def test_deadlock_free_routes_are_cut_into_chunks_in_their_layers(run: Run) -> None:
    """Rounded onto the routes that there are, at a cost, without a layer more."""
    words = ("--method", "deadlock-free:layers=1", "--chunks", 2, "--json")
    found = run("route", "ring:6", *words).json
    assert found["layers"] == 1
    assert found["max_routes_per_pair"] <= 2
    assert 2 % found["common_factor_chunks"] == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), "optimal"),
        (("--method", "ecmp"), "gap_not_reached"),
        (("--method", "ecmp", "--gap", "0.9"), "within_gap"),
        (("--method", "ecmp", "--time-limit", "1e-9"), "time_limit"),
        (("--chunks", "1"), "gap_not_reached"),
        (("--method", "deadlock-free", "--max-layers", "1"), "gap_not_reached"),
    ],
)
def test_the_status_says_what_is_proven(run: Run, words: tuple[str, ...], status: str) -> None:
    """Optimal only within the gap of the certified bound, whatever was done to the routes."""
    found = run("route", "ring:6", *words, "--json").json
    assert found["status"] == status
    assert (found["gap"] <= 1e-6) == (status == "optimal")
    said = run("route", "ring:6", *words).out
    assert ("the proven minimum" in said) == (status == "optimal")
    assert ("above the proven limit" in said) == (status != "optimal")
