"""`alltoall solve`, `route` and `schedule`: one verb, for three public functions."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import Any

import typer

import alltoall
from alltoall.cli.options import VerbCall, option, options_of, with_parameters
from alltoall.cli.outputs import check_outputs
from alltoall.cli.progress import progress
from alltoall.cli.ranks import in_a_team
from alltoall.cli.show import deliver
from alltoall.cli.signals import searching
from alltoall.cli.wording import lines_of_answer
from alltoall.ir.noun import Provenance
from alltoall.ir.summaries import summary_of
from alltoall.registry import deferred
from alltoall.topologies.given import Answer
from alltoall.topologies.public import topology

CONVERT_FIRST = ("given", "format", "undirected", "capacity_attribute", "set_capacities")
"""Changes that only `alltoall topology` makes."""

CHANGES = [each for each in options_of(topology) if each.name not in CONVERT_FIRST]

file_bytes: Callable[..., bytes] = deferred("alltoall.ir.files.artefacts:file_bytes")


def _verb_of(function: Callable[..., Answer]) -> Callable[..., None]:
    """Return the verb of a function that answers a problem."""
    own = list(options_of(function))
    keywords = {each.name for each in own}
    parts = in_a_team if function is alltoall.solve else nullcontext

    def verb(context: typer.Context, **given: Any) -> None:
        call = VerbCall(context, given)
        check_outputs(context)
        network = topology(given["given"], **{each.name: given[each.name] for each in CHANGES})
        asked = {key: given[key] for key in keywords} | {"given": network}
        with progress() as report, searching() as stopped, parts() as team:
            answer = function(**asked, **(team or {}), progress=report, stop=stopped)
        _tell(answer, call)

    printed = [option(keyword, function.__name__, None) for keyword in ("output", "json")]
    return with_parameters(
        verb, [*own, *printed, *CHANGES], inspect.getdoc(inspect.unwrap(function)) or ""
    )


def _tell(answer: Answer, call: VerbCall) -> None:
    """Save an answer with its command, and print its summary."""
    summary = {**summary_of(answer), "seconds": call.seconds}
    output = call.path("output")
    provenance = replace(
        answer.provenance or Provenance(), command=call.command, seed=call.given["seed"]
    )
    made = replace(answer, provenance=provenance)
    files = {output: partial(file_bytes, output, made, True)}
    deliver(summary, call.json, lines_of_answer(summary), files)


def __getattr__(name: str) -> Callable[..., None]:
    """Return the verb of a public function, which is imported only now."""
    if name not in ("solve_verb", "route_verb", "schedule_verb"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _verb_of(getattr(alltoall, name.removesuffix("_verb")))
