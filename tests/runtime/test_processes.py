"""Groups of processes: what they are told, what they tell, and that nobody stays behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from alltoall.errors import MissingComponentError, UsageError, VerificationError
from alltoall.runtime.processes import TOLD_LINES, Command, grouped

WAIT = "import threading; threading.Event().wait()"
HOLD = "import os, sys; pipe = os.open(sys.argv[1], os.O_WRONLY); os.write(pipe, b'.'); "
DAEMON = HOLD + "os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); " + WAIT
STUBBORN = HOLD + "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + WAIT


def command(folder: Path, name: str, script: str, *words: str, **variables: str) -> Command:
    """Return the command of a Python script."""
    return Command([sys.executable, "-I", "-S", "-c", script, *words], variables, folder / name)


def hold(folder: Path) -> tuple[str, int]:
    """Make a pipe for processes to hold; at its end, all of them have ended."""
    os.mkfifo(folder / "pipe")
    return str(folder / "pipe"), os.open(folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)


def test_commands_get_arguments_environment_and_a_log(tmp_path: Path) -> None:
    """All run side by side, each writes both of its outputs to its own log, and reads nothing."""
    script = (
        "import os, sys; print(sys.argv[1], os.environ['NAME'], sys.stdin.read(), flush=True); "
        "print('error', file=sys.stderr)"
    )
    commands = [
        command(tmp_path, str(index), script, f"word {index}", NAME=f"n\udcff{index}")
        for index in range(3)
    ]
    with grouped() as group:
        assert group.folder.is_dir()
        group.run(commands, 60, "the test")
        folder = group.folder
    assert not folder.exists()
    for index, each in enumerate(commands):
        assert each.log.read_bytes().split() == [
            b"word", str(index).encode(), f"n\udcff{index}".encode("utf-8", "surrogateescape"),
            b"error",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        ("import sys; sys.exit(3)", "a rank ended early (exit code 3); the others have been ended"),
        ("import os; os.kill(os.getpid(), 9)", "a rank ended early (signal SIGKILL)"),
        ("import sys; sys.exit(3)", "; it said nothing"),
        ("print('last words'); raise SystemExit(1)", "; it said:\n    last words"),
    ],
)
def test_one_that_fails_ends_all(script: str, problem: str, tmp_path: Path) -> None:
    """The error is that of the one that failed, not of those that had to go."""
    name, pipe = hold(tmp_path)
    waits = command(tmp_path, "waits", HOLD + WAIT, name)
    fails = command(tmp_path, "fails", script)
    with pytest.raises(VerificationError) as caught, grouped() as group:
        group.run([waits, fails, waits], 60, "the test")
    assert problem in str(caught.value)
    assert str(caught.value).startswith("the test fails")
    assert os.read(pipe, 9).strip(b".") == b""
    assert os.read(pipe, 9) == b""
    os.close(pipe)


def test_a_missing_component(tmp_path: Path) -> None:
    """What is missing in a rank is missing for the caller, with the rank's own words."""
    script = "print('install it'); raise SystemExit(5)"
    with pytest.raises(MissingComponentError, match="install it"), grouped() as group:
        group.run([command(tmp_path, "log", script)], 60, "the test")


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    """The log says why, as if the command had."""
    missing = Command([str(tmp_path / "missing")], {}, tmp_path / "log")
    with pytest.raises(VerificationError, match="No such file") as caught, grouped() as group:
        group.run([missing], 60, "the test")
    assert "exit code 127" in str(caught.value)


@pytest.mark.parametrize("lines", [TOLD_LINES, TOLD_LINES + 1])
def test_only_the_last_lines_are_told(lines: int, tmp_path: Path) -> None:
    """A long log is cut at the front, and says so."""
    script = f"print('\\n'.join(f'line {{n}}' for n in range({lines}))); raise SystemExit(1)"
    with pytest.raises(VerificationError) as caught, grouped() as group:
        group.run([command(tmp_path, "log", script)], 60, "the test")
    told = str(caught.value)
    assert ("    [...]\n" in told, "line 0\n" in told) == (lines > TOLD_LINES, lines == TOLD_LINES)
    assert told.endswith(f"    line {lines - 1}")
    assert told.count("    line ") == TOLD_LINES


@pytest.mark.parametrize("script", [DAEMON, STUBBORN], ids=["daemon", "stubborn"])
def test_who_is_late_is_ended(script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the time is up all end, those that left for a session of their own or heed no signal."""
    name, pipe = hold(tmp_path)
    one = command(tmp_path, "one", script, name)
    other = command(tmp_path, "other", f"print('here I am', flush=True); {WAIT}")
    # Not by the clock: the time is up when the processes have started.
    monkeypatch.setattr("select.select", started(pipe, other.log))
    with pytest.raises(VerificationError) as caught, grouped() as group:
        group.run([other, one], 60, "the test")
    assert "not done within 60 seconds" in str(caught.value)
    assert "here I am" in str(caught.value)
    assert os.read(pipe, 9) == b""
    os.close(pipe)


def test_the_time_is_up(tmp_path: Path) -> None:
    """Whoever still runs then is ended."""
    with (
        pytest.raises(VerificationError, match=r"within 0\.001 seconds") as caught,
        grouped() as group,
    ):
        group.run([command(tmp_path, "log", WAIT)], 1e-3, "the test")
    assert caught.value.subject == "the test"


def started(pipe: int, log: Path) -> Callable[..., tuple[list[int], ...]]:
    """Return a `select` that says that nothing came, once two processes have said something."""

    def wait(*_: object) -> tuple[list[int], ...]:
        heard = b""
        while not heard or not log.read_bytes():
            try:
                heard += os.read(pipe, 1)
            except BlockingIOError:
                os.sched_yield()
        return [], [], []

    return wait


def test_a_guard_that_is_killed(tmp_path: Path) -> None:
    """Its processes end all the same, and so does the directory; the caller hears of it."""
    name, pipe = hold(tmp_path)
    script = f"{HOLD} os.kill(os.getppid(), {int(signal.SIGKILL)}); {WAIT}"
    with grouped() as group:
        with pytest.raises(VerificationError, match="was killed"):
            group.run([command(tmp_path, "log", script, name)], 60, "the test")
        assert group.folder.exists()
    assert not group.folder.exists()
    os.set_blocking(pipe, True)
    assert os.read(pipe, 9).strip(b".") == b""
    os.close(pipe)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_guard_heeds_no_signal(number: signal.Signals, tmp_path: Path) -> None:
    """Nor do those whom it starts inherit its deafness."""
    script = f"import os; os.kill(os.getppid(), {int(number)}); os.kill(os.getpid(), {int(number)})"
    with grouped() as group:
        with pytest.raises(VerificationError, match=f"signal {number.name}"):
            group.run([command(tmp_path, "log", script)], 60, "the test")
        assert group.folder.exists()


def test_a_group_that_runs_nothing() -> None:
    """The directory is there, and then is not."""
    with grouped() as group:
        (group.folder / "file").touch()
    assert not group.folder.exists()


def test_nowhere_to_put_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A guard that cannot make its directory is an error of the call."""
    guard = subprocess.Popen([sys.executable, "-c", ""], stdin=-1, stdout=-1)
    monkeypatch.setattr("subprocess.Popen", lambda *_, **__: guard)
    with pytest.raises(UsageError, match="TMPDIR"), grouped():
        pass
