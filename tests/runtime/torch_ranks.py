"""A rank of test_torch.py: `torch_ranks.py STORE RANK RANKS GROUP_FILE FILE...`."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from rank_data import DTYPES, ITEMS, received, same_bytes, sent

from a2aflow.errors import UsageError
from a2aflow.ir.json import read_json, schedule_from_json
from a2aflow.runtime.torch_dist import Alltoall

world_rank, world_ranks = int(sys.argv[2]), int(sys.argv[3])
MEMBERS = [2, 3, 5, 7]
"""A group whose ranks are not those of the world."""


def check(found: bool, what: str) -> None:
    """End this rank at once if something is not as it must be."""
    if not found:
        sys.stderr.write(f"rank {world_rank}: {what}\n")
        sys.stderr.flush()
        os._exit(1)


def exchange(
    alltoall: Alltoall, items: int, dtype: type, seed: int, what: str, group: Any = None
) -> None:
    """Exchange once and compare."""
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    send = torch.from_numpy(sent(rank, ranks, items, dtype, seed))
    recv = torch.zeros_like(send)
    alltoall(send, recv)
    same = same_bytes(recv.numpy(), received(rank, ranks, items, dtype, seed))
    check(same, f"{what} {items} of {dtype.__name__}, {seed}")


def refusals(alltoall: Alltoall) -> None:
    """Buffers that do not fit are refused before anything is sent."""
    ranks = world_ranks
    good = torch.zeros(ranks)
    bad = [
        (torch.zeros(ranks + 1), torch.zeros(ranks + 1)),
        (good, torch.zeros(2 * ranks)),
        (good, good),
        (torch.zeros(2 * ranks)[::2], torch.zeros(ranks)),
    ]
    for send, recv in bad:
        try:
            alltoall(send, recv)
        except UsageError:
            continue
        check(False, f"took {send.shape} and {recv.shape}")


def in_a_group(file: str) -> None:
    """Exchange among some ranks of the world."""
    group = dist.new_group(MEMBERS)
    if world_rank in MEMBERS:
        schedule = schedule_from_json(read_json(Path(file)), file)
        exchange(Alltoall(schedule, group), 3, np.float64, 9, "in a group", group)


def main(group_file: str, files: list[str]) -> None:
    """Run everything, in the world and in a group."""
    store = dist.FileStore(sys.argv[1], world_ranks)
    dist.init_process_group("gloo", store=store, rank=world_rank, world_size=world_ranks)
    for file in files:
        alltoall = Alltoall(schedule_from_json(read_json(Path(file)), file))
        for seed, dtype in enumerate(DTYPES):
            for items in ITEMS:
                exchange(alltoall, items, dtype, seed, Path(file).name)
    refusals(alltoall)
    exchange(alltoall, 3, np.float64, 9, "after refusals")
    in_a_group(group_file)
    dist.barrier()
    dist.destroy_process_group()
    if world_rank == 0:
        sys.stdout.write("all as it must be\n")


main(sys.argv[4], sys.argv[5:])
