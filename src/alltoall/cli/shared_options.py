"""`takes_options`: a verb's parameters `topology`, `asked` and `telling` become options."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from alltoall.cli.options import asked_settings, chosen_topology
from alltoall.cli.telling import asked_telling
from alltoall.errors import UsageError
from alltoall.ir.topology import Topology

SHARED: dict[str, Callable[..., Any]] = {
    "topology": chosen_topology,
    "asked": asked_settings,
    "telling": asked_telling,
}
"""The functions that make these parameters of a verb, from the options that they take."""


def takes_options(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a verb the options of each shared parameter that it has, less those named.

    The SPEC comes first, and may be left out if `topology` has a default. Options of a search come
    before `demand`, those of the output after the verb's own, and changes of the topology last.
    """

    def decorated(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb).parameters
        options = {
            name: {
                key: each
                for key, each in inspect.signature(make).parameters.items()
                if key not in without
            }
            for name, make in SHARED.items()
            if name in own
        }

        @wraps(verb)
        def wrapper(**given: Any) -> None:
            made = {name: {key: given[key] for key in options[name]} for name in options}
            kept = {key: given[key] for key in own if key not in SHARED}
            topology = _topology_or_none(made.pop("topology"))
            shared = {name: SHARED[name](**chosen) for name, chosen in made.items()}
            if "telling" in shared:
                shared["telling"] = shared["telling"].on(topology)
            verb(topology=topology, **shared, **kept)

        spec, *changes = options["topology"].values()
        parameters = [spec.replace(default=own["topology"].default)]
        for key, each in own.items():
            parameters += options.get("asked", {}).values() if key == "demand" else ()
            parameters += () if key in SHARED else (each,)
        told = options.get("telling", {})
        parameters += [each for key, each in told.items() if key not in own]
        return _with_parameters(wrapper, [*parameters, *changes])

    return decorated


def _with_parameters(
    wrapper: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Return a function that says that it has these parameters, by keyword."""
    by_keyword = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in parameters]
    wrapper.__signature__ = inspect.Signature(by_keyword)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {each.name: each.annotation for each in parameters}
    return wrapper


def _topology_or_none(chosen: dict[str, Any]) -> Topology | None:
    if chosen["spec"] is not None:
        return chosen_topology(**chosen)
    if any(chosen.values()):
        raise UsageError("options that change a topology, but no SPEC; name one to change")
    return None
