"""Topologies by name: `build` reads a SPEC and builds a member of one of the `FAMILIES`.

A SPEC is `family:arguments`, the arguments separated by commas and each either a value, which
takes the next parameter, or `parameter=value`::

    torus:3x3x3    genkautz:n=64,d=4    genkautz:64,4,rewire=true    dgx1

A value that is a SPEC of several arguments itself stands in parentheses.
"""

import inspect
import re
import reprlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, get_type_hints

from alltoall.errors import UsageError
from alltoall.ir.quantities import bytes_per_second
from alltoall.registry import load
from alltoall.topologies.families import FAMILIES, Family, unknown_family

if TYPE_CHECKING:
    from alltoall.ir.topology import Topology


def build(spec: str) -> "Topology":
    """Build the topology of a SPEC, as the module describes it; `read_topology` reads files."""
    name, _, text = str(spec).strip().partition(":")
    if name not in FAMILIES:
        if Path(name).suffix or "/" in name:
            raise UsageError(
                f"{reprlib.repr(name)} is written like a file, which `alltoall.topology` reads; "
                f"expected a family: {', '.join(FAMILIES)}"
            )
        raise UsageError(unknown_family(name))
    family = FAMILIES[name]
    words, kinds = _match_parameters(family, _tokens(text)), get_type_hints(family.build)
    values = {key: _convert(family, key, word, kinds.get(key)) for key, word in words.items()}
    built = family.build(**values)
    kind: type = load("alltoall.ir.topology:Topology")
    if not isinstance(built, kind):
        raise _misuse(family, f"built a {type(built).__name__}, expected a Topology")
    return in_unit(built, family.unit)


def in_unit(topology: "Topology", unit: str | None) -> "Topology":
    """Set the rate of a link of capacity 1, if given."""
    return topology if unit is None else replace(topology, bytes_per_second=bytes_per_second(unit))


def sized(spec: str, terminals: int) -> str:
    """Add the number of terminals to a SPEC without its family's parameter `n`."""
    name, _, text = spec.strip().partition(":")
    if name not in FAMILIES:
        return spec
    parameters, tokens = list(inspect.signature(FAMILIES[name].build).parameters), _tokens(text)
    by_position = next((at for at, token in enumerate(tokens) if "=" in token), len(tokens))
    given = {token.partition("=")[0].strip() for token in tokens} | set(parameters[:by_position])
    if "n" not in parameters or "n" in given:
        return spec
    return f"{name}:{','.join([*tokens, f'n={terminals}'])}"


def _tokens(text: str) -> list[str]:
    """Cut the arguments of a SPEC at its commas, but not within parentheses."""
    return _COMMA.split(text) if text else []


def _match_parameters(family: Family, tokens: list[str]) -> dict[str, str]:
    """Assign every token to a parameter, by name or by position."""
    parameters = inspect.signature(family.build).parameters
    words: dict[str, str] = {}
    for token, name in zip(tokens, [*parameters, *[""] * len(tokens)], strict=False):
        key, named, value = (part.strip() for part in token.partition("="))
        if not named:
            key, value = name, key
        if key not in parameters:
            surplus = key if named else value
            raise _misuse(family, f"unknown parameter {reprlib.repr(surplus)}")
        if key in words:
            raise _misuse(family, f"parameter {key!r} is given twice")
        words[key] = value
    for key, parameter in parameters.items():
        if key not in words and parameter.default is parameter.empty:
            raise _misuse(family, f"parameter {key!r} is missing")
    return words


def _convert(family: Family, key: str, word: str, kind: object) -> object:
    if kind not in SPEC_KINDS:
        raise _misuse(family, f"parameter {key!r} is of a type that no SPEC can give")
    convert, expected = SPEC_KINDS[kind]
    try:
        return convert(word)
    except (ValueError, KeyError):
        problem = f"parameter {key!r} is {reprlib.repr(word)}, expected {expected}"
        raise _misuse(family, problem) from None


def _misuse(family: Family, problem: str) -> UsageError:
    name = family.example.partition(":")[0]
    parameters = inspect.signature(family.build).parameters.values()
    words = [one.name if one.default is one.empty else f"[{one.name}]" for one in parameters]
    listed = f"parameters: {', '.join(words) or 'none'} (for example {family.example})"
    return UsageError(f"{name}: {problem}; {listed}")


def _parse_int(word: str) -> int:
    # int() also takes spaces, underscores and other scripts' digits, and fails on long numbers.
    if not re.fullmatch(r"-?[0-9]{1,18}", word):
        raise ValueError(word)
    return int(word)


_COMMA = re.compile(r",(?![^(]*\))")
_WHOLE = "a whole number"
SPEC_KINDS: dict[object, tuple[Callable[[str], object], str]] = {
    int: (_parse_int, _WHOLE),
    int | None: (_parse_int, _WHOLE),
    float: (float, "a number"),
    float | None: (float, "a number"),
    bool: ({"true": True, "false": False}.__getitem__, "true or false"),
    str: (str, "a word"),
    tuple[int, ...]: (
        lambda word: tuple(map(_parse_int, word.split("x"))),
        "whole numbers joined by x",
    ),
}
