"""The rooms import only what the plan of the house allows, and the package exports what it says."""

import ast
import doctest
import importlib
import inspect
import os
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import alltoall
from alltoall.cli import verbs

PACKAGE = Path(alltoall.__file__).parent

NOUNS = {"errors", "ir"}
SOLVING = NOUNS | {"lp", "settings", "paths"}
ROOMS: dict[str, set[str]] = {
    "core": set(),
    "errors": set(),
    "registry": {"errors"},
    "ir": {"errors"},
    "check": NOUNS,
    "lp": {"errors", "registry"},
    "grammar": {"errors", "ir"},
    "options": set(),
    "settings": NOUNS | {"lp"},
    "topologies": NOUNS | {"registry", "core", "grammar"},
    "paths": NOUNS | {"lp", "settings", "core"},
    "placing": SOLVING | {"core"},
    "flows": SOLVING | {"topologies", "registry", "core"},
    "routes": SOLVING | {"core", "placing", "flows", "check", "registry", "topologies"},
    "schedules": SOLVING | {"placing", "flows", "routes", "check", "core"},
    # What is compared may be any file, and measured runs are read by what reports on them.
    "comparing": SOLVING
    | {"topologies", "flows", "routes", "schedules", "check", "loading", "reports", "grammar"},
    "designs": SOLVING | {"topologies", "flows", "routes", "core"},
    "lowering": NOUNS | {"registry", "topologies"},
    "simulation": NOUNS | {"core"},
    "runtime": NOUNS | {"registry", "lowering", "check"},
    "testbed": NOUNS | {"topologies", "lowering", "runtime"},
    "workloads": NOUNS | {"registry", "runtime"},
    "reports": NOUNS | {"check", "flows", "routes", "settings"},
    "loading": NOUNS | {"topologies", "lowering"},
    "verification": NOUNS | {"check", "topologies", "flows", "lowering", "loading"},
    "figures": NOUNS | {"flows", "settings", "verification"},
    "extensions": SOLVING | {"registry", "flows", "routes", "lowering"},
}
"""What the modules of a room may import of other rooms; an import never goes back."""

USERS = {"figures"}
"""Rooms that use the package as anyone does: by what it exports, beside the tables they name."""

DOORS = {"__init__", "__main__", "cli"}
"""Where the rooms meet: these may import all of them."""

PUBLIC = "public.py"
"""The door of a room: the functions that the package exports of it, which take what callers have.

It may import all rooms, and none may import it."""

MOST_ROOMS = 3
"""Rooms that may have a file of the same name."""

ROLES = {"Alltoall", "Endpoint", "StreamsEndpoint", "ByLibrary", "BySchedule"}
"""Classes that each runtime has in a module of its own, under the same name: the module chooses."""

TWINS = {
    *("Answer", "Asked", "Cables", "Choice", "Chunks", "Command", "Entry", "Fabric", "Family"),
    *("Place", "Ranks", "Report", "Row", "Search", "_Negotiation"),
}
"""Names that two rooms still give to different classes; none may be added."""

APART = (("ir", "ir/files"), ("lowering/programs", "lowering/tables"))
"""Folders within a room that never import each other: the files of the first, not its folders."""

OWNERS = {
    "highspy": "lp/highs.py",
    "gurobipy": "lp/gurobi.py",
    "clarabel": "lp/clarabel.py",
    "mpi4py": "runtime/mpi/library.py",
    "torch": "runtime/torch.py",
    "z3": "schedules/sccl.py",
    "distributed": "flows/workers.py",
    "pandas": "ir/files/artefacts.py",
    "matplotlib": "figures/drawing.py",
}
"""Solvers and optional dependencies, each imported in exactly one file."""

DOOR, BEHIND = PACKAGE / "ir/noun.py", {"artefacts", "drawing"}
"""Where nouns reach their files, and which: imported when a noun is saved, drawn or tabulated."""

HEAVY = ("scipy", "networkx", "igraph", "highspy")
"""What neither a checker nor a rank may load: it takes a second and a hundred megabytes."""

