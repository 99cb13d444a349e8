"""The tool that changes sources: its changes are real ones, and its list is about what is there."""

import ast
from pathlib import Path
from random import Random

from changes import changes_of

from mutants import PACKAGE, ROOT, Table, modules_of

SOURCE = '''
"""A docstring of 1 line."""
LIMIT: int = 3


def f(a: int, b: int = 2) -> int:
    """Return 1."""
    if not a < b and a > 0:
        raise ValueError(f"{a + 1} is wrong")
    a += 1
    for each in range(a):
        if each == 4:
            continue
    return zip([a], [-b], strict=True) if a else -a ** 2
'''


def test_every_change_is_another_program() -> None:
    """A change parses, and differs from the source in its tree."""
    before = ast.dump(ast.parse(SOURCE))
    changed = {ast.dump(ast.parse(each.apply(SOURCE))) for each in changes_of(SOURCE)}
    assert before not in changed
    assert len(changed) == len(changes_of(SOURCE))


def test_what_is_changed() -> None:
    """Operators, constants and statements are; docstrings, messages and guards are not."""
    names = {each.name for each in changes_of(SOURCE)}
    assert {"3 -> (4)", "a < b -> (a <= b)", "a += 1 -> a -= 1", "continue -> break"} <= names
    assert "not a < b and a > 0 -> (not a < b or a > 0)" in names
    assert 'raise ValueError(f"{a + 1} is wrong") -> pass' in names
    assert not any("strict=False" in name or name.startswith(('"', "a + 1")) for name in names)


def test_every_module_can_be_changed() -> None:
    """What is written in the place of a node always parses."""
    for module in modules_of([str(ROOT / PACKAGE)]):
        source = (ROOT / PACKAGE / module).read_text()
        chosen = changes_of(source)
        for change in Random(module).sample(chosen, min(5, len(chosen))):
            ast.parse(change.apply(source))


def test_the_list_of_equivalent_changes_is_about_this_source() -> None:
    """An entry whose line or change is gone is removed with it."""
    for entry in Table.read().equivalent:
        source = (ROOT / PACKAGE / entry["module"]).read_text()
        lines = source.splitlines()
        found = [
            each
            for each in changes_of(source)
            if lines[each.line - 1].strip() == entry["line"] and each.name == entry["change"]
        ]
        assert found, f"no such change: {entry}"


def test_every_module_has_tests() -> None:
    """What the table names exists."""
    table = Table.read()
    for module in modules_of([str(ROOT / PACKAGE)]):
        if Path(module).name != "__init__.py" and len(Path(module).parts) > 1:
            paths = [ROOT / each.partition("::")[0] for each in table.tests_of(module)]
            assert all(path.exists() for path in paths), module
