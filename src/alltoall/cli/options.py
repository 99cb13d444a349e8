"""Verbs from public functions: the keywords of a function are the options of its verb."""

import inspect
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer

from alltoall.cli.outputs import check_outputs
from alltoall.cli.progress import progress
from alltoall.cli.signals import searching
from alltoall.options import flag_of, option_of
from alltoall.settings import now

CONTEXTS: dict[str, Callable[[], Any]] = {"progress": progress, "stop": searching}
"""Contexts for the `progress` and `stop` keywords of a function."""


@dataclass(frozen=True)
class VerbCall:
    """A call of a verb: the parsed words by keyword, and its start time."""

    context: typer.Context
    given: dict[str, Any]
    started: float = field(default_factory=now)

    @property
    def command(self) -> str:
        """The command line, quoted for a shell."""
        return shlex.join(("alltoall", *self.context.obj))

    @property
    def json(self) -> bool:
        """Whether to print one JSON object."""
        return bool(self.given["json"])

    @property
    def seconds(self) -> float:
        """Seconds since the call began."""
        return round(now() - self.started, 3)

    def path(self, keyword: str) -> Path | None:
        """Return the file that an option names."""
        found = self.given[keyword]
        return None if found is None else Path(found)


def verb_of(
    function: Callable[..., Any],
    tell: Callable[[Any, VerbCall], None],
    *more: str,
    **defaults: Any,
) -> Callable[..., None]:
    """Return a verb that calls a function and prints the result with `tell`.

    `more` names options of the command line alone.
    """
    accepted = inspect.signature(function).parameters

    def verb(context: typer.Context, **given: Any) -> None:
        call = VerbCall(context, given)
        check_outputs(context)
        asked = {key: value for key, value in given.items() if key in accepted}
        with ExitStack() as stack:
            for key in CONTEXTS.keys() & accepted.keys():
                asked[key] = stack.enter_context(CONTEXTS[key]())
            found = function(**asked)
        tell(found, call)

    return as_verb(verb, function, *more, **defaults)


def as_verb(
    verb: Callable[..., None], function: Callable[..., Any], *more: str, **defaults: Any
) -> Callable[..., None]:
    """Return a verb with the options and the documentation of a function, and more options."""
    parameters = [*options_of(function, *more, **defaults)]
    return with_parameters(verb, parameters, inspect.getdoc(inspect.unwrap(function)) or "")


def options_of(
    function: Callable[..., Any], *more: str, **defaults: Any
) -> Iterator[inspect.Parameter]:
    """Yield the arguments and options of a verb: the keywords of its function, and more."""
    verb = function.__name__
    for keyword, parameter in inspect.signature(function).parameters.items():
        if option_of(keyword, verb) is not None and keyword not in defaults:
            yield option(keyword, verb, parameter.default)
    for keyword in (*defaults, *more):
        yield option(keyword, verb, defaults.get(keyword))


def option(keyword: str, verb: str, default: Any) -> inspect.Parameter:
    """Return the parser's parameter for an argument or option."""
    about = option_of(keyword, verb)
    assert about is not None, keyword
    kind: Any = list[about.kind] if about.many else about.kind  # type: ignore[name-defined]
    if about.argument:
        metavar = about.metavar if default is inspect.Parameter.empty else f"[{about.metavar}]"
        names: Any = typer.Argument(metavar=metavar, help=about.help, show_default=False)
    else:
        names = typer.Option(
            *_flags(keyword, default, about),
            metavar=about.metavar or None,
            help=about.help,
            rich_help_panel=about.group,
        )
    if about.kind is bool:
        default = bool(default)
    elif default is None:
        kind = kind | None
    elif about.kind is str and default is not inspect.Parameter.empty:
        default = _in_words(default, about.metavar)
    return inspect.Parameter(
        keyword, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, names]
    )


def _in_words(default: Any, metavar: str) -> str:
    if not isinstance(default, int | float):
        return str(default)
    return f"{default:g}s" if metavar == "TIME" and default else f"{default:g}"


def _flags(keyword: str, default: Any, about: Any) -> Iterator[str]:
    """Yield the names of an option; one that defaults to on has a `--no-` form."""
    name = flag_of(keyword, about)
    yield f"{name}/--no-{name[2:]}" if default is True else name
    if keyword == "output":
        yield "-o"


def with_parameters(
    verb: Callable[..., None], parameters: list[inspect.Parameter], about: str
) -> Callable[..., None]:
    """Return a verb with the signature that the parser reads."""
    context = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
    all_parameters = [context, *parameters]
    verb.__signature__ = inspect.Signature(all_parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {each.name: each.annotation for each in all_parameters}
    verb.__doc__ = about
    return verb
