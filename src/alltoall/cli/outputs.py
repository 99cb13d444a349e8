"""Checks of output files: none replaces an input, and one at most goes to standard output."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import typer

from alltoall.cli.show import STANDARD_OUTPUT
from alltoall.errors import AlltoallError, UsageError
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.registry import deferred
from alltoall.topologies.formats import topology_text

load: Callable[[str | Path], object] = deferred("alltoall.loading:load")

OUTPUTS = ("output", "draw", "patch", "checkpoint")
"""Parameters that name files to write; the others may name files to read."""

RENEWABLE = (("output", "given"), ("output", "from_"))
"""Pairs of output and input that may be one file, if the verb could have written it."""

KINDS = {"topology": Topology, "route": Routes, "schedule": Schedule}
"""What each verb writes that it can also read."""


_SIGNS = re.compile("[@=,+]")
"""What separates a file from other parts of a word."""

SAVING = ("solve", "route", "schedule")
"""Verbs that save answers."""


def check_outputs(context: typer.Context) -> None:
    """Raise if outputs share standard output or replace an input, or if a suffix says another kind.

    A file as the verb writes it may be input and output at once.
    """
    given, kind = context.params, KINDS.get(context.info_name or "")
    outputs = {key: Path(given[key]) for key in OUTPUTS if given.get(key) is not None}
    printed = list(outputs.values()).count(STANDARD_OUTPUT)
    if printed > 1 or (printed and given["json"]):
        raise UsageError("more than one thing for standard output; give a file a name but -")
    for (name, output), (key, path) in product(outputs.items(), _inputs(given)):
        renewable = kind if (name, key) in RENEWABLE else None
        if _is_same_file(output, path) and not _holds(path, renewable):
            raise UsageError(
                f"{output} is an input, which the output would replace; name another file"
            )
    output = outputs.get("output", STANDARD_OUTPUT)
    if context.info_name in SAVING and output.suffix.lower() in (".csv", ".svg", ".html"):
        raise UsageError(
            f"{output}: an answer is saved as JSON, or compact as .npz; expected a file name that "
            "ends so (compare writes tables, report pages)"
        )
    draw = outputs.get("draw", STANDARD_OUTPUT)
    if draw != STANDARD_OUTPUT and draw.suffix.lower() != ".svg":
        raise UsageError(f"{draw}: drawings are SVG; expected a file name that ends in .svg")


def _inputs(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the name and value of every parameter that may be a file to read.

    A file may be part of a word: `@FILE`, `FILE@SIZE`, `robust:demands=FILE`.
    """
    for key, value in given.items():
        if key not in OUTPUTS:
            values = value if isinstance(value, list | tuple) else (value,)
            words = [str(each) for each in values if isinstance(each, str | Path)]
            yield from ((key, part) for word in words for part in (word, *_SIGNS.split(word)))


def _is_same_file(one: Path, other: str) -> bool:
    """Return whether two paths lead to one file that exists."""
    with suppress(OSError, ValueError):
        return one.samefile(other)
    return False


def _holds(path: str, kind: type | None) -> bool:
    """Return whether a file holds an artefact of a kind, and no comments."""
    with suppress(AlltoallError, OSError, ValueError):
        found = kind is not None and load(path)
        if isinstance(found, Topology) and Path(path).suffix != ".json":
            return topology_text(found, Path(path)) == Path(path).read_text()
        return kind is not None and isinstance(found, kind)
    return False
