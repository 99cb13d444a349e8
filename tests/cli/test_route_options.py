"""Every option of `route` with every method: it means something, or it is refused."""

import inspect

import pytest

from alltoall.cli.options import chosen_topology
from alltoall.cli.route import route_verb
from alltoall.routes import ROUTERS, USED_BY
from alltoall.routes.public import NEEDS
from command_line import Run

WORDS: dict[str, tuple[str, ...]] = {
    "paths": ("--paths", "shortest"),
    "slack": ("--paths", "bounded", "--slack", "2"),
    "k": ("--paths", "k-shortest", "--k", "2"),
    "max_routes": ("--max-routes", "1"),
    "loss": ("--loss", "0.5"),
    "epsilon": ("--epsilon", "0.5"),
    "shape": ("--shape", "3x3"),
    "chunks": ("--chunks", "3"),
    "layers": ("--layers", "df-sssp"),
    "robust": ("--robust", "pairs"),
    "layer_change": ("--layer-change",),
    "destination_based": ("--destination-based",),
    "cluster": ("--cluster", "tcp://localhost:1"),
}
"""How each option that concerns some methods only is given."""

GENERAL = {
    *("last", "method", "deadlock_free", "max_layers", "phases", "phase_loss", "demand"),
    *("groups", "group_file", "jobs", "background"),
    *("solver", "gap", "time_limit", "workers", "symmetry", "output", "as_json"),
    *("link_bandwidth", "shard", "provenance"),
}
"""Options that mean something to all methods: layers and the certified bound concern them all."""


def test_every_option_is_in_a_table() -> None:
    """Who adds an option says which methods use it."""
    shared = inspect.signature(chosen_topology).parameters.keys() | {"context"}
    own = inspect.signature(route_verb).parameters.keys() - shared
    assert own == USED_BY.keys() | GENERAL
    assert WORDS.keys() == USED_BY.keys()
    for users in USED_BY.values():
        assert set(users) < set(ROUTERS)


# With a cluster these run in tests/flows/test_workers.py.
CALLS = [
    (option, method)
    for option in WORDS
    for method in ROUTERS
    if option != "cluster" or method not in USED_BY[option]
]


@pytest.mark.parametrize(("option", "method"), CALLS)
def test_an_option_is_used_or_refused(run: Run, option: str, method: str) -> None:
    """Refused with exit code 2 and the methods that use it, else obeyed."""
    outcome = run("route", "torus:3x3", "--method", method, *WORDS[option], "--json")
    if method not in USED_BY[option]:
        assert outcome.code == 2
        assert f"with --method {method}, which does not use it" in outcome.err
        assert USED_BY[option][0] in outcome.err
        return
    assert outcome.code == 0, outcome.err
    found = outcome.json
    if option == "max_routes":
        assert found["max_routes_per_pair"] == 1
    if option == "chunks":
        assert 3 % found["common_factor_chunks"] == 0


@pytest.mark.parametrize("option", NEEDS)
def test_an_option_without_the_one_it_belongs_to_is_refused(run: Run, option: str) -> None:
    """Alone, and with another value of that one."""
    flag, (other, value) = "--" + option.replace("_", "-"), NEEDS[option]
    words = ("route", "torus:3x3", *(("--method", "pmcf") if value else ()), flag, "1")
    alone = run(*words)
    assert alone.code == 2
    assert f"{flag} without --{other}" in alone.err
    if value is not None:
        wrong = run(*words, f"--{other}", "disjoint")
        assert wrong.code == 2
        assert f"without --{other} {value}" in wrong.err
    right = run(*words, f"--{other}", value or "2")
    assert right.code in (0, 2)
    assert "without" not in right.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--method", "single"), "--method single"),
        (("--max-layers", "3"), "--max-layers 3"),
        (("--layers", "lash"), "--layers with --method deadlock-free"),
        (("--max-routes", "2"), "--max-routes with --method deadlock-free"),
    ],
)
def test_the_short_form_refuses_what_contradicts_it(
    run: Run, words: tuple[str, ...], expected: str
) -> None:
    """It stands for a method and its layers; nothing else is ignored beside it."""
    outcome = run("route", "ring:6", "--deadlock-free", 2, *words)
    assert outcome.code == 2
    assert expected in outcome.err


def test_the_short_form_is_the_long_one(run: Run) -> None:
    """The same answer, also if both are given and agree."""
    short = ("--deadlock-free", 1)
    long = ("--method", "deadlock-free", "--max-layers", 1)
    found = [run("route", "ring:5", *words, "--json").json for words in (short, long, short + long)]
    for each in found:
        assert each["method"] == "deadlock-free"
        assert each["layers"] == 1
        assert each["time"] == pytest.approx(found[0]["time"])


def test_deadlock_free_routes_are_cut_into_chunks_in_their_layers(run: Run) -> None:
    """Rounded onto the routes that there are, at a cost, without a layer more."""
    found = run("route", "ring:6", "--deadlock-free", 1, "--chunks", 2, "--json").json
    assert found["layers"] == 1
    assert found["max_routes_per_pair"] <= 2
    assert 2 % found["common_factor_chunks"] == 0


@pytest.mark.parametrize(
    ("words", "status"),
    [
        ((), "optimal"),
        (("--method", "native"), "gap_not_reached"),
        (("--method", "native", "--gap", "0.9"), "within_gap"),
        (("--method", "native", "--time-limit", "1e-9"), "time_limit"),
        (("--chunks", "1"), "gap_not_reached"),
        (("--method", "deadlock-free", "--max-layers", "1"), "gap_not_reached"),
    ],
)
def test_the_status_says_what_is_proven(run: Run, words: tuple[str, ...], status: str) -> None:
    """Optimal only within the gap of the certified bound, whatever was done to the routes."""
    found = run("route", "ring:6", *words, "--json").json
    assert found["status"] == status
    assert (found["gap"] <= 1e-6) == (status == "optimal")
    told = "within the gap asked for" if "0.9" in words else status.replace("_", " ")
    assert f"({told})" in run("route", "ring:6", *words).out
