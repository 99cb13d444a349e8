"""Process groups: all processes end together, in time."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from alltoall.errors import MissingComponentError, UsageError, VerificationError

WATCH_SECONDS = 0.2
"""Polling interval of `watch`."""

TOLD_LINES = 25
"""Lines of process output repeated in an error."""


@dataclass(frozen=True)
class Command:
    """A process to start; its output goes to `log`."""

    arguments: Sequence[str]
    environment: Mapping[str, str]
    log: Path


@dataclass(frozen=True)
class ProcessGroup:
    """Processes and their scratch directory, owned by a guard; see `guard.py`."""

    folder: Path
    orders: IO[bytes]
    news: IO[bytes]

    def run(
        self,
        commands: Sequence[Command],
        timeout: float,
        subject: str,
        watch: Callable[[], str | None] | None = None,
    ) -> None:
        """Run commands in parallel until all have succeeded; once per group.

        Raise if one fails, after `timeout` seconds, or if `watch`, which is polled, returns a
        reason; the group then ends the others.
        """
        with suppress(BrokenPipeError):  # told below, where there are no news
            self.orders.write(_orders(commands))
            self.orders.flush()
        waiting = dict(enumerate(commands))
        deadline = time.monotonic() + timeout
        while waiting:
            left = max(deadline - time.monotonic(), 0.0)
            pause = left if watch is None else min(left, WATCH_SECONDS)
            if not select.select([self.news], [], [], pause)[0]:
                if watch is not None and (reason := watch()):
                    raise VerificationError(subject, [f"{reason}; all ranks have been ended"])
                if pause == left:
                    raise _late(timeout, next(iter(waiting.values())), subject)
                continue
            for index, code in self._news(subject):
                command = waiting.pop(index)
                if code:
                    raise _ended(code, command, subject)

    def _news(self, subject: str) -> list[tuple[int, int]]:
        """Return the ended commands and their exit codes."""
        # Past the buffer, which holds nothing, for `select` knows nothing of it.
        lines = os.read(self.news.fileno(), select.PIPE_BUF).split(b"\n")[:-1]
        if not lines:
            raise VerificationError(
                subject, ["the process that watches over the ranks was killed, and they with it"]
            )
        return [(int(index), int(code)) for index, code in (line.split() for line in lines)]


@contextmanager
def grouped() -> Iterator[ProcessGroup]:
    """Yield a group; its processes end with the context, or if this process is killed."""
    guard = subprocess.Popen(
        [sys.executable, "-I", "-S", str(Path(__file__).with_name("guard.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # Ctrl-C in a terminal is for us alone: the guard ends because we do.
        start_new_session=True,
    )
    assert guard.stdin is not None
    assert guard.stdout is not None
    folder = os.fsdecode(guard.stdout.readline().rstrip(b"\n"))
    try:
        if not folder:
            raise UsageError(
                "no scratch directory can be made; name one that is writable with TMPDIR"
            )
        yield ProcessGroup(Path(folder), guard.stdin, guard.stdout)
    finally:
        with suppress(BrokenPipeError):
            guard.stdin.close()
        guard.stdout.close()
        guard.wait()
        # Only a guard that was killed itself has left it.
        if folder:
            shutil.rmtree(folder, ignore_errors=True)


def _orders(commands: Sequence[Command]) -> bytes:
    """Return commands as the one line that the guard reads."""
    rows = [
        {
            "arguments": list(command.arguments),
            "environment": dict(command.environment),
            "log": str(command.log),
        }
        for command in commands
    ]
    return json.dumps(rows).encode() + b"\n"


def _late(timeout: float, command: Command, subject: str) -> VerificationError:
    problem = (
        f"not done within {timeout:g} seconds: a rank hangs, or the time limit is too short "
        "(--timeout); all ranks have been ended"
    )
    aside, said = _last_words(command.log)
    return VerificationError(subject, [problem + aside], said)


def _ended(code: int, command: Command, subject: str) -> MissingComponentError | VerificationError:
    aside, said = _last_words(command.log)
    if code == MissingComponentError.exit_code:
        return MissingComponentError(f"{subject}: a component is missing{aside}", *said)
    how = f"exit code {code}" if code > 0 else f"signal {signal.Signals(-code).name}"
    problem = f"a rank ended early ({how}); the others have been ended{aside}"
    return VerificationError(subject, [problem], said)


def _last_words(log: Path) -> tuple[str, list[str]]:
    """Return the last output lines of a process, and their heading."""
    # There is no log yet of what was late before it started.
    said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
    lines = said.rstrip().splitlines()
    if not lines:
        return "; it said nothing", []
    cut = ["[...]"] if len(lines) > TOLD_LINES else []
    return "; it said:", cut + lines[-TOLD_LINES:]
