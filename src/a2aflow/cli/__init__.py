"""The command line: one thin file per verb, and the exit codes.

0 done; 2 usage; 3 the input is not a valid problem; 4 a verification failed; 5 a needed component
is missing; 130 stopped by Ctrl-C.
"""

import os
import sys
from collections.abc import Callable

import typer

from a2aflow.cli.lower import lower_verb
from a2aflow.cli.route import route_verb
from a2aflow.cli.run import run_verb
from a2aflow.cli.schedule import schedule_verb
from a2aflow.cli.solve import INTERRUPTED_EXIT, solve_verb
from a2aflow.cli.topology import topology_verb
from a2aflow.cli.verify import verify_verb
from a2aflow.errors import A2AFlowError
from a2aflow.lp import solver_is_running

app = typer.Typer(
    name="a2aflow",
    help="Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.",
    no_args_is_help=True,
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
}

for _name, _verb in VERBS.items():
    app.command(_name)(_verb)


def main() -> None:
    """Run the command line; errors raised on purpose become one message and an exit code."""
    try:
        _run_app()
    except A2AFlowError as error:
        _stop(f"error: {error}", error.exit_code)
    except KeyboardInterrupt:
        _stop("stopped", INTERRUPTED_EXIT)
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing may be flushed to them any more.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except MemoryError:
        _stop("error: not enough memory for a problem of this size; use a smaller one", 3)
    except OSError as error:
        _stop(f"error: output cannot be written: {error.strerror}", 2)


def _run_app() -> None:
    try:
        app()
    except SystemExit as stop:
        _leave(stop.code if isinstance(stop.code, int) else 1)


def _stop(message: str, code: int) -> None:
    """Leave with a message; what a terminal cannot show is written as escapes."""
    if sys.stderr is not None:
        sys.stderr.write(message.encode("ascii", "backslashreplace").decode() + "\n")
    _leave(code)


def _leave(code: int) -> None:
    """End the process; at once if a solver would not stop, which no orderly exit survives."""
    if solver_is_running():
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
