"""All verbs behind one parser of words, and what becomes of errors."""

import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import typer

from a2aflow.cli.compiling import listen_to_compiler
from a2aflow.cli.failures import FAILURES, described
from a2aflow.cli.lower import lower_verb
from a2aflow.cli.route import route_verb
from a2aflow.cli.run import run_verb
from a2aflow.cli.schedule import schedule_verb
from a2aflow.cli.show import complain, show, warn
from a2aflow.cli.signals import all_is_said, heard, printing, working
from a2aflow.cli.solve import solve_verb
from a2aflow.cli.topology import topology_verb
from a2aflow.cli.verify import verify_verb
from a2aflow.cli.warmup import warmup_verb
from a2aflow.errors import UsageError

app = typer.Typer(
    name="a2aflow",
    help="Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)

VERBS: dict[str, Callable[..., None]] = {
    "topology": topology_verb,
    "solve": solve_verb,
    "route": route_verb,
    "schedule": schedule_verb,
    "lower": lower_verb,
    "run": run_verb,
    "verify": verify_verb,
    "warmup": warmup_verb,
}

for _name, _verb in VERBS.items():
    app.command(_name)(_verb)


def run(words: Sequence[str]) -> int:
    """Run the command line and return its exit code; a failure becomes one message."""
    failed = False
    with printing():
        try:
            with working(), listen_to_compiler():
                code = _call(words)
        except BrokenPipeError:
            code = 0  # Whoever read our output has seen enough.
        except FAILURES as error:
            failed, code = True, _fail(error, "--json" in words)
    all_is_said()
    stopped = heard()
    if stopped is not None and not failed:
        warn("stopped: this is the best found by then")
    return code if stopped is None else stopped


def run_or_report(words: Sequence[str]) -> int:
    """Run the command line; a fault of ours becomes a traceback and, if asked for, an object."""
    try:
        return run(words)
    except Exception as error:
        warn(traceback.format_exc())
        if "--json" in words:
            message = f"a fault of a2aflow: {type(error).__name__}: {error}"
            _show_error({"code": 1, "message": message})
        return 1


def _call(words: Sequence[str]) -> int:
    """Call the verb; return its exit code."""
    try:
        code = app(
            list(words) or ["--help"],
            prog_name="a2aflow",
            standalone_mode=False,
            obj=tuple(words),
        )
    except SystemExit:  # How the printers of help leave a pipe that nobody reads any more.
        raise BrokenPipeError from None
    return code if isinstance(code, int) else 0


def _fail(error: BaseException, as_json: bool) -> int:
    """Say what failed: on standard error, and as the one JSON object if one was asked for."""
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
