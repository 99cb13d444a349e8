"""A solve that was stopped goes on from its checkpoint, and only from one of its own problem."""

import stat
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from alltoall.check.flow import check_flow
from alltoall.errors import InputError, UsageError
from alltoall.flows import best_so_far, first_order_search
from alltoall.flows.best_so_far import Checkpoint, CheckpointFile
from alltoall.flows.exact import by_source
from alltoall.flows.first_order import solve_by_steps
from alltoall.flows.program import whole_program
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.settings import SolveSettings
from alltoall.topologies.spec import build

HARD = Problem.all_to_all(build("jellyfish:n=30,d=3,seed=1"))
OTHER = Problem.all_to_all(build("jellyfish:n=30,d=3,seed=2"))


def by_steps(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve by steps alone."""
    program = whole_program(problem, by_source(problem))
    return solve_by_steps(problem, program, settings, "first-order")


def test_a_solve_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the proof that it had, and to the gap that was asked for."""
    said: list[str] = []
    file = tmp_path / "state.npz"
    settings = SolveSettings(gap=1e-5, workers=1, checkpoint=file, report=said.append)
    with monkeypatch.context() as stopping:
        stopping.setattr(
            first_order_search, "STEP_DEFAULTS", first_order_search.StepParams(most_steps=300)
        )
        early = by_steps(HARD, settings)
    assert early.status is Status.GAP_NOT_REACHED
    later = by_steps(HARD, settings)
    assert any(line.startswith("from a checkpoint after 300 steps") for line in said)
    assert later.gap <= 1e-5 < early.gap
    assert later.bound >= early.bound
    check_flow(later)
    assert list(tmp_path.iterdir()) == [file]


def test_checkpoints_are_written_on_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not only at the end: a process that is killed leaves one."""
    file = tmp_path / "state.npz"
    monkeypatch.setattr(best_so_far, "CHECKPOINT_SECONDS", 0.0)
    flow = by_steps(HARD, SolveSettings(gap=1e-5, workers=1, checkpoint=file))
    assert flow.status.done
    assert file.exists()


def test_what_is_no_checkpoint_of_this_problem_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before a step is taken, with what to do."""
    file = tmp_path / "state.npz"
    settings = SolveSettings(gap=1e-5, workers=1, checkpoint=file)
    monkeypatch.setattr(best_so_far, "CHECKPOINT_SECONDS", 0.0)
    by_steps(HARD, settings)
    with pytest.raises(InputError, match=r"a checkpoint of another problem.*remove this one"):
        by_steps(OTHER, settings)
    file.write_bytes(file.read_bytes()[:500])
    with pytest.raises(InputError, match="is no checkpoint"):
        by_steps(HARD, settings)
    nowhere = replace(settings, checkpoint=file / "state.npz")
    with pytest.raises(UsageError, match="cannot be written"):
        by_steps(HARD, nowhere)


def test_another_number_of_ranks_reads_the_rows(tmp_path: Path) -> None:
    """Three ranks wrote them, two read them; what one of them did not write is no checkpoint."""
    rows = np.arange(12.0).reshape(6, 2)
    file = tmp_path / "state.npz"
    for rank in range(3):
        mine = rows[2 * rank : 2 * rank + 2]
        state = Checkpoint(2 * rank, mine, mine + 1, np.ones(2), np.ones(2), 1.5, 1.0, 7)
        CheckpointFile(file, "mark", rank).write(state)
    for first in (0, 3):
        found = CheckpointFile(file, "mark", first=first).read(3)
        assert found is not None
        assert found.flow.tolist() == rows[first : first + 3].tolist()
        assert found.potential.tolist() == (rows[first : first + 3] + 1).tolist()
        assert (found.bound, found.steps) == (1.5, 7)
    file.chmod(0o600)
    CheckpointFile(file, "mark").write(state)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.with_name("state.npz.2").unlink()
    assert CheckpointFile(file, "mark", first=3).read(3) is None
