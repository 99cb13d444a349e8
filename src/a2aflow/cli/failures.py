"""What can go wrong on purpose, in the words and with the exit code of the command line."""

from typing import Any

from a2aflow.cli.signals import Stopped
from a2aflow.errors import A2AFlowError, InputError, UsageError


class Unsaved(Exception):  # noqa: N818
    """An answer was printed and could not be saved; all is said, but for the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


FAILURES = (A2AFlowError, MemoryError, OSError, Stopped)
"""What ends a call with a message and an exit code; anything else is a fault of ours."""


def described(error: BaseException) -> dict[str, Any]:
    """Return the exit code and the message of a failure."""
    if isinstance(error, A2AFlowError | Stopped):
        return {"code": error.exit_code, "message": str(error)}
    if isinstance(error, MemoryError):
        message = "not enough memory for a problem of this size; use a smaller one"
        return {"code": InputError.exit_code, "message": message}
    message = f"output cannot be written: {getattr(error, 'strerror', None) or error}"
    return {"code": UsageError.exit_code, "message": message}
