"""`alltoall reproduce`: measure the figures of the paper."""

import inspect
from typing import Any

import typer

from alltoall.cli.options import VerbCall, options_of, verb_of, with_parameters
from alltoall.cli.show import show
from alltoall.figures import FIGURES
from alltoall.figures.figure import Finding
from alltoall.figures.public import reproduce
from alltoall.figures.run import Reproduced


def _verb(context: typer.Context, **given: Any) -> None:
    if given["figure"] is None:
        show({"figures": _listed()}, given["json"], {"": _table()})
    else:
        _measure(context=context, **given)


def _tell(made: tuple[Reproduced, ...], call: VerbCall) -> None:
    lines = {each.figure: _told(each) for each in made}
    show({"figures": [each.to_json() for each in made]}, call.json, lines)


def _told(made: Reproduced) -> list[str]:
    """Return the claims and files of a figure."""
    complete = (
        "" if made.complete else ", not complete, so no claim is judged: run it again to go on"
    )
    return [
        f"{made.title} ({made.size}{complete})",
        *(f"{each.verdict + ':':<21}{each.claim}: {_measured(each)}" for each in made.findings),
        made.compared,
        f"files: {', '.join(made.files)}",
    ]


def _measured(finding: Finding) -> str:
    return f"{finding.measured} ({finding.reason})" if finding.reason else finding.measured


def _listed() -> list[dict[str, str]]:
    return [
        {"name": each.name, "title": each.title, "source": each.source, "full": each.full}
        for each in FIGURES.values()
    ]


def _table() -> list[str]:
    width = max(map(len, FIGURES)) + 2
    return [
        f"{each.name:<{width}}{each.title}; {each.source}; in full about {each.full} on two cores"
        for each in FIGURES.values()
    ]


_measure = verb_of(reproduce, _tell, "json")
reproduce_verb = with_parameters(
    _verb, [*options_of(reproduce, "json", figure=None)], inspect.getdoc(reproduce) or ""
)
