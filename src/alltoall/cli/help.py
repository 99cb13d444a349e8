"""Help of a verb: summary, examples and options, 80 columns wide."""

import inspect
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from alltoall.cli.parser import command_for
from alltoall.cli.verbs import VERBS
from alltoall.grammar import ROUTE, ROUTE_KEYS, SCHEDULE, SEARCH, SOLVE, TARGETS, Key, Method

WIDTH = 80
LABEL = 26
"""Width of option names; a longer name gets its own line."""

USUAL = 10
"""Number of options in a short help, unless the verb selects them."""

HELP_WORDS = ("-h", "--help", "--help-all")

TABLES: dict[str, tuple[str, Mapping[str, Method], Mapping[str, Key]]] = {
    "solve": ("Methods", SOLVE, SEARCH),
    "route": ("Methods", ROUTE, ROUTE_KEYS),
    "schedule": ("Methods", SCHEDULE, SEARCH),
    "lower": ("Targets", TARGETS, {}),
}
"""Methods or targets of a verb: the heading, the table, and the keys that all entries take."""


def asked_help(words: Sequence[str]) -> str | None:
    """Return the help requested by the words of a call, or None."""
    if not words or words[0] not in VERBS:
        return None
    verb = VERBS[words[0]]
    given = words[: words.index("--")] if "--" in words else words
    asked = [each for each in (given[:2] if verb.takes_command else given) if each in HELP_WORDS]
    if not asked:
        return None
    part = words[1] if len(words) > 1 and words[1] in verb.parts else None
    return help_of(words[0], part, whole="--help-all" in asked)


def help_of(name: str, part: str | None = None, whole: bool = False) -> str:
    """Return the help of a verb or part, short or whole."""
    command = command_for(name, part)
    about = inspect.cleandoc(command.help or "").partition("\n>>>")[0].strip()
    first, _, rest = about.partition("\n\n")
    options = [each for each in command.params if each.param_type_name == "option"]
    options = [each for each in options if each.name != "help"]
    arguments = [each.make_metavar(None) for each in command.params if each not in options]
    called = " ".join(["alltoall", name, *([part] if part else [])])
    plain = (each.strip("[]") if each.count("[") == 2 else each for each in arguments)
    title = " ".join([called, *plain])
    first = first if part else f"{VERBS[name].summary}."
    lines = [f"Usage: {title}{' [options]' if options else ''}", "", *_filled(first)]
    if whole and rest:
        lines += ["", *(line for part in rest.split("\n\n") for line in (*_filled(part), ""))][:-1]
    if part is None:
        lines += ["", "Examples:", *(f"  {each}" for each in VERBS[name].examples)]
    by_name, short = {each.name: each for each in options}, VERBS[name].short.split()
    usual = [by_name[key] for key in short] if short else options[:USUAL]
    chosen = options if whole else usual
    for heading, group in _groups(chosen).items():
        lines += ["", f"{heading}:", *(line for each in group for line in _option(each))]
    if VERBS[name].parts and part is None:
        lines += ["", "Parts:"]
        for each in VERBS[name].parts:
            lines += _row(
                each, (command_for(name, each).help or "").strip().partition("\n")[0].rstrip(".")
            )
    if name in TABLES:
        lines += ["", *_table(name, whole)]
    if len(chosen) < len(options):
        lines += ["", f"All {len(options)} options: {called} --help-all"]
    return "\n".join(lines)


def _filled(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(
        " ".join(text.split()), WIDTH, initial_indent=indent, subsequent_indent=indent
    )


def _groups(options: Iterable[Any]) -> dict[str, list[Any]]:
    """Return the options under each heading."""
    groups: dict[str, list[Any]] = {}
    for each in options:
        groups.setdefault(each.rich_help_panel or "Options", []).append(each)
    return dict(sorted(groups.items(), key=lambda group: group[0] != "Options"))


def _option(option: Any) -> list[str]:
    """Return the lines of an option: its name, the word for its value, and its help."""
    name = ", ".join(sorted(option.opts, key=len))
    if option.secondary_opts:
        name = f"{option.opts[0]}/{option.secondary_opts[0]}"
    word = option.metavar or {"integer": "N", "float": "X"}.get(option.type.name, "TEXT")
    value = "" if option.is_flag else f" {word}"
    return _row(f"{name}{value}", _about(option))


def _about(option: Any) -> str:
    """Return the help of an option, with a meaningful default."""
    text = (option.help or "").rstrip(".")
    plain = option.default if isinstance(option.default, int | float | str) else None
    if plain in (None, "", 0, "0") or "default" in text or option.is_flag:
        return text
    return f"{text} (default: {plain:g})" if not isinstance(plain, str) else f"{text} ({plain})"


def _row(label: str, text: str) -> list[str]:
    label = f"  {label}"
    wrapped = textwrap.wrap(text, WIDTH - LABEL) or [""]
    if len(label) >= LABEL:
        return [label, *(" " * LABEL + line for line in wrapped)]
    return [f"{label:<{LABEL}}{wrapped[0]}", *(" " * LABEL + line for line in wrapped[1:])]


def _table(name: str, whole: bool) -> list[str]:
    """Return a line for each method or target; the whole help also has their keys."""
    heading, table, shared = TABLES[name]
    lines = [f"{heading}:"]
    for method, about in table.items():
        lines += _row(method, about.summary)
        if whole:
            for key, setting in about.keys.items():
                lines += _row(f"  {key}=", setting.help)
    if whole and shared:
        lines += ["", f"{heading} all take:"]
        lines += [line for key, each in shared.items() for line in _row(f"{key}=", each.help)]
    return lines
