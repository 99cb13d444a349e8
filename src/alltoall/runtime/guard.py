"""The guard starts processes, owns their scratch directory, and ends both: `python -I guard.py`.

It makes the directory and prints its name; reads one line of JSON, a list of commands; starts them
and prints `INDEX CODE` whenever one ends. When its standard input closes, which happens however its
parent ends (done, failed or killed), it kills all descendants, through launchers and daemons,
removes the directory, and exits.

It runs by its path on the standard library alone, so that it starts in milliseconds.
"""

import ctypes
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

TERMINATE_SECONDS = 3.0
"""Grace period for launchers to end their ranks before all are killed."""

NOT_STARTED = 127
"""Exit code of a command that cannot be started, as in shells; its log says why."""

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""Options of Linux's prctl: the signal at a parent's death, and the adoption of orphans."""

_SEGMENT = re.compile(r"^\S+ rw-s .* (/dev/shm/[^/\s]+)$", re.MULTILINE)
"""Writable shared memory with a name in a process's map."""

_prctl = ctypes.CDLL(None).prctl


def main() -> None:
    """Serve the parent at standard input."""
    wake_read = _prepare()
    folder = tempfile.mkdtemp(prefix="alltoall-run-")
    running: dict[int, subprocess.Popen[bytes]] = {}
    try:
        print(folder, flush=True)
        for index, command in enumerate(json.loads(sys.stdin.readline() or "[]")):
            _start(index, command, running)
        while 0 not in select.select([0, wake_read], [], [])[0]:
            os.read(wake_read, select.PIPE_BUF)
            _tell(running)
    except BrokenPipeError:
        pass  # nobody listens any more: the same as a closed input
    finally:
        segments = _segments()
        _end(list(running.values()), wake_read)
        for segment in segments:
            Path(segment).unlink(missing_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _prepare() -> int:
    """Ignore group signals, adopt orphans; return a file to poll for deaths."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_read, False)
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        # A handler, for what is ignored would stay ignored in all that we start.
        signal.signal(number, _go_on)
    _prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return wake_read


def _go_on(_number: int, _frame: FrameType | None) -> None:
    """Do nothing."""


def _start(
    index: int, command: dict[str, Any], running: "dict[int, subprocess.Popen[bytes]]"
) -> None:
    with Path(command["log"]).open("wb") as log:
        try:
            running[index] = subprocess.Popen(
                command["arguments"],
                env=command["environment"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                # Should we be killed, launchers end their ranks. Safe: we have no threads.
                preexec_fn=_end_with_parent,  # noqa: PLW1509
            )
        except OSError as error:
            log.write(str(error).encode())
            log.flush()
            print(index, NOT_STARTED, flush=True)


def _end_with_parent() -> None:
    _prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _tell(running: "dict[int, subprocess.Popen[bytes]]") -> None:
    """Print the index of an ended process and its exit code; a signal is negative."""
    for index in [index for index, process in running.items() if process.poll() is not None]:
        print(index, running.pop(index).returncode, flush=True)


def _end(running: "list[subprocess.Popen[bytes]]", wake_read: int) -> None:
    """End all descendant processes."""
    deadline = time.monotonic() + TERMINATE_SECONDS
    for process in running:
        process.terminate()
    while any(process.poll() is None for process in running):
        if not select.select([wake_read], [], [], max(deadline - time.monotonic(), 0.0))[0]:
            break
        os.read(wake_read, select.PIPE_BUF)
    # Whoever dies leaves us its children, until there are none.
    with suppress(ChildProcessError):
        while True:
            for each in _offspring():
                with suppress(ProcessLookupError):
                    os.kill(each, signal.SIGKILL)
            os.wait()


def _segments() -> set[str]:
    """Return our offspring's shared memory: MPICH's ranks leave it behind if they are killed."""
    found: set[str] = set()
    for each in _offspring():
        with suppress(OSError):
            maps = Path(f"/proc/{each}/maps").read_text(errors="replace")
            found.update(_SEGMENT.findall(maps))
    return found


def _offspring() -> list[int]:
    """Return all descendants; sessions and groups do not tell, since launchers make new ones."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # After the name, which may hold anything: state, then parent.
            words = entry.read_text(errors="replace").rpartition(")")[2].split()
            parents[int(entry.parent.name)] = int(words[1])
    found = [os.getpid()]
    for each in found:
        found += [child for child, parent in parents.items() if parent == each]
    return found[1:]


if __name__ == "__main__":
    main()
