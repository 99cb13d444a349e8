"""A rank of test_torch.py: `torch_ranks.py STORE RANK RANKS GROUP_FILE FILE...`."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from rank_data import DTYPES, ITEMS, received, same_bytes, sent

from alltoall.errors import UsageError
from alltoall.ir.files.json.saved_answers import answer_from_json
from alltoall.ir.files.json.values import read_json
from alltoall.runtime.torch import Alltoall

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
    alltoall(recv, send)
    same = same_bytes(recv.numpy(), received(rank, ranks, items, dtype, seed))
    check(same, f"{what} {items} of {dtype.__name__}, {seed}")


def refusals(alltoall: Alltoall) -> None:
    """Buffers that do not fit are refused before anything is sent."""
    ranks = world_ranks
    good, twice = torch.zeros(ranks), torch.zeros(2 * ranks)
    bad = [
        (good, np.zeros(ranks), "`input` of type torch.Tensor, got ndarray"),
        ([0] * ranks, good, "`output` of type torch.Tensor, got list"),
        (torch.zeros(ranks), twice[::2], "the input is not"),
        (twice[::2], torch.zeros(ranks), "the output is not"),
        (torch.zeros(ranks, dtype=torch.cfloat), torch.zeros(ranks, dtype=torch.cfloat).conj(),
         "the input is not"),
        (good, twice, "not equal in size"),
        (good, torch.zeros(ranks, dtype=torch.int32), "data type"),
        (torch.zeros(ranks, dtype=torch.float64), twice, "data type"),
        (good, torch.zeros(ranks, device="meta"), "or device"),
        (torch.zeros(ranks + 1), torch.zeros(ranks + 1), "dimension 0 does not divide"),
        (torch.zeros(1, ranks), torch.zeros(ranks), "dimension 0 does not divide"),
        (torch.zeros(ranks), torch.zeros(1, ranks), "dimension 0 does not divide"),
        (torch.zeros(()), torch.zeros(()), "dimension 0 does not divide"),
        (torch.zeros(ranks, requires_grad=True), good, "the order is (output, input)"),
        (good, good, "overlaps"),
        (twice[1 : ranks + 1], twice[:ranks], "overlaps"),
        (twice[:ranks], twice[ranks - 1 : -1], "overlaps"),
    ]  # fmt: skip
    for output, given, problem in bad:
        try:
            alltoall(output, given)
        except UsageError as error:
            check(problem in str(error), f"said {error!r}, not {problem!r}")
        else:
            check(False, f"took what must be refused: {problem}")


def accepted(alltoall: Alltoall) -> None:
    """Take what PyTorch's all-to-all takes, with the same result: its order, names, views."""
    ranks, rank = world_ranks, world_rank
    both = torch.zeros(2 * ranks, 3)
    both[:ranks] = torch.arange(rank, rank + 3 * ranks).reshape(ranks, 3)
    given = both[:ranks].requires_grad_()
    expected = torch.zeros(ranks, 3)
    dist.all_to_all_single(expected, given.detach())
    alltoall(both.detach()[ranks:], given)
    check(torch.equal(both.detach()[ranks:], expected), "the other half of one tensor")
    output = torch.zeros(3 * ranks)
    alltoall(output=output, input=given.reshape(-1))
    check(torch.equal(output, expected.reshape(-1)), "by name, and flat")


def lists(alltoall: Alltoall) -> None:
    """Take one tensor per rank of any shape, as PyTorch's `all_to_all` does."""
    ranks, rank = world_ranks, world_rank
    given = [torch.full((rank, to + 1), complex(rank, to)).T for to in range(ranks)]
    output = [torch.zeros(source, rank + 1, dtype=torch.cfloat).T for source in range(ranks)]
    alltoall.all_to_all(output, given)
    for source, each in enumerate(output):
        check(bool((each == complex(source, rank)).all()), f"the tensor from {source}")
    try:
        alltoall.all_to_all(output[1:], given)
    except UsageError as error:
        check("expected one per rank" in str(error), str(error))
    else:
        check(False, "took too few tensors")
    try:
        alltoall.all_to_all([torch.zeros(1)] * ranks, [torch.zeros(1 + rank // 7)] * ranks)
    except RuntimeError as error:
        check("rank 7 sends 8 bytes to rank 0, which has room for 4" in str(error), str(error))
    else:
        check(False, "took sizes on which ranks disagree")


def by_name() -> None:
    """Take a SPEC, which one rank solves; refuse a text that is neither a SPEC nor a file."""
    exchange(Alltoall("hypercube:3"), 3, np.float64, 9, "by SPEC")
    try:
        Alltoall("hypercub:3")
    except UsageError as error:
        check("did you mean 'hypercube'" in str(error), str(error))
    else:
        check(False, "took no SPEC")


def in_a_group(file: str) -> None:
    """Exchange among some ranks of the world."""
    group = dist.new_group(MEMBERS)
    if world_rank in MEMBERS:
        schedule = answer_from_json(read_json(Path(file)), file)
        exchange(Alltoall(schedule, group), 3, np.float64, 9, "in a group", group)


def main(group_file: str, files: list[str]) -> None:
    """Run everything, in the world and in a group."""
    store = dist.FileStore(sys.argv[1], world_ranks)
    dist.init_process_group("gloo", store=store, rank=world_rank, world_size=world_ranks)
    for file in files:
        alltoall = Alltoall(Path(file))
        for seed, dtype in enumerate(DTYPES):
            for items in ITEMS:
                exchange(alltoall, items, dtype, seed, Path(file).name)
    refusals(alltoall)
    accepted(alltoall)
    exchange(alltoall, 3, np.float64, 9, "after refusals")
    lists(alltoall)
    by_name()
    in_a_group(group_file)
    dist.barrier()
    dist.destroy_process_group()
    if world_rank == 0:
        sys.stdout.write("all as it must be\n")


main(sys.argv[4], sys.argv[5:])
