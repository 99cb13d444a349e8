"""A rank of test_torch.py: `torch_ranks.py STORE RANK RANKS FILE...`."""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from rank_data import DTYPES, ITEMS, received, same_bytes, sent

from alltoall.runtime.torch_backend import wrap

rank, ranks = int(sys.argv[2]), int(sys.argv[3])


def main(files: list[str]) -> None:
    """Exchange by every schedule, all types and sizes."""
    store = dist.FileStore(sys.argv[1], ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    for file in files:
        group = wrap(None, Path(file))
        for seed, dtype in enumerate(DTYPES):
            for items in ITEMS:
                send = torch.from_numpy(sent(rank, ranks, items, dtype, seed))
                recv = torch.zeros_like(send)
                dist.all_to_all_single(recv, send, group=group)
                expected = received(rank, ranks, items, dtype, seed)
                if not same_bytes(recv.numpy(), expected) or group.passed:
                    sys.stderr.write(f"rank {rank}: {file}, {items} of {dtype.__name__}\n")
                    sys.stderr.flush()
                    os._exit(1)
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        sys.stdout.write("all as it must be\n")


main(sys.argv[4:])
