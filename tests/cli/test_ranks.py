"""`mpiexec alltoall solve`: ranks that share out the sources find what one process finds."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import alltoall
from alltoall.runtime.mpiexec import find_mpi

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


def run(*words: object, ranks: int = 1, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in processes of its own, as ranks are."""
    command = [sys.executable, "-m", "alltoall", *map(str, words)]
    known = {**os.environ, **variables}
    if ranks > 1:
        mpi = find_mpi()
        command, known = mpi.command(ranks, command), {**mpi.variables(ranks), **variables}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=300, check=False, env=known
    )


def test_two_ranks_find_what_one_process_does(tmp_path: Path) -> None:
    """The same time and bound up to rounding, printed once, in a file that verifies."""
    alone = json.loads(run(*SPEC, "--method", "first-order").stdout)
    saved, state = tmp_path / "flow.npz", tmp_path / "state.npz"
    way = ("--method", f"first-order:checkpoint={state}")
    done = run(*SPEC, *way, "--output", saved, ranks=2)
    assert done.returncode == 0, done.stderr
    both = json.loads(done.stdout)
    assert both["gap"] <= 1e-3
    assert (both["time"], both["bound"]) == pytest.approx((alone["time"], alone["bound"]), rel=1e-4)
    assert run("verify", saved).returncode == 0


def test_two_ranks_sweep_together(tmp_path: Path) -> None:
    """Where sweeps are the way, the gap is reached, in a file that verifies."""
    saved = tmp_path / "flow.npz"
    done = run("solve", "jellyfish:n=80,d=4,seed=1", *SPEC[2:], "--output", saved, ranks=2)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["gap"] <= 1e-3
    assert run("verify", saved).returncode == 0


def test_a_rank_that_fails_ends_all_with_its_reason(tmp_path: Path) -> None:
    """Nobody waits for it, and the exit code is its own."""
    nothing = tmp_path / "state.npz"
    nothing.write_text("no checkpoint")
    done = run(*SPEC, "--method", f"first-order:checkpoint={nothing}", ranks=2)
    assert done.returncode == 3
    assert "is no checkpoint" in done.stderr


def test_a_rank_that_is_killed_ends_all_and_leaves_a_checkpoint(tmp_path: Path) -> None:
    """That is said, and one process alone goes on from it."""
    (tmp_path / "sitecustomize.py").write_text(DIES_WHILE_IT_KEEPS)
    state = tmp_path / "state.npz"
    words = (SPEC[0], SPEC[1], "--gap", "1e-9", "--method", f"first-order:checkpoint={state}")
    done = run(*words, ranks=2, PYTHONPATH=str(tmp_path))
    assert done.returncode != 0
    assert "proven" not in done.stdout
    told: list[str] = []
    flow = alltoall.solve(
        SPEC[1], f"first-order:checkpoint={state}", gap=0.001, progress=told.append
    )
    assert any(str(line).startswith("from a checkpoint after") for line in told)
    assert alltoall.verify(flow).facts["gap"] <= 1e-3
