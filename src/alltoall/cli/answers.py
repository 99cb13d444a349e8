"""`alltoall solve`, `route` and `schedule`: one verb, for three public functions."""

import inspect
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import typer

import alltoall
from alltoall.cli.options import (
    AsJson,
    Output,
    Spec,
    option,
    options_of,
    parameter,
    with_parameters,
)
from alltoall.cli.progress import progress
from alltoall.cli.ranks import in_a_team
from alltoall.cli.signals import searching
from alltoall.cli.telling import check_outputs, tell
from alltoall.ir.schedule import Schedule
from alltoall.registry import load
from alltoall.settings import now
from alltoall.topologies.given import Answer
from alltoall.topologies.public import topology

CONVERT_FIRST = ("format", "undirected", "capacity_attribute", "set_capacities")
"""Changes that `alltoall topology` makes, once and for all."""

CHANGES = [each for each in options_of(topology) if each.name not in CONVERT_FIRST]


def _verb_of(function: Callable[..., Answer]) -> Callable[..., None]:
    """Return the verb of a function that answers a problem."""
    own = list(options_of(function))
    keywords = {each.name for each in own}
    parts = in_a_team if function is alltoall.solve else nullcontext

    def verb(context: typer.Context, **given: Any) -> None:
        started = now()
        check_outputs(context)
        network = topology(given["spec"], **{each.name: given[each.name] for each in CHANGES})
        asked = {key: given[key] for key in keywords}
        with progress() as report, searching() as stopped, parts() as team:
            answer = function(network, **asked, **(team or {}), progress=report, stop=stopped)
        tell(context, given, answer, started, _cost_of_a_step(answer, given))

    size = [] if "bytes" in keywords else [option("bytes")]
    parameters = [
        parameter("context", typer.Context, inspect.Parameter.empty),
        parameter("spec", Spec, inspect.Parameter.empty),
        *own,
        *size,
        parameter("output", Output, None),
        parameter("as_json", AsJson, False),
        *CHANGES,
    ]
    return with_parameters(verb, parameters, inspect.getdoc(function) or "")


def _cost_of_a_step(answer: Answer, given: dict[str, Any]) -> float:
    """Return what a step costs besides its time, with a share of what all messages cost."""
    if not isinstance(answer, Schedule):
        return 0.0
    rows = answer.learnt.get("tradeoff", ())
    chosen = next((each for each in rows if each["chosen"]), None)
    if chosen is None:
        shard_times = load("alltoall.schedules.public:shard_times")
        return float(shard_times(answer.problem, "latency", given["latency"], given["bytes"]))
    return float((chosen["total"] - chosen["time"]) / chosen["steps"])


def __getattr__(name: str) -> Callable[..., None]:
    """Return the verb of a public function, which is imported only now."""
    if name not in ("solve_verb", "route_verb", "schedule_verb"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _verb_of(getattr(alltoall, name.removesuffix("_verb")))
