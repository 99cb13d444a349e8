"""What others register is used like what is ours, through the command line too, and is checked."""

from base64 import b64decode, b64encode
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import alltoall
from alltoall.errors import UsageError
from alltoall.flows import METHODS
from alltoall.flows import solve as solve_problem
from alltoall.lowering import TARGETS
from alltoall.routes.baselines.tables import route_ecmp
from alltoall.settings import RouteSettings, SolveSettings
from alltoall.topologies.families import Family
from command_line import Run
from conftest import TABLES


def star(leaves: int, capacity: float = 1.0) -> alltoall.Topology:
    """Build a star: leaves around a node in the middle."""
    edges = [(0, leaf, capacity) for leaf in range(1, leaves + 1)]
    return alltoall.Topology.from_edges(f"star:{leaves}", leaves + 1, edges)


def slow(problem: alltoall.Problem, settings: SolveSettings) -> alltoall.Flow:
    """Solve as `grouped` does."""
    return replace(solve_problem(problem, "grouped", settings), method="slow")


def boastful(problem: alltoall.Problem, settings: SolveSettings) -> alltoall.Flow:
    """Claim twice the rate that the flow has."""
    flow = slow(problem, settings)
    return replace(flow, rate=2 * flow.rate)


def plain(problem: alltoall.Problem, settings: RouteSettings) -> "alltoall.Routes":
    """Route as `ecmp` does."""
    return replace(route_ecmp(problem, settings), method="plain")


def veiled(target: Any, sign: str) -> Any:
    """Return a target like another one, whose files say the same in another alphabet."""
    line = f"# {sign}\n"
    return replace(
        target,
        emit=lambda noun, options: line + b64encode(target.emit(noun, options).encode()).decode(),
        read=lambda text, where: target.read(b64decode(text.removeprefix(line)).decode(), where),
        suffix=".veiled",
        summary="like another one",
        sign=sign,
    )


def test_a_family_is_a_spec_everywhere(run: Run) -> None:
    """Its parameters are those of the SPEC, with their types and defaults."""
    alltoall.register_family("star", Family(star, "star:5"))
    found = run("solve", "star:leaves=3,capacity=2", "--json")
    assert found.code == 0, found.err
    assert (found.json["topology"], found.json["nodes"]) == ("star:3", 4)
    assert run("topology", "--json").json["families"]["star"]["example"] == "star:5"
    wrong = run("solve", "star:leaves=many")
    assert wrong.code == 2
    assert "expected a whole number" in wrong.err
    assert alltoall.describe("star:3").diameter == 2


def test_a_method_of_solve(run: Run, tmp_path: Path) -> None:
    """It is named like the others, and what it saves is valid."""
    alltoall.register_method("slow", slow)
    saved = tmp_path / "flow.json"
    found = run("solve", "torus:3x3", "--method", "slow", "-o", saved, "--json")
    assert found.code == 0, found.err
    assert (found.json["method"], found.json["status"]) == ("slow", "optimal")
    assert run("verify", saved).code == 0
    assert "slow" in run("solve", "torus:3x3", "--method", "slwo").err


def test_a_method_is_not_taken_at_its_word(run: Run) -> None:
    """A flow that is not what it claims is an error, not an answer."""
    alltoall.register_method("boastful", boastful)
    found = run("solve", "ring:4", "--method", "boastful")
    assert found.code == 4
    assert "fails verification" in found.err


def test_a_method_of_route(run: Run) -> None:
    """Layers are assigned to its routes, and its options are its own affair."""
    alltoall.register_method("plain", plain)
    words = ("route", "ring:5", "--method", "plain:layering=df-sssp", "--chunks", 2)
    found = run(*words, "--json")
    assert found.code == 0, found.err
    assert found.json["method"] == "plain"
    assert found.json["layers"] == 2
    assert alltoall.route("ring:5", method="plain").count == 20


@pytest.mark.parametrize(("verb", "like"), [("schedule", "oneccl"), ("route", "ompi")])
def test_a_target(run: Run, tmp_path: Path, verb: str, like: str) -> None:
    """Its files are read back when they are written, and recognised by `verify` and `load`."""
    alltoall.register_target("veiled", veiled(TARGETS[like], "veiled by a test"))
    saved, lowered = tmp_path / "noun.json", tmp_path / "lowered"
    assert run(verb, "ring:4", "-o", saved).code == 0
    found = run("lower", saved, "--to", "veiled", "-o", lowered, "--json")
    assert found.code == 0, found.err
    assert lowered.read_text().startswith("# veiled by a test")
    assert run("verify", lowered, "--topology", "ring:4").code == 0
    alltoall.load(lowered)


