"""What can go wrong on purpose, in the words and with the exit code of the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from errno import ENOMEM
from typing import Any

from alltoall.cli.signals import Stopped
from alltoall.errors import (
    AlltoallError,
    InputError,
    MissingComponentError,
    TimeLimitError,
    UsageError,
)
from alltoall.ir.words import one_line


class Unsaved(Exception):  # noqa: N818
    """An answer was printed and could not be saved; all is said, but for the exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


FAILURES = (AlltoallError, MemoryError, OSError, ImportError, Stopped)
"""What ends a call with a message and an exit code; anything else is a fault of ours."""


def described(error: BaseException) -> dict[str, Any]:
    """Return the exit code and the message of a failure."""
    if isinstance(error, AlltoallError | Stopped):
        return {"code": error.exit_code, "message": str(error)}
    if isinstance(error, MemoryError) or getattr(error, "errno", None) == ENOMEM:
        message = "not enough memory for a problem of this size; use a smaller one"
        return {"code": InputError.exit_code, "message": message}
    if isinstance(error, TimeoutError):
        message = "the time limit came before any answer; allow more time"
        return {"code": TimeLimitError.exit_code, "message": message}
    message = (
        f"the system refused something that is needed: {one_line(str(_root(error)))}; check the "
        "installation, and the limits that `ulimit -a` shows"
    )
    return {"code": MissingComponentError.exit_code, "message": message}


def _root(error: BaseException) -> BaseException:
    """Return the failure of the system behind a failure: libraries wrap it in pages of advice."""
    while isinstance(error.__cause__, OSError | ImportError):
        error = error.__cause__
    return error


@contextmanager
def writing_output() -> Iterator[None]:
    """Give a context whose failures are those of the output, if anybody still reads it."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise UsageError(f"output cannot be written: {error.strerror or error}") from None
