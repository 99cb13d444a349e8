"""The folders import only what the design allows, and the package exports what it says."""

import ast
import doctest
from collections.abc import Iterator
from pathlib import Path

import pytest

import a2aflow

PACKAGE = Path(a2aflow.__file__).parent
INTERNAL = {
    "errors": set(),
    "automorphisms": {"errors", "ir"},
    "ir": {"errors", "ir"},
    "topologies": {"errors", "ir", "topologies"},
    "schedule": {"errors", "ir", "lp", "solve", "schedule"},
    "lower": {"errors", "ir", "lower", "topologies"},
    "lp": {"errors", "lp"},
    "solve": {"automorphisms", "errors", "ir", "lp", "solve"},
    "runtime": {"errors", "ir", "lower", "runtime"},
    "baselines": {"errors", "ir", "lp", "solve", "baselines"},
    "route": {"errors", "ir", "solve", "schedule", "baselines"},
}
"""What the modules of a folder may import of a2aflow; `cli` and the package itself may all."""

OWNERS = {
    "highspy": "lp/highs.py",
    "gurobipy": "lp/gurobi.py",
    "clarabel": "lp/clarabel.py",
    "mpi4py": "runtime/mpi.py",
    "torch": "runtime/torch_dist.py",
    "z3": "baselines/sccl.py",
    "distributed": "solve/workers.py",
}
"""Solvers and optional dependencies, each imported in exactly one file."""


def imports(path: Path) -> Iterator[str]:
    """Yield the dotted name of every module that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


MODULES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_follow_the_pipeline(path: Path) -> None:
    """A folder imports only the folders before it, and a dependency has one owner."""
    here = path.relative_to(PACKAGE)
    allowed = INTERNAL.get(here.parts[0].removesuffix(".py"))
    for name in imports(path):
        top, *rest = name.split(".")
        if top == "a2aflow" and allowed is not None:
            assert rest[0] in allowed, f"{here} imports {name}"
        assert OWNERS.get(top, str(here)) == str(here), f"{here} imports {name}"


def test_the_checkers_import_no_producer() -> None:
    """What makes a check evidence: it shares no code with what it checks."""
    for name in ("verify", "verify_schedule", "verify_routes", "verify_sums", "verify_symmetry"):
        found = set(imports(PACKAGE / "ir" / f"{name}.py"))
        assert all(
            each.startswith(("a2aflow.ir.", "a2aflow.errors.", "numpy")) or "." not in each
            for each in found
            if not each.startswith(("collections.", "dataclasses.", "functools.", "itertools."))
        )


def test_public_names_are_what_is_exported() -> None:
    """`__all__` is sorted, complete and importable."""
    assert a2aflow.__all__ == sorted(a2aflow.__all__)
    public = {name for name, value in vars(a2aflow).items() if _is_public(name, value)}
    assert public == set(a2aflow.__all__)


def _is_public(name: str, value: object) -> bool:
    return not name.startswith("_") and type(value).__name__ != "module"


def test_the_example_in_the_package_docstring_is_true() -> None:
    """What the docstring shows is what a user gets."""
    failed, tried = doctest.testmod(a2aflow)
    assert tried > 0
    assert failed == 0