def test_a_target_whose_files_look_like_those_of_another_is_refused() -> None:
    """Nobody could tell which reader they are for."""
    for like, make in (("oneccl", alltoall.schedule), ("ompi", alltoall.route)):
        alltoall.register_target(f"twin-{like}", TARGETS[like])
        with pytest.raises(UsageError, match=f"reads as one of the target {like}"):
            alltoall.lower(make("ring:4"), to=f"twin-{like}")


@dataclass(frozen=True)
class EntryPoint:
    """What `importlib.metadata` finds, as far as we look at it."""

    name: str
    load: Callable[[], Any]
    value: str = "their.module:thing"
    dist: None = None


def broken() -> Any:
    """Fail as a package does that is half installed."""
    raise ImportError("No module named 'their'")


def offer(monkeypatch: pytest.MonkeyPatch, offers: dict[str, list[EntryPoint]]) -> None:
    """Let installed packages offer something, as if nobody had looked yet."""
    monkeypatch.setattr(
        "alltoall.registry._entry_points",
        lambda group: ((each.name, each) for each in offers.get(group, [])),
    )
    for table in TABLES:
        monkeypatch.setattr(table, "_searched", False)
        monkeypatch.setattr(table, "_broken", {})


def test_entry_points_of_installed_packages_are_found(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One group of methods serves two tables; each takes what it can use."""
    family = Family(star, "star:5")
    methods = [EntryPoint("slow", lambda: slow), EntryPoint("plain", lambda: plain)]
    target = veiled(TARGETS["oneccl"], "veiled by a package")
    offers = {
        "alltoall.families": [EntryPoint("star", lambda: family)],
        "alltoall.methods": methods,
    }
    offer(monkeypatch, offers | {"alltoall.targets": [EntryPoint("noted", lambda: target)]})
    assert run("solve", "star:3", "--method", "slow", "--json").json["method"] == "slow"
    assert run("route", "star:3", "--method", "plain", "--json").json["method"] == "plain"
    assert run("solve", "star:3", "--method", "plain").code == 2
    assert alltoall.lower(alltoall.schedule("ring:4"), to="noted").target == "noted"


def test_a_broken_package_only_hurts_those_who_use_it(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name is known, and using it says what is wrong and whose fault it is."""
    points = [EntryPoint("crooked", broken), EntryPoint("slow", lambda: slow)]
    offer(monkeypatch, {"alltoall.methods": points})
    assert run("solve", "ring:4", "--method", "slow").code == 0
    found = run("solve", "ring:4", "--method", "crooked")
    assert found.code == 5
    assert "No module named 'their'; repair or remove that package" in found.err


@pytest.mark.parametrize("builtin", [int, min, type])
def test_a_builtin_without_parameters_is_no_family(builtin: Any) -> None:
    """It could not be built from any SPEC."""
    with pytest.raises(UsageError, match="expected a function with a docstring"):
        alltoall.register_family("builtin", builtin)


def test_what_cannot_be_registered() -> None:
    """A name that is taken or is none, and things that are not what they should be."""
    with pytest.raises(UsageError, match="'ring' exists already"):
        alltoall.register_family("ring", star)
    with pytest.raises(UsageError, match="expected a function with a docstring"):
        alltoall.register_family("bare", 3)  # type: ignore[arg-type]
    for name in ("extp", "link"):
        with pytest.raises(UsageError, match=f"{name!r} exists already"):
            alltoall.register_method(name, plain)
    with pytest.raises(UsageError, match="annotated to return a Flow"):
        alltoall.register_method("silent", lambda problem, settings: None)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="small letters"):
        alltoall.register_method("--Slow", slow)
    with pytest.raises(UsageError, match="expected a Target"):
        alltoall.register_target("thing", plain)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="expected a Target that takes a Schedule or Routes"):
        alltoall.register_target("flowing", replace(TARGETS["oneccl"], takes=alltoall.Flow))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="emit and read are to be functions"):
        alltoall.register_target("mute", replace(TARGETS["oneccl"], emit=None))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="'msccl' exists already"):
        alltoall.register_target("msccl", TARGETS["oneccl"])
    with pytest.raises(UsageError, match="begins with a dot"):
        alltoall.register_target("bare", replace(TARGETS["oneccl"], suffix="xml"))
    with pytest.raises(UsageError, match="was not registered"):
        METHODS.remove("link")


def test_a_family_that_builds_something_else_is_refused() -> None:
    """What it returns is no topology, and that is said."""
    alltoall.register_family("odd", Family(lambda: 3, "odd"))  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match="built a int, expected a Topology"):
        alltoall.topology("odd")
