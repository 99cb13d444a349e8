from pathlib import Path

import pytest

import alltoall
from gloo import needs_torch, start
from saved import save

HERE = Path(__file__).parent
PAIRS = {4: [(0, 1), (2, 3)], 8: [(0, 1), (2, 3), (4, 5), (6, 7)]}
DIES = """
import os, sys
import torch, torch.distributed as dist
import alltoall.runtime.torch_backend
store, rank, ranks = dist.FileStore(sys.argv[1], 4), int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("alltoall", store=store, rank=rank, world_size=ranks)
assert dist.group.WORLD.schedule
if rank == 1:
    os._exit(0)
work = dist.all_to_all_single(torch.zeros(4), torch.zeros(4), async_op=True)
try:
    work.wait()
except RuntimeError as error:
    print("ended with", type(error).__name__, work.is_success(), work.exception() is error)
sys.stdout.flush()
os._exit(0)
"""

OTHER_SIZE = """
import sys, warnings
import torch, torch.distributed as dist
import alltoall.runtime.torch_backend
warnings.simplefilter("ignore")
store, rank, ranks = dist.FileStore(sys.argv[1], 2), int(sys.argv[2]), int(sys.argv[3])
dist.init_process_group("alltoall", store=store, rank=rank, world_size=ranks)
for _ in range(3):
    dist.all_to_all_single(torch.zeros(2), torch.zeros(2))
dist.destroy_process_group()
"""


@needs_torch
@pytest.mark.parametrize("quiet", ["", "1"])
def test_all_to_alls_that_used_no_schedule_are_said_once(tmp_path: Path, quiet: str) -> None:
    """When the group ends, by one rank, with the reason."""
    program = tmp_path / "other_size.py"
    program.write_text(OTHER_SIZE)
    variables = {"ALLTOALL_SCHEDULES": str(save(tmp_path, "ring:4")), "ALLTOALL_QUIET": quiet}
    first, second = start(program, 2, [], tmp_path, variables)
    line = (
        "alltoall: 0 of 3 all-to-alls of group 0 used a schedule: group has 2 ranks, schedule has 4"
    )
    assert [each for each in first.splitlines() if "alltoall" in each] == ([] if quiet else [line])
    assert "alltoall" not in second


@needs_torch
@pytest.mark.parametrize(("ranks", "topology"), [(4, "hypercube:2"), (8, "twisted-hypercube:3")])
def test_the_backend_does_what_gloo_does(tmp_path: Path, ranks: int, topology: str) -> None:
    """All-to-alls of every form go by the schedule, all else as ever, with the same results."""
    files = [save(tmp_path, topology), tmp_path / "groups.npz", tmp_path / "broken.json"]
    alltoall.schedule(f"ring:{ranks}", groups=PAIRS[ranks]).save(files[1])
    files[2].write_text(files[0].read_text()[:-100])
    smaller = save(tmp_path, "hypercube:2") if ranks == 8 else save(tmp_path, "ring:3")
    said = start(
        HERE / "torch_backend_ranks.py",
        ranks,
        [str(each) for each in files],
        tmp_path,
        {"ALLTOALL_SCHEDULES": f"{files[0]}:{smaller}", "ALLTOALL_REPORT": "1"},
        "torch._dynamo",  # It comes with every optimizer.
    )
    assert "all as it must be" in said[0]
    reason = f"used the schedule of {topology}: tensors do not fit together"
    assert f"alltoall: 67 of 71 all-to-alls of group 0 {reason}\n" in said[0]


@needs_torch
def test_a_rank_that_dies_is_an_error_of_the_others(tmp_path: Path) -> None:
    """Whoever waits is told; nobody hangs."""
    variables = {"ALLTOALL_SCHEDULES": str(save(tmp_path, "hypercube:2"))}
    program = tmp_path / "dies.py"
    program.write_text(DIES)
    said = start(program, 4, [], tmp_path, variables)
    assert [each.strip().splitlines()[-1:] for each in said] == [
        [] if rank == 1 else ["ended with RuntimeError False True"] for rank in range(4)
    ]
