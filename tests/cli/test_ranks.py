"""`solve --mpi`: ranks that share out the sources find what one process finds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from a2aflow.cli import ranks as cli_ranks

SPEC = ("solve", "jellyfish:n=64,d=4,seed=1", "--gap", "1e-3", "--json")


def run(*words: object) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, as ranks are."""
    command = [sys.executable, "-m", "a2aflow", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_two_ranks_find_what_one_process_does(tmp_path: Path) -> None:
    """The same time and bound up to rounding, printed once, in a file that verifies."""
    alone = json.loads(run(*SPEC, "--method", "first-order").stdout)
    saved, state = tmp_path / "flow.npz", tmp_path / "state.npz"
    done = run(*SPEC, "--mpi", "2", "--output", saved, "--checkpoint", state)
    assert done.returncode == 0, done.stderr
    both = json.loads(done.stdout)
    assert both["gap"] <= 1e-3
    assert (both["time"], both["bound"]) == pytest.approx((alone["time"], alone["bound"]), rel=1e-4)
    assert run("verify", saved).returncode == 0


def test_a_rank_that_fails_ends_all_with_its_reason(tmp_path: Path) -> None:
    """Nobody waits for it, and the exit code is its own."""
    nothing = tmp_path / "state.npz"
    nothing.write_text("no checkpoint")
    done = run(*SPEC, "--mpi=2", "--checkpoint", nothing)
    assert done.returncode == 3
    assert "is no checkpoint" in done.stderr
    assert "2 ranks ended with code 3" in done.stderr


def ranks_with(word: Path) -> list[int]:
    """Return the processes of ranks that have a path among their words."""
    found = []
    for known in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = known.read_bytes().decode().split("\0")
        except OSError:  # it has just ended
            continue
        if words[0] == sys.executable and str(word) in words and "--mpi" not in words:
            found.append(int(known.parent.name))
    return found


def test_a_killed_rank_ends_all_and_the_checkpoint_stays(tmp_path: Path) -> None:
    """With a message that says so, and the same command goes on from there."""
    state = tmp_path / "state.npz"
    words = ("solve", "jellyfish:n=64,d=4,seed=1", "--checkpoint", str(state), "--mpi", "2")
    run(*words, "--gap", "1e-7", "--time-limit", "0.1")
    kept = state.read_bytes()
    command = [sys.executable, "-m", "a2aflow", *words, "--gap", "1e-12"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        while len(ranks_with(state)) < 2 and process.poll() is None:
            time.sleep(0.05)
        os.kill(ranks_with(state)[-1], signal.SIGKILL)
        told = process.communicate(timeout=120)[1]
    assert process.returncode != 0
    assert "has the last checkpoint" in told
    assert state.read_bytes() == kept
    later = run(*words, "--gap", "1e-3")
    assert later.returncode == 0, later.stderr
    assert "from a checkpoint" in later.stderr


def test_ranks_that_do_not_end_are_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for what does not listen."""
    monkeypatch.setattr(cli_ranks, "PATIENCE", 0.2)
    deaf = (
        "import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(99)"
    )
    with subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        cli_ranks._end(process)
    assert process.returncode == -signal.SIGKILL


def test_ranks_are_as_many_as_a_machine_holds() -> None:
    """A typing error does not start a thousand processes."""
    for ranks in ("0", "100000"):
        refused = run(*SPEC, "--mpi", ranks)
        assert refused.returncode == 2
        assert "for each core" in refused.stderr
