"""What a family is and takes, in words, told without importing what builds it.

Types, defaults and the construction with its source are read from the text of the building
function, so that help takes no longer than to read it and cannot disagree with the code.
"""

import ast
import inspect
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from alltoall.topologies.families import FAMILIES, Family

WIDTH = 96
"""Columns that help is filled to."""

KINDS = {
    "int": "a whole number",
    "int | None": "a whole number",
    "float": "a number",
    "float | None": "a number",
    "bool": "true or false",
    "str": "a word",
    "tuple[int, ...]": "numbers joined by x",
}
"""What a SPEC has for each type of parameter."""


class _Builder(NamedTuple):
    """What the text of a building function says: types and defaults by parameter, and its docs."""

    kinds: dict[str, str]
    defaults: dict[str, str]
    docs: str


def family_help(name: str) -> str:
    """Return the help on a family: what it is, its parameters, how it is built and from where."""
    family = FAMILIES[name]
    builder = _written(family.builder) if isinstance(family.builder, str) else _loaded(family)
    rows = {key: _described(family, builder, key) for key in builder.kinds}
    width = max(map(len, rows), default=0) + 2
    taken = [f"  {key:<{width}}{text}" for key, text in rows.items()] or ["  none"]
    docs = [textwrap.fill(each, WIDTH) for each in builder.docs.split("\n\n")]
    return "\n\n".join(
        (
            f"SPEC: {_pattern(name, builder)}",
            "\n".join(["Parameters:", *taken]),
            *docs,
            *([f"A link of capacity 1 carries {family.unit}."] if family.unit else []),
            f"Example: alltoall topology {family.example}",
        )
    )


def _pattern(name: str, builder: _Builder) -> str:
    """Return how a SPEC of the family is written."""
    words = [f"[{key}=...]" if key in builder.defaults else f"{key}=..." for key in builder.kinds]
    return f"{name}:{','.join(words)}" if words else name


def _described(family: Family, builder: _Builder, key: str) -> str:
    """Return what a parameter means, what it may be, and what it is if nothing is said."""
    kind, default = builder.kinds[key], builder.defaults.get(key)
    said = KINDS.get(kind, kind) + (f", {default} if not said" if default else "")
    meaning = family.parameters.get(key)
    return f"{meaning} ({said})" if meaning else said


def _written(where: str) -> _Builder:
    """Read a building function of this room from its file, which is not imported."""
    module, _, function = where.partition(":")
    spec = find_spec(f"{__package__}.{module}")
    text = Path(spec.origin).read_text() if spec is not None and spec.origin else ""
    found = next(
        each
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef) and each.name == function
    )
    taken = found.args.args
    defaults = [None] * (len(taken) - len(found.args.defaults)) + list(found.args.defaults)
    return _Builder(
        {each.arg: ast.unparse(each.annotation) if each.annotation else "" for each in taken},
        {
            each.arg: _value(default)
            for each, default in zip(taken, defaults, strict=True)
            if default is not None
        },
        ast.get_docstring(found) or "",
    )


def _loaded(family: Family) -> _Builder:
    """Return the same of a function that somebody registered."""
    parameters = inspect.signature(family.build).parameters.values()
    return _Builder(
        {each.name: inspect.formatannotation(each.annotation) for each in parameters},
        {
            each.name: _spelled(each.default)
            for each in parameters
            if each.default is not each.empty
        },
        inspect.getdoc(family.build) or "",
    )


def _value(default: ast.expr) -> str:
    """Return a default as a SPEC has it, or nothing if it is the name of something."""
    try:
        return _spelled(ast.literal_eval(default))
    except ValueError:
        return ""


def _spelled(value: object) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