EVIDENCE = ("alltoall.check", "alltoall.ir", "alltoall.errors", "numpy")
"""What a checker may import besides the standard library."""


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted name of every module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    """Return the room that a file is in: its folder, or itself."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def module_of(name: str) -> Path | None:
    """Return the file that an imported name of alltoall lives in."""
    base = PACKAGE.joinpath(*name.split(".")[1:])
    found = [base / "__init__.py", base.with_suffix(".py"), base.parent / "__init__.py"]
    found.append(base.parent.with_suffix(".py"))
    return next((each for each in found if each.is_file()), None)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_way_of_the_data(path: Path) -> None:
    """A room is known, imports only rooms before it, and a dependency has one owner."""
    here, room = str(path.relative_to(PACKAGE)), room_of(path)
    assert room in ROOMS or room in DOORS, f"{here}: {room} is no room of the house"
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "alltoall" and room in ROOMS and path.name != PUBLIC:
            assert rest or room in USERS, f"{here} imports the whole package"
        if top == "alltoall" and rest and room in ROOMS and path.name != PUBLIC:
            assert rest[0] in ROOMS[room] | {room}, f"{here} imports {name}"
            assert "public" not in rest, f"{here} imports {name}"
        assert OWNERS.get(top, here) == here, f"{here} imports {name}"


@pytest.mark.parametrize(("one", "other"), [*APART, APART[1][::-1]])
def test_folders_that_stay_apart(one: str, other: str) -> None:
    """Nouns do not know their files, and programs not the tables."""
    within = (PACKAGE / one).glob("*.py") if one == "ir" else (PACKAGE / one).rglob("*.py")
    for path in within:
        for name in imports(path):
            found = module_of(name) if name.startswith("alltoall.") else None
            assert found is None or not found.is_relative_to(PACKAGE / other), f"{path}: {name}"


def test_nouns_reach_their_files_through_one_door() -> None:
    """Besides imports there is one function that opens a module of ir/files, named when called."""
    for path in (PACKAGE / "ir").glob("*.py"):
        assert path == DOOR or "ir.files" not in path.read_text(), f"{path} knows ir/files"
    calls = [node for node in ast.walk(ast.parse(DOOR.read_text())) if isinstance(node, ast.Call)]
    opened = [node.args[0] for node in calls if ast.unparse(node.func) == "_file_form"]
    assert {each.value for each in opened if isinstance(each, ast.Constant)} == BEHIND
    assert all((PACKAGE / f"ir/files/{each}.py").is_file() for each in BEHIND)


@pytest.mark.parametrize("path", sorted((PACKAGE / "check").rglob("*.py")), ids=lambda p: p.stem)
def test_the_checkers_import_no_producer(path: Path) -> None:
    """What makes a check evidence: it shares no code with what it checks."""
    for name in imports(path):
        top = name.split(".")[0]
        assert top in sys.stdlib_module_names or name.startswith(EVIDENCE), f"{path}: {name}"


def test_class_names_are_unique() -> None:
    """One name, one meaning."""
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                here = f"{path.relative_to(PACKAGE)}:{node.lineno}"
                places.setdefault(node.name, []).append(here)
    known = ROLES | TWINS
    assert {
        key: found for key, found in places.items() if len(found) > 1 and key not in known
    } == {}


def test_file_names_differ_between_rooms() -> None:
    """A name such as `jobs.py` is in at most three rooms, whose noun it shares."""
    rooms: dict[str, set[str]] = {}
    for path in MODULES:
        if path.name not in ("__init__.py", PUBLIC):
            rooms.setdefault(path.name, set()).add(room_of(path))
    assert {name: found for name, found in rooms.items() if len(found) > MOST_ROOMS} == {}


def test_no_circles() -> None:
    """The modules have an order in which each imports only those before it."""
    graph = {
        path: {module_of(each) for each in imports(path) if "alltoall." in each} for path in MODULES
    }
    known = {
        path: {each for each in found if each not in (None, path)} for path, found in graph.items()
    }
    list(TopologicalSorter(known).static_order())


@pytest.mark.parametrize(
    "module",
    [
        "alltoall.check.flow",
        "alltoall.runtime.worker",
        "alltoall.workloads.ranks",
        "alltoall.workloads.fft3d",
        "alltoall.workloads.moe",
        "alltoall.cli.run, alltoall.cli.testbed, alltoall.cli.verify, alltoall.cli.wrap",
    ],
)
def test_checkers_and_ranks_are_light(module: str) -> None:
    """They load no solver and no compiler: a rank starts at once, and a check needs no trust.

    Nor do the verbs that start ranks, or check.
    """
    program = f"import {module}, sys; print([each for each in {HEAVY} if each in sys.modules])"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"


def test_a_verb_loads_nothing_to_draw_with() -> None:
    """Of what igraph draws with, and of graphs that nobody gave, a call loads nothing."""
    unused = ("igraph", "matplotlib", "networkx")
    program = (
        "import sys; from alltoall.cli.app import run; run(['solve', 'hypercube:2'])\n"
        f"print([each in sys.modules for each in {unused}])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.splitlines()[-1] == "[False, False, False]"


def test_verbs_need_no_extra() -> None:
    """Every verb can be asked where nothing optional is installed: what it needs, it says then."""
    extras = [name for name in OWNERS if name != "highspy"]
    modules = {
        where.partition(":")[0]
        for name, verb in verbs.VERBS.items()
        for where in map(verb.where, (name, *verb.parts))
    }
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({extras}))\n"
        f"import importlib; [importlib.import_module(each) for each in {sorted(modules)}]"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stderr


def test_public_names_are_what_is_exported() -> None:
    """`__all__` is sorted, and every name of it is there and is listed."""
    assert alltoall.__all__ == sorted(alltoall.__all__)
    assert set(alltoall.__all__) <= set(dir(alltoall))
    for name in alltoall.__all__:
        assert getattr(alltoall, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'solve_flow'"):
        alltoall.__getattr__("solve_flow")


def test_checkers_of_types_see_what_is_exported() -> None:
    """What the package tells them is what it does when a name is used."""
    stub = ast.parse(Path(alltoall.__file__).with_suffix(".pyi").read_text())
    told = {
        (node.module, alias.name, alias.asname)
        for node in stub.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert told == {(module, name, name) for name, module in alltoall._MODULE_OF.items()}


def test_a_name_loads_no_more_than_it_needs() -> None:
    """The package loads nothing of itself, and a noun no solver."""
    program = (
        "import sys, alltoall; print([each for each in sys.modules if 'alltoall.' in each]);"
        f"alltoall.Topology; print([each for each in {HEAVY} if each in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert found.stdout.split("\n")[:2] == ["[]", "[]"]


EXAMPLES = [path for path in MODULES if ">>> " in path.read_text()]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_the_examples_in_docstrings_are_true(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a docstring shows is what a user gets, with the MPI of this environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    name = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
    failed, tried = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert tried > 0
    assert failed == 0


VERBS = (
    *("solve", "route", "schedule", "lower", "simulate", "run", "verify", "load"),
    *("describe", "design", "topology", "problem", "fft3d", "moe", "report", "reproduce"),
)


@pytest.mark.parametrize("name", VERBS)
def test_every_function_of_the_library_has_an_example_and_words_for_its_arguments(
    name: str,
) -> None:
    """Keyword-only but for a method or target, typed, each described, and shown at work."""
    function = getattr(alltoall, name)
    first, *others = inspect.signature(function).parameters.values()
    text = inspect.getdoc(function) or ""
    assert first.kind is first.POSITIONAL_OR_KEYWORD
    for each in others:
        assert each.kind is each.KEYWORD_ONLY or each.name in ("method", "to")
        assert each.annotation is not each.empty
        assert f"{each.name}:" in text or f"`{each.name}`" in text, f"{name}: {each.name}"
    assert ">>> " in text
