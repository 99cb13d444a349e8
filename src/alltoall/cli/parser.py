"""Parse words into the parameters of a verb, and import only that verb."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from alltoall.cli.verbs import ABOUT, VERBS
from alltoall.errors import UsageError
from alltoall.grammar import GROUPS
from alltoall.registry import load

SHORTHANDS = {f"--{name}": ("--group", name) for name in GROUPS}
"""Options that stand for a value of another."""

WrongWords: type[Exception] = typer.BadParameter.__mro__[2]
"""Base class of the parser's errors, which typer does not export."""


def parser_of(names: Sequence[str]) -> typer.Typer:
    """Return the parser of some verbs, which it imports."""
    app = typer.Typer(
        name="alltoall",
        help=ABOUT,
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    # With a callback even one verb is a verb, and not the whole of the command.
    app.callback()(lambda: None)
    for name in names:
        about = VERBS[name]
        verb: Callable[..., None] = load(about.where(name))
        if about.parts:
            # The verb's own function has the help of its parts.
            parts = typer.Typer(rich_markup_mode="markdown")
            parts.callback()(verb)
            for part in about.parts:
                parts.command(part)(load(about.where(part)))
            app.add_typer(parts, name=name)
        else:
            settings = {"ignore_unknown_options": about.takes_command}
            app.command(name, context_settings=settings)(verb)
    return app


def command_for(name: str, part: str | None = None) -> Any:
    """Return the parser's command of a verb, or of a part of one."""
    command: Any = typer.main.get_command(parser_of([name]))
    for each in filter(None, (name, part)):
        command = command.commands[each]
    return command


def call(words: Sequence[str]) -> int:
    """Call the verb named by the first word; return its exit code."""
    with _without_matplotlib():
        app = parser_of([words[0]] if words and words[0] in VERBS else list(VERBS))
    words = [part for word in words for part in SHORTHANDS.get(word, (word,))]
    try:
        code = app(words, prog_name="alltoall", standalone_mode=False, obj=tuple(words))
    except SystemExit as end:  # How completion ends, and printers of help leave a closed pipe.
        if end.code in (None, 0):
            return 0
        raise BrokenPipeError from None
    except WrongWords as error:
        raise UsageError(_in_words(error)) from None
    return code if isinstance(code, int) else 0


@contextmanager
def _without_matplotlib() -> Iterator[None]:
    """Hide matplotlib from igraph, which would spend half a second importing it.

    Only the command line does so: programs that import the package may draw with both.
    """
    if "matplotlib" in sys.modules:
        yield
        return
    hidden: dict[str, Any] = {"matplotlib": None}  # The import system's word for: not there.
    sys.modules.update(hidden)
    try:
        yield
    finally:
        del sys.modules["matplotlib"]


def _in_words(error: Any) -> str:
    """Return the parser's message with a pointer to the help."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "alltoall"
    return f"{error.format_message().rstrip('.')}; see {path} --help"
