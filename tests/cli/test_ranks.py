"""`solve --mpi`: ranks that share out the sources find what one process finds."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import alltoall
from alltoall.cli import ranks as cli_ranks

SPEC = ("solve", "jellyfish:n=64,d=4,seed=1", "--gap", "1e-3", "--json")


DIES_WHILE_IT_KEEPS = """
import os, signal
from alltoall.flows import best_so_far

best_so_far.CHECKPOINT_SECONDS = 0.0
kept, real_write = [], best_so_far.CheckpointFile.write

def write(self, state):
    if kept and "1" in (os.environ.get("OMPI_COMM_WORLD_RANK"), os.environ.get("PMI_RANK")):
        os.kill(os.getpid(), signal.SIGKILL)
    real_write(self, state)
    kept.append(state.steps)

best_so_far.CheckpointFile.write = write
"""
"""What a rank runs first: the second of them is killed instead of writing its second checkpoint."""


def run(*words: object, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own, as ranks are."""
    command = [sys.executable, "-m", "alltoall", *map(str, words)]
    known = {**os.environ, **variables}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=known
    )


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


def test_two_ranks_sweep_together(tmp_path: Path) -> None:
    """Where sweeps are the way, the gap is reached, in a file that verifies."""
    saved = tmp_path / "flow.npz"
    done = run("solve", "jellyfish:n=80,d=4,seed=1", *SPEC[2:], "--mpi", "2", "--output", saved)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gap"] <= 1e-3
    assert run("verify", saved).returncode == 0


def test_a_rank_that_fails_ends_all_with_its_reason(tmp_path: Path) -> None:
    """Nobody waits for it, and the exit code is its own."""
    nothing = tmp_path / "state.npz"
    nothing.write_text("no checkpoint")
    done = run(*SPEC, "--mpi=2", "--checkpoint", nothing)
    assert done.returncode == 3
    assert "is no checkpoint" in done.stderr
    assert "2 ranks ended with code 3" in done.stderr


def test_a_rank_that_is_killed_ends_all_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    """That is said, and one process alone goes on from it."""
    (tmp_path / "sitecustomize.py").write_text(DIES_WHILE_IT_KEEPS)
    state = tmp_path / "state.npz"
    words = (SPEC[0], SPEC[1], "--gap", "1e-9", "--mpi", "2", "--checkpoint", state)
    done = run(*words, PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    assert "certified" not in done.stdout
    assert f"{state} has the last checkpoint: the same command goes on from there" in done.stderr
    told: list[str] = []
    flow = alltoall.solve(
        SPEC[1], method="first-order", gap=1e-3, checkpoint=state, progress=told.append
    )
    assert any(str(line).startswith("from a checkpoint after") for line in told)
    assert alltoall.verify(flow).facts["gap"] <= 1e-3


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
