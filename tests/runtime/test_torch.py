import importlib
import os
import sys
from pathlib import Path

import pytest

from alltoall.errors import MissingComponentError, VerificationError
from alltoall.runtime.launch import RunSettings, run_schedule
from alltoall.runtime.processes import Command, grouped
from gloo import INSTALLED, ON_THIS_MACHINE, needs_torch, start
from saved import RANKS, save, save_all

HERE = Path(__file__).parent
DIES = """
import os, sys
import torch.distributed as dist
store, rank = dist.FileStore(sys.argv[1], 2), int(sys.argv[2])
dist.init_process_group("gloo", store=store, rank=rank, world_size=2)
if rank == 1: os._exit(7)
dist.recv(__import__("torch").zeros(1), 1)
"""


@needs_torch
def test_every_byte_arrives_by_gloo(tmp_path: Path) -> None:
    """All schedules, types and sizes move the right bytes."""
    said = start(HERE / "torch_ranks.py", RANKS, save_all(tmp_path), tmp_path)
    assert "all as it must be" in said[0]


@needs_torch
def test_a_rank_of_gloo_that_dies_ends_the_run(tmp_path: Path) -> None:
    """The other is ended, and the error says why."""
    environment = {**ON_THIS_MACHINE, **os.environ}
    commands = [
        Command(
            [sys.executable, "-c", DIES, str(tmp_path / "store"), rank],
            environment,
            tmp_path / rank,
        )
        for rank in "01"
    ]
    with pytest.raises(VerificationError, match="a rank ended early"), grouped() as group:
        group.run(commands, 300, "the test")


@needs_torch
def test_run_by_gloo(tmp_path: Path) -> None:
    """The launcher starts the ranks and brings back checked times of both all-to-alls."""
    settings = RunSettings(sizes=(1, 1000), iterations=2, warmup=1, timeout=120)
    report = run_schedule(save(tmp_path, "complete:2"), "torch", settings)
    assert [row.bytes for row in report.rows] == [1, 1000]
    assert report.native == "all_to_all_single"


@pytest.mark.skipif(INSTALLED, reason="torch is installed")
def test_without_torch(tmp_path: Path) -> None:
    """Where torch is missing, the error names the command that installs it."""
    with pytest.raises(MissingComponentError, match=r"'\.\[torch\]' in a clone"):
        run_schedule(save(tmp_path), "torch")
    with pytest.raises(MissingComponentError, match=r"'\.\[torch\]' in a clone"):
        importlib.import_module("alltoall.runtime.torch")
