"""Topologies by name: the `FAMILIES`, and `build`, which reads a SPEC.

A SPEC is `family:arguments`, the arguments separated by commas and each either a value, which
takes the next parameter, or `parameter=value`::

    torus:3x3x3    genkautz:n=64,d=4    genkautz:64,4,rewire=true    dgx1
"""

import difflib
import inspect
import re
import reprlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import get_type_hints

from a2aflow.errors import UsageError
from a2aflow.ir.topology import Topology
from a2aflow.topologies import (
    algebraic,
    digraphs,
    expanders,
    grids,
    hardware,
    hierarchical,
)


@dataclass(frozen=True)
class Family:
    """A family of topologies: the function that builds a member, and the SPEC of one."""

    build: Callable[..., Topology]
    example: str


FAMILIES: dict[str, Family] = {
    "ring": Family(grids.ring, "ring:6"),
    "mesh": Family(grids.mesh, "mesh:3x4"),
    "torus": Family(grids.torus, "torus:3x3x3"),
    "hypercube": Family(grids.hypercube, "hypercube:3"),
    "twisted-hypercube": Family(grids.twisted_hypercube, "twisted-hypercube:3"),
    "hyperx": Family(grids.hyperx, "hyperx:3x3"),
    "circulant": Family(digraphs.circulant, "circulant:n=16,jumps=1x3"),
    "debruijn": Family(digraphs.debruijn, "debruijn:d=2,k=3"),
    "kautz": Family(digraphs.kautz, "kautz:d=2,k=3"),
    "genkautz": Family(digraphs.genkautz, "genkautz:n=64,d=4"),
    "jellyfish": Family(expanders.jellyfish, "jellyfish:n=64,d=4,seed=1"),
    "xpander": Family(expanders.xpander, "xpander:n=60,d=4,seed=1"),
    "slimfly": Family(algebraic.slimfly, "slimfly:q=5"),
    "spectralfly": Family(algebraic.spectralfly, "spectralfly:p=3,q=5"),
    "complete": Family(hierarchical.complete, "complete:8"),
    "bipartite": Family(hierarchical.bipartite, "bipartite:4x4"),
    "dragonfly": Family(hierarchical.dragonfly, "dragonfly:a=4,h=2"),
    "fattree": Family(hierarchical.fattree, "fattree:k=4"),
    "dgx1": Family(hardware.dgx1, "dgx1"),
    "ndv2": Family(hardware.ndv2, "ndv2"),
    "dgx2": Family(hardware.dgx2, "dgx2"),
    "tpuv4": Family(hardware.tpuv4, "tpuv4:4x4x8,twisted=true"),
}


def build(spec: str) -> Topology:
    """Build the topology that `spec` names; see the module for how it is written.

    A file of a topology is read by `read_topology`.
    """
    name, _, text = str(spec).strip().partition(":")
    if name not in FAMILIES:
        if Path(name).suffix or "/" in name:
            raise UsageError(
                f"{reprlib.repr(name)} is written like a file, which `read_topology` reads; "
                f"expected a family: {', '.join(FAMILIES)}"
            )
        raise UsageError(_unknown_family(name))
    family = FAMILIES[name]
    words = _match_parameters(family, text.split(",") if text else [])
    kinds = get_type_hints(family.build)
    values = {key: _convert(family, key, word, kinds[key]) for key, word in words.items()}
    return family.build(**values)


def _unknown_family(name: str) -> str:
    close = difflib.get_close_matches(name, FAMILIES, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    return f"unknown topology family {reprlib.repr(name)}; {hint}families: {', '.join(FAMILIES)}"


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
    convert, expected = _KINDS[kind]
    try:
        return convert(word)
    except ValueError:
        raise _misuse(
            family, f"parameter {key!r} is {reprlib.repr(word)}, expected {expected}"
        ) from None


def _misuse(family: Family, problem: str) -> UsageError:
    name = family.example.partition(":")[0]
    parameters = inspect.signature(family.build).parameters.values()
    listed = ", ".join(
        one.name if one.default is one.empty else f"[{one.name}]" for one in parameters
    )
    return UsageError(
        f"{name}: {problem}; parameters: {listed or 'none'} (for example {family.example})"
    )


def _whole(word: str) -> int:
    # int() also takes spaces, underscores and other scripts' digits, and fails on long numbers.
    if not re.fullmatch(r"-?[0-9]{1,18}", word):
        raise ValueError(word)
    return int(word)


def _wholes(word: str) -> tuple[int, ...]:
    return tuple(map(_whole, word.split("x")))


def _truth(word: str) -> bool:
    if word not in ("true", "false"):
        raise ValueError(word)
    return word == "true"


_WHOLE = "a whole number of at most 18 digits"
_KINDS: dict[object, tuple[Callable[[str], object], str]] = {
    int: (_whole, _WHOLE),
    int | None: (_whole, _WHOLE),
    float: (float, "a number"),
    bool: (_truth, "true or false"),
    str: (str, "a word"),
    tuple[int, ...]: (_wholes, "whole numbers joined by x, such as 3x3x3"),
}
