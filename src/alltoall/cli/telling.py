"""Print and save answers; no output replaces an input."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import typer

from alltoall.cli.options import command_of
from alltoall.cli.show import STANDARD_OUTPUT, deliver
from alltoall.cli.wording import lines_of_answer
from alltoall.errors import AlltoallError, UsageError
from alltoall.ir.fabric import Fabric
from alltoall.ir.noun import Provenance
from alltoall.ir.quantities import parse_size
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.summaries import in_order, physical, summary_of
from alltoall.ir.topology import Topology
from alltoall.registry import deferred
from alltoall.settings import now
from alltoall.topologies.formats import topology_text
from alltoall.topologies.given import Answer

load: Callable[[str | Path], object] = deferred("alltoall.loading:load")

OUTPUTS = ("output", "draw", "patch", "checkpoint")
"""Parameters that name files to write; all others may name files to read."""

RENEWABLE = (("output", "spec"), ("output", "from_"))
"""An output and an input that may be one file, if the verb could have written it."""

KINDS = {"topology": Topology, "route": Routes, "schedule": Schedule}
"""What verbs write that can be their input, too."""


def check_outputs(context: typer.Context) -> None:
    """Raise if outputs share standard output, or if one would replace an input.

    A file as the verb writes it may be input and output at once.
    """
    given, kind = context.params, KINDS.get(context.info_name or "")
    outputs = {key: Path(given[key]) for key in OUTPUTS if given.get(key) is not None}
    printed = list(outputs.values()).count(STANDARD_OUTPUT)
    if printed > 1 or (printed and given["as_json"]):
        raise UsageError("more than one thing for standard output; give a file a name but -")
    for (name, output), (key, path) in product(outputs.items(), _inputs(given)):
        renewable = kind if (name, key) in RENEWABLE else None
        if _is_same_file(output, path) and not _holds(path, renewable):
            raise UsageError(
                f"{output} is an input, which the output would replace; name another file"
            )


def _inputs(given: Mapping[str, Any]) -> Iterator[tuple[str, str | Path]]:
    """Yield the name and value of every parameter that may be a file to read."""
    for key, value in given.items():
        if key not in OUTPUTS:
            values = value if isinstance(value, list | tuple) else (value,)
            yield from ((key, each) for each in values if isinstance(each, str | Path))


def _is_same_file(one: Path, other: str | Path) -> bool:
    """Return whether two paths lead to one file that exists."""
    with suppress(OSError, ValueError):
        return one.samefile(other)
    return False


def _holds(path: str | Path, kind: type | None) -> bool:
    """Return whether a file holds an artefact of a kind, if there is one, and no comments."""
    with suppress(AlltoallError, OSError, ValueError):
        found = kind is not None and load(path)
        if isinstance(found, Topology) and Path(path).suffix != ".json":
            return topology_text(found, Path(path)) == Path(path).read_text()
        return kind is not None and isinstance(found, kind)
    return False


file_bytes: Callable[..., bytes] = deferred("alltoall.ir.files.artefacts:file_bytes")


def tell(
    context: typer.Context,
    given: Mapping[str, Any],
    answer: Answer,
    started: float,
    step_latency: float = 0.0,
) -> None:
    """Save an answer with the command that it comes from, and print what sums it up."""
    size = None if given["bytes"] is None else parse_size(given["bytes"])
    rate = answer.problem.topology.bytes_per_second
    if size is not None and rate is None:
        raise UsageError(
            "--bytes without --link-bandwidth; add what a link of capacity 1 carries, such as "
            "100G, or give capacities their units in an edge list"
        )
    summary = in_order({**summary_of(answer), "seconds": round(now() - started, 3)})
    if rate is not None:
        fabric = Fabric(answer.problem.topology, rate)
        summary |= physical(answer, fabric, size, step_latency)
    made = _with_command(answer, command_of(context), given["seed"])
    output = given["output"]
    files = {output: partial(file_bytes, output, made, True)}
    deliver(summary, given["as_json"], lines_of_answer(summary), files)


def _with_command(answer: Answer, command: str, seed: int) -> Answer:
    """Return an answer whose provenance names the command in place of the function."""
    made = replace(answer.provenance or Provenance(), command=command, seed=seed)
    return replace(answer, provenance=made)
