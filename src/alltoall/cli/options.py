"""Options as the parser takes them: from the signature of a public function, or shared by verbs."""

import inspect
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.ir.quantities import parse_seconds
from alltoall.options import OPTIONS, flag_of

Spec = Annotated[
    str,
    typer.Argument(
        metavar="SPEC",
        help="family:args, such as torus:3x3x3, or a file; `alltoall topology` lists families.",
        show_default=False,
    ),
]


def time_option(help_text: str, panel: str | None = None) -> Any:
    """Return an option that takes `2us`, `0.5ms`, or a plain number of seconds."""
    return typer.Option(metavar="TIME", help=help_text, rich_help_panel=panel, parser=parse_seconds)


AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Background = Annotated[
    str | None, typer.Option(metavar="FILE[@SHARE]", help=OPTIONS["background"].help)
]
LinkBandwidth = Annotated[
    str | None, typer.Option(metavar="RATE", help=OPTIONS["link_bandwidth"].help)
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        metavar="FILE",
        help="Save as JSON, or compactly as .npz; - is standard output.",
    ),
]


def options_of(function: Callable[..., Any]) -> Iterator[inspect.Parameter]:
    """Yield the options of a public function: its keywords that `OPTIONS` has, and defaults."""
    for keyword, parameter in inspect.signature(function).parameters.items():
        if keyword in OPTIONS:
            yield option(keyword, parameter.default)


def option(keyword: str, default: Any = None) -> inspect.Parameter:
    """Return the parameter of a verb that is one option."""
    about = OPTIONS[keyword]
    kind: Any = list[about.kind] if about.many else about.kind  # type: ignore[name-defined]
    if about.kind is str and isinstance(default, int | float):
        default = f"{default:g}"
    if default is None:
        kind = kind | None
    typed = Annotated[
        kind, typer.Option(flag_of(keyword), metavar=about.metavar or None, help=about.help)
    ]
    return parameter(keyword, typed, default)


def parameter(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    """Return a parameter by keyword."""
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
    )


def with_parameters(
    verb: Callable[..., None], parameters: list[inspect.Parameter], about: str
) -> Callable[..., None]:
    """Give a verb that takes any keywords the parameters that the parser shall see."""
    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {each.name: each.annotation for each in parameters}
    verb.__doc__ = about
    return verb


def command_of(context: typer.Context) -> str:
    """Return the words of a call as a shell takes them; `app` left them here."""
    return shlex.join(("alltoall", *context.obj))
