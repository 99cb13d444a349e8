"""What can go wrong on purpose, in the words and with the exit code of the command line."""

from typing import Any

import typer

from a2aflow.cli.signals import Stopped
from a2aflow.errors import A2AFlowError, InputError, UsageError

WrongWords: type[Exception] = typer.BadParameter.__mro__[2]
"""What the parser of words raises; typer exports no name for the base of its errors."""

FAILURES = (A2AFlowError, WrongWords, MemoryError, OSError, Stopped)
"""What ends a call with a message and an exit code; anything else is a fault of ours."""


def described(error: BaseException) -> dict[str, Any]:
    """Return the exit code and the message of a failure."""
    if isinstance(error, A2AFlowError | Stopped):
        return {"code": error.exit_code, "message": str(error)}
    if isinstance(error, MemoryError):
        message = "not enough memory for a problem of this size; use a smaller one"
        return {"code": InputError.exit_code, "message": message}
    if isinstance(error, OSError):
        message = f"output cannot be written: {error.strerror or error}"
        return {"code": UsageError.exit_code, "message": message}
    return {"code": UsageError.exit_code, "message": _of_the_parser(error)}


def _of_the_parser(error: Any) -> str:
    """Return what the parser of words has to say, and where to read on."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "a2aflow"
    return f"{error.format_message().rstrip('.')}; see {path} --help"
