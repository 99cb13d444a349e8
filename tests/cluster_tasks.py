"""Work for the workers of a cluster in the tests; they import it by name."""

import os
import signal
from pathlib import Path


def double(item: int) -> int:
    """Return twice the item."""
    return 2 * item


def double_or_die(item: tuple[int, str]) -> int:
    """Return twice the number, but kill the process that has it if the file is not there yet."""
    number, path = item
    if path and not Path(path).exists():
        Path(path).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number


def die(_: int) -> None:
    """Kill the process, always."""
    os.kill(os.getpid(), signal.SIGKILL)


def refuse(item: int) -> int:
    """Raise an error that has nothing to do with the cluster."""
    raise ArithmeticError(f"no {item}")
