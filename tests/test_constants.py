"""Constants are explained, and the sizes stand in one table."""

import ast
from pathlib import Path

import alltoall
from alltoall.flows import sizes

PACKAGE = Path(alltoall.__file__).parent

ROOMS = ("flows", "routes", "schedules", "paths")
"""The rooms that search, each with limits of its own."""


def constants(path: Path) -> dict[str, bool]:
    """Return the constants of a module, and whether each has a docstring."""
    body = ast.parse(path.read_text()).body
    found: dict[str, bool] = {}
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.Assign):
            targets: list[ast.expr] = statement.targets
        elif isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        else:
            continue
        told = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
        for target in targets:
            each = target.elts if isinstance(target, ast.Tuple) else [target]
            names = (name.id for name in each if isinstance(name, ast.Name))
            found |= {name: told for name in names if name.isupper() and not name.startswith("_")}
    return found


def test_constants_say_what_they_limit() -> None:
    """Each constant of these rooms is explained."""
    for path in sorted(each for room in ROOMS for each in (PACKAGE / room).rglob("*.py")):
        for name, told in constants(path).items():
            assert told, f"{path.relative_to(PACKAGE)}: {name} has no docstring"


def test_all_sizes_stand_in_the_table() -> None:
    """The table has a row for each size at which another way pays, and each size is used."""
    assert sizes.__doc__ is not None
    code = "".join(path.read_text() for room in ROOMS for path in (PACKAGE / room).rglob("*.py"))
    for name in constants(Path(sizes.__file__)):
        assert f"`{name}`" in sizes.__doc__, f"{name} has no row"
        assert f"sizes.{name}" in code, f"{name} is never used"
