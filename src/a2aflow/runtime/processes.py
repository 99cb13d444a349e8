"""Processes that belong together: they end together, in time, whatever one of them does."""

import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from a2aflow.errors import MissingComponentError, VerificationError

POLL_SECONDS = 0.02
TERMINATE_SECONDS = 3.0
"""How long mpiexec gets to end its ranks itself before all are killed."""

TOLD_LINES = 25
"""How much of what the processes said is repeated in an error."""


@dataclass(frozen=True)
class Command:
    """A process to start; its output goes to `log`."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path


def run_together(commands: Sequence[Command], timeout: float, subject: str) -> None:
    """Run commands side by side until all have ended well.

    If one ends otherwise, or `timeout` seconds pass, all of them end, with all that they started.
    """
    running: list[subprocess.Popen[bytes]] = []
    try:
        running += [_start(command) for command in commands]
        _wait(running, commands, time.monotonic() + timeout, timeout, subject)
    finally:
        for process in running:
            _end(process)


def _start(command: Command) -> "subprocess.Popen[bytes]":
    with command.log.open("wb") as log:
        return subprocess.Popen(
            command.arguments,
            env=dict(command.environment),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            # A session of its own: all that a process starts can be found by it, and ended.
            start_new_session=True,
        )


def _wait(
    running: "Sequence[subprocess.Popen[bytes]]",
    commands: Sequence[Command],
    deadline: float,
    timeout: float,
    subject: str,
) -> None:
    while True:
        codes = [_code(process) for process in running]
        for code, command in zip(codes, commands, strict=True):
            if code:
                raise _ended(code, command, subject)
        if all(code == 0 for code in codes):
            return
        if time.monotonic() > deadline:
            waiting = next(c for code, c in zip(codes, commands, strict=True) if code is None)
            raise VerificationError(
                subject,
                [
                    f"not done within {timeout:g} seconds: a rank hangs, or the time limit is too "
                    f"short (--timeout); all ranks have been ended{_told(waiting.log)}"
                ],
            )
        time.sleep(POLL_SECONDS)


def _ended(code: int, command: Command, subject: str) -> MissingComponentError | VerificationError:
    if code == MissingComponentError.exit_code:
        return MissingComponentError(f"{subject}: a component is missing{_told(command.log)}")
    how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    problem = f"a rank ended early ({how}); the others have been ended{_told(command.log)}"
    return VerificationError(subject, [problem])


def _told(log: Path) -> str:
    """Return the last lines of what a process said."""
    lines = log.read_text(encoding="utf-8", errors="replace").rstrip().splitlines()
    if not lines:
        return "; it said nothing"
    cut = ["[...]"] if len(lines) > TOLD_LINES else []
    return "; it said:\n" + "\n".join(f"    {line}" for line in cut + lines[-TOLD_LINES:])


def _code(process: "subprocess.Popen[bytes]") -> int | None:
    """Return how a process has ended, if it has, and leave its number taken.

    As long as it is not reaped, neither its number nor its session's can become someone else's.
    """
    state = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    if state is None:
        return None
    return state.si_status if state.si_code == os.CLD_EXITED else -state.si_status


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a process and everything in its session, then let go of it."""
    deadline = time.monotonic() + TERMINATE_SECONDS
    if _code(process) is None:
        os.kill(process.pid, signal.SIGTERM)
    while _code(process) is None and time.monotonic() < deadline:
        time.sleep(POLL_SECONDS)
    # Not by process group: some launchers give each rank one of its own.
    for each in _session(process.pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)
    process.wait()


def _session(leader: int) -> list[int]:
    """Return the processes of a session."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with suppress(ValueError, ProcessLookupError, PermissionError):
            if os.getsid(int(entry.name)) == leader:
                found.append(int(entry.name))
    return found
