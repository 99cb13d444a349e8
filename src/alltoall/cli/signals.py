"""Ctrl-C and SIGTERM: one line and an exit code, from the first import to the last byte.

What the first signal does depends on the moment; a second one never waits.

| moment | the first signal | the second |
|---|---|---|
| imports, and when all is said | ends the process at once | |
| work | raises `Stopped`: files and processes are cleaned up behind it | the same |
| a search | ends it as if its time were up, with the best so far | raises `Stopped` |
| printing | waits until the answer is out | ends the process at once |

A signal that the process was started to ignore, as background jobs are, stays ignored. This module
has light imports, so that it can be loaded first.
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress

EXIT_CODES: dict[int, int] = {signal.SIGINT: 130, signal.SIGTERM: 143}
"""Exit codes: 128 plus the number of the signal, as in shells."""

LINE = "stopped"
"""Message where there is no answer to show."""

SOON = 0.001
"""Delay before `Stopped` is raised again if it was swallowed."""


class Stopped(BaseException):
    """A signal ended the work; no `KeyboardInterrupt`, which the parser of words would swallow."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(LINE)
        self.exit_code = exit_code


class _Now:
    """The signal received, and the current reactions to the first and to a further one."""

    exit_code: int | None = None
    first: Callable[[], None]
    further: Callable[[], None]


def _ignore() -> None:
    """Let the current work finish."""


def _raise() -> None:
    raise Stopped(_Now.exit_code or EXIT_CODES[signal.SIGINT])


def _end() -> None:
    """End the process without another line of Python."""
    _write(2, f"{LINE}\n")
    os._exit(_Now.exit_code or EXIT_CODES[signal.SIGINT])


def _end_unsaid() -> None:
    """End the process at once, with one line."""
    if "--json" in sys.argv:
        _write(1, f'{{"error": {{"code": {_Now.exit_code}, "message": "{LINE}"}}}}\n')
    _end()


_Now.first = _Now.further = _end_unsaid


def _write(descriptor: int, text: str) -> None:
    with suppress(OSError):  # If nobody listens, there is nobody left to tell.
        os.write(descriptor, text.encode())


def listen() -> None:
    """Install the signal handlers; until changed, signals end the process at once."""
    for number in EXIT_CODES:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _hear)
    signal.signal(signal.SIGALRM, _hear_again)
    sys.unraisablehook = _unraisable


def all_is_said() -> None:
    """End the process at once on signals from now on."""
    _Now.first = _Now.further = _end


def heard() -> int | None:
    """Return the exit code of the first signal received, or None."""
    return _Now.exit_code


def _hear(number: int, _frame: object) -> None:
    act = _Now.first if _Now.exit_code is None else _Now.further
    _Now.exit_code = _Now.exit_code or EXIT_CODES[number]
    act()


def _hear_again(_number: int, _frame: object) -> None:
    if _Now.exit_code is not None:
        _Now.further()


def _unraisable(lost: "sys.UnraisableHookArgs") -> None:
    """Raise `Stopped` again if Python dropped it, as in `__del__` or a callback from C."""
    if issubclass(lost.exc_type, Stopped):
        signal.setitimer(signal.ITIMER_REAL, SOON)
    else:
        sys.__unraisablehook__(lost)


@contextmanager
def _moment(first: Callable[[], None], further: Callable[[], None]) -> Iterator[None]:
    before = _Now.first, _Now.further
    _Now.first, _Now.further = first, further
    try:
        yield
    finally:
        _Now.first, _Now.further = before


def working() -> AbstractContextManager[None]:
    """Raise `Stopped` on signals in this context."""
    return _moment(_raise, _raise)


def printing() -> AbstractContextManager[None]:
    """Delay signals until the end of this context."""
    return _moment(_ignore, _end)


@contextmanager
def searching() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether to stop, for searches to poll.

    A search stopped before its first answer may fail; that is then no error.
    """
    with _moment(_ignore, _raise):
        try:
            yield lambda: _Now.exit_code is not None
        except Exception:
            if _Now.exit_code is None:
                raise
            raise Stopped(_Now.exit_code) from None
