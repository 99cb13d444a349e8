"""`alltoall reproduce`: measure the figures of the paper."""

from typing import Any

import typer

from alltoall.cli.options import VerbCall, as_verb, verb_of
from alltoall.cli.show import show
from alltoall.figures import FIGURES
from alltoall.figures.public import reproduce
from alltoall.figures.run import Reproduced


def _verb(context: typer.Context, **given: Any) -> None:
    if given["figure"] is not None:
        _measure(context=context, **given)
        return
    keys, width = ("name", "title", "source", "full"), max(map(len, FIGURES)) + 2
    listed = [{key: getattr(each, key) for key in keys} for each in FIGURES.values()]
    table = [
        f"{each.name:<{width}}{each.title}; {each.source}; in full about {each.full} on two cores"
        for each in FIGURES.values()
    ]
    show({"figures": listed}, given["json"], {"": table})


def _tell(made: tuple[Reproduced, ...], call: VerbCall) -> None:
    lines = {each.figure: _claims(each) for each in made}
    show({"figures": [each.to_json() for each in made]}, call.json, lines)


def _claims(made: Reproduced) -> list[str]:
    """Return the claims and files of a figure."""
    complete = (
        "" if made.complete else ", not complete, so no claim is judged: run it again to go on"
    )
    claims = [
        f"{each.verdict + ':':<21}{each.claim}: {each.measured}"
        + (f" ({each.reason})" if each.reason else "")
        for each in made.findings
    ]
    return [
        f"{made.title} ({made.size}{complete})",
        *claims,
        made.compared,
        f"files: {', '.join(made.files)}",
    ]


_measure = verb_of(reproduce, _tell, "json")
reproduce_verb = as_verb(_verb, reproduce, "json", figure=None)
