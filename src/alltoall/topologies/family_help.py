"""Help on a family, without importing the module that builds it.

Types, defaults and the construction with its source are read from the text of the building
function, so help is fast and cannot disagree with the code.
"""

import ast
import inspect
import textwrap
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from alltoall.topologies.families import FAMILIES, Family
from alltoall.topologies.spec import SPEC_KINDS

WIDTH = 96
"""Columns to which help is filled."""

KINDS = {inspect.formatannotation(kind): words for kind, (_, words) in SPEC_KINDS.items()}
"""The words of a SPEC for each type of parameter."""


class _Parameter(NamedTuple):
    """A parameter: its type, and its default as in a SPEC, if it has one."""

    kind: str
    default: str | None


def family_help(name: str) -> str:
    """Return the help on a family: parameters, construction, source and example."""
    family = FAMILIES[name]
    parameters, docs = _read(family)
    words = [f"{key}=..." if p.default is None else f"[{key}=...]" for key, p in parameters.items()]
    rows = {key: _describe(family, key, parameter) for key, parameter in parameters.items()}
    width = max(map(len, rows), default=0) + 2
    lines = [f"  {key:<{width}}{text}" for key, text in rows.items()] or ["  none"]
    return "\n\n".join(
        (
            f"SPEC: {name}{':' if words else ''}{','.join(words)}",
            "\n".join(["Parameters:", *lines]),
            *(textwrap.fill(paragraph, WIDTH) for paragraph in docs.split("\n\n")),
            *([f"A link of capacity 1 carries {family.unit}."] if family.unit else []),
            f"Example: alltoall topology {family.example}",
        )
    )


def _describe(family: Family, key: str, parameter: _Parameter) -> str:
    kind = KINDS.get(parameter.kind, parameter.kind)
    kind += f", default {parameter.default}" if parameter.default else ""
    meaning = family.parameters.get(key)
    return f"{meaning} ({kind})" if meaning else kind


def summary_of(family: Family) -> str:
    """Return the first line of a builder's docstring, without "Build"."""
    first, _, _ = _read(family)[1].partition("\n")
    return first.removeprefix("Build ").removesuffix(".")


def _read(family: Family) -> tuple[dict[str, _Parameter], str]:
    """Return the parameters and docstring of a builder, without importing one of this room."""
    if not isinstance(family.builder, str):
        parameters = {
            key: _Parameter(
                inspect.formatannotation(each.annotation),
                None if each.default is each.empty else _format(each.default),
            )
            for key, each in inspect.signature(family.builder).parameters.items()
        }
        return parameters, inspect.getdoc(family.builder) or ""
    module, _, name = family.builder.partition(":")
    function = _functions(module)[name]
    taken, defaults = function.args.args, function.args.defaults
    values = [None] * (len(taken) - len(defaults)) + [_evaluate(value) for value in defaults]
    kinds = [ast.unparse(each.annotation) if each.annotation else "" for each in taken]
    names = (each.arg for each in taken)
    parameters = dict(zip(names, map(_Parameter, kinds, values), strict=True))
    return parameters, ast.get_docstring(function) or ""


@cache
def _functions(module: str) -> dict[str, ast.FunctionDef]:
    """Return the functions of a file of this room."""
    spec = find_spec(f"{__package__}.{module}")
    text = Path(spec.origin).read_text() if spec is not None and spec.origin else ""
    return {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}


def _evaluate(default: ast.expr) -> str:
    """Return a default as in a SPEC, or an empty text for a named constant."""
    try:
        return _format(ast.literal_eval(default))
    except ValueError:
        return ""


def _format(value: object) -> str:
    if isinstance(value, tuple):
        return "x".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
