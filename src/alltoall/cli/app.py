"""Run a call: print its answer, or one message, and return an exit code.

Imports are light: what needs no verb is answered at once, and a verb is imported when called.
"""

import os
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any

from alltoall.cli.show import FAILURES, Unsaved, complain, described, say_out, show, warn
from alltoall.cli.signals import all_is_said, heard, printing, working
from alltoall.cli.verbs import COMPLETION_WORDS, OVERVIEW_WORDS, overview, require_words
from alltoall.errors import UsageError
from alltoall.registry import load
from alltoall.topologies.families import FAMILIES

COMPLETING = "_ALLTOALL_COMPLETE"
"""The variable by which a shell asks for completions."""

LISTING = ({"topology"}, {"topology", "--json"})
"""Calls that list families and formats."""


def run(words: Sequence[str]) -> int:
    """Run the command line and return its exit code; a failure becomes one message."""
    failed = False
    with printing():
        try:
            with working():
                code = _call(words)
        except BrokenPipeError:
            code = 0  # Whoever read our output has seen enough.
        except Unsaved as failure:
            code = failure.code
        except FAILURES as error:
            failed, code = True, _fail(error, "--json" in words)
    all_is_said()
    stopped = heard()
    if stopped is not None and not failed:
        warn("stopped: this is the best found by then")
    return code if stopped is None else stopped


def run_or_report(words: Sequence[str]) -> int:
    """Run the command line; a bug becomes a traceback and, with --json, an object."""
    try:
        return run(words)
    except Exception as error:
        warn(import_module("traceback").format_exc())
        if "--json" in words:
            message = f"a fault of alltoall: {type(error).__name__}: {error}"
            _show_error({"code": 1, "message": message})
        return 1


def _call(words: Sequence[str]) -> int:
    """Answer or call the verb; return the exit code."""
    completes = COMPLETING in os.environ or (words and words[0] in COMPLETION_WORDS)
    if not completes and _answer_without_verb(words):
        return 0
    code: int = import_module("alltoall.cli.parser").call(words)
    return code


def _answer_without_verb(words: Sequence[str]) -> bool:
    """Print help, version or lists if asked for; return whether they were."""
    if not words or words[0] in OVERVIEW_WORDS:
        say_out(overview())
    elif words[0] == "--version":
        say_out(f"alltoall {import_module('alltoall').__version__}")
    elif set(words) in LISTING:
        show_choices("--json" in words)
    elif _asks_of_a_family(words):
        say_out(load("alltoall.topologies.family_help:family_help")(words[1].partition(":")[0]))
    else:
        require_words(words)
        asked = set(words) & {*OVERVIEW_WORDS}
        text: str | None = load("alltoall.cli.help:asked_help")(words) if asked else None
        if text is None:
            return False
        say_out(text)
    return True


def show_choices(as_json: bool) -> None:
    """Print every family of topologies and every file format."""
    families = {
        name: {"example": family.example, "summary": family.summary}
        for name, family in FAMILIES.items()
    }
    known = load("alltoall.topologies.formats:FORMATS")
    formats = {
        name: {"summary": each.summary, "reads": each.reads, "suffixes": list(each.suffixes)}
        for name, each in known.items()
    }
    lines = {family["example"]: family["summary"] for family in families.values()}
    show({"families": families, "formats": formats}, as_json, {"SPEC": "what it is", **lines})
    if not as_json:
        files = {name: each.summary for name, each in known.items()}
        show({}, False, {"": "", "file": "", **files})


def _asks_of_a_family(words: Sequence[str]) -> bool:
    """Return whether the words are `topology FAMILY --help`."""
    return (
        len(words) == 3
        and words[0] == "topology"
        and words[1].partition(":")[0] in FAMILIES
        and words[2] in OVERVIEW_WORDS
    )


def _fail(error: BaseException, as_json: bool) -> int:
    """Print the error on standard error and, with --json, as the JSON object."""
    complain(error)
    found = described(error)
    if as_json:
        _show_error(found)
    return int(found["code"])


def _show_error(found: dict[str, Any]) -> None:
    """Print a failure as the one JSON object."""
    # If standard output is full or closed, what standard error says is all that can be said.
    with suppress(OSError, UsageError):
        show({"error": found}, True, {})
