"""A rank of test_torch_backend.py: `torch_backend_ranks.py STORE RANK RANKS FILE GROUPS BROKEN`.

Everything is done twice, by the backend "alltoall" and by gloo, and compared to the last bit.
"""

import importlib.util
import os
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional

from alltoall.runtime.schedule_set import ScheduleSet
from alltoall.runtime.torch_backend import ScheduledGroup, wrap

rank, ranks = int(sys.argv[2]), int(sys.argv[3])
FILE, GROUPS, BROKEN = sys.argv[4:]
EXAMPLE = Path(__file__).parents[2] / "examples" / "moe_torch.py"


def check(found: bool, what: str) -> None:
    """End this rank at once if something is not as it must be."""
    if not found:
        sys.stderr.write(f"rank {rank}: {what}\n")
        sys.stderr.flush()
        os._exit(1)


def counts(seed: int) -> torch.Tensor:
    """Return how many rows every rank sends to every rank: some none, one many, alike at all."""
    found = torch.randint(0, 5, (ranks, ranks), generator=torch.Generator().manual_seed(seed))
    found[seed % ranks] = 0
    found[0, ranks - 1] = 1001
    return found


def values(*shape: int, seed: int = 0) -> torch.Tensor:
    """Return numbers that no other rank has."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(1000 * seed + rank))


def both(call: Callable[[Any], Any], what: str, world: Any, gloo: Any, taken: int = 1) -> None:
    """Do the same by both, and compare; so many all-to-alls are to go by the schedule."""
    before = world.taken
    found, expected = call(world), call(gloo)
    same = all(torch.equal(*pair) for pair in zip(found, expected, strict=True))
    check(same, f"{what}: {found}, not {expected}")
    check(world.taken - before == taken, f"{what}: {world.taken - before} by the schedule")


def even(group: Any) -> list[torch.Tensor]:
    """Exchange equal shards of all types and sizes, also none, strided, conjugated, by halves."""
    found = []
    for dtype in (torch.float32, torch.uint8, torch.bool, torch.bfloat16, torch.cfloat):
        for width in (0, 1, 1001):
            given = values(ranks, width).mul(9).to(dtype)
            found.append(torch.zeros_like(given))
            dist.all_to_all_single(found[-1], given, group=group)
    given = torch.complex(values(ranks, 3), values(ranks, 3)).conj().resolve_conj()
    found.append(torch.zeros_like(given))
    dist.all_to_all_single(found[-1], given, group=group)
    return found


def uneven(group: Any) -> list[torch.Tensor]:
    """Exchange rows by splits, in whole and in part."""
    found = []
    for seed in range(6):
        table = counts(seed)
        sent, received = table[rank].tolist(), table[:, rank].tolist()
        found.append(torch.zeros(sum(received), 3))
        dist.all_to_all_single(found[-1], values(sum(sent), 3), received, sent, group=group)
    for splits in (([2] * ranks, None), (None, [2] * ranks)):
        found.append(torch.zeros(2 * ranks))
        dist.all_to_all_single(found[-1], values(2 * ranks), *splits, group=group)
    return found


def strided(group: Any) -> list[torch.Tensor]:
    """Exchange what does not lie in one piece, and a tensor with itself."""
    output, given = torch.zeros(2 * ranks, 2), values(ranks, 4)
    if isinstance(group, ScheduledGroup):
        dist.all_to_all_single(output[::2, 1], given[:, 2], group=group)
        dist.all_to_all_single(given[:, 3:].T.squeeze(0), given[:, 3], group=group)
        return [output[::2, 1], given[:, 3]]
    found = [torch.zeros(ranks) for _ in range(2)]
    dist.all_to_all_single(found[0], given[:, 2].contiguous(), group=group)
    dist.all_to_all_single(found[1], given[:, 3].contiguous(), group=group)
    return found


def outstanding(group: Any) -> list[torch.Tensor]:
    """Have several under way, do something else, and wait for them in any order."""
    found, works = [], []
    for seed in range(5):
        table = counts(seed)
        sent, received = table[rank].tolist(), table[:, rank].tolist()
        found.append(torch.zeros(sum(received)))
        call = (found[-1], values(sum(sent), seed=seed), received, sent)
        works.append(dist.all_to_all_single(*call, group=group, async_op=True))
        total = torch.ones(3)
        dist.all_reduce(total, group=group)
        found.append(total)
    found.append(torch.zeros(ranks))
    dist.all_to_all_single(found[-1], values(ranks), group=group)
    for work in reversed(works):
        check(work.wait() and work.is_completed(), "a work that has not ended")
    with torch.inference_mode():
        found.append(torch.zeros(ranks))
        work = dist.all_to_all_single(found[-1], values(ranks), group=group, async_op=True)
        future = work.get_future()
        work.wait()
        future.wait()
    return found


def lists(group: Any) -> list[torch.Tensor]:
    """Exchange one tensor per rank, of sizes that differ."""
    table = counts(3)
    given = [values(count, 2, seed=7).to(torch.cfloat) for count in table[rank].tolist()]
    found = [torch.zeros(count, 2, dtype=torch.cfloat) for count in table[:, rank].tolist()]
    if isinstance(group, ScheduledGroup):
        dist.all_to_all(found, given, group=group)
        return found
    # Gloo's own takes only tensors of one size.
    output, splits = torch.cat(found), [[len(each) for each in side] for side in (found, given)]
    dist.all_to_all_single(output, torch.cat(given), *splits, group=group)
    return list(output.split(splits[0]))


def gradients(group: Any) -> list[torch.Tensor]:
    """Go there and back by torch's own functions that have gradients."""
    table = counts(1)
    sent, received = table[rank].tolist(), table[:, rank].tolist()
    given = values(sum(sent), 2).requires_grad_()
    output = functional.all_to_all_single_autograd(given, received, sent, group)
    output.square().sum().backward()
    plain = functional.all_to_all_single(given.detach(), received, sent, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import torch.distributed.nn.functional as old

        other = values(ranks, 2).requires_grad_()
        old.all_to_all_single(torch.zeros(ranks, 2), other, group=group).square().sum().backward()
    return [output.detach(), given.grad, plain + 0, other.grad]


def all_else(group: Any) -> list[torch.Tensor]:
    """Do what is no all-to-all."""
    found = [values(4) for _ in range(4)]
    dist.all_reduce(found[0], group=group)
    dist.broadcast(found[1], 1, group=group)
    dist.reduce(found[2], 0, dist.ReduceOp.MAX, group=group)
    gathered = [torch.zeros(4) for _ in range(ranks)]
    dist.all_gather(gathered, found[3], group=group)
    part = torch.zeros(4)
    dist.reduce_scatter(part, [found[3] + each for each in range(ranks)], group=group)
    dist.scatter(found[3], gathered if rank == 0 else None, 0, group=group)
    request = dist.isend(found[0], (rank + 1) % ranks, group=group)
    passed = torch.zeros(4)
    dist.recv(passed, (rank - 1) % ranks, group=group)
    request.wait()
    objects: list[Any] = [None] * ranks
    dist.all_gather_object(objects, rank, group=group)
    check(objects == list(range(ranks)), f"objects {objects}")
    dist.barrier(group=group)
    found[2] *= rank == 0
    return [*found, *gathered, part, passed]


def refusals(world: Any, gloo: Any) -> None:
    """Refuse what PyTorch refuses, in its own words, and leave nothing waiting."""
    three, whole = torch.zeros(3, dtype=torch.uint8), torch.zeros(2 * ranks)
    bad: list[tuple[Any, ...]] = [
        (whole.clone(), whole, [2, 2], [1, 1]),
        (whole.clone(), whole, [1] * ranks, [2] * ranks),
        (whole.clone(), whole, [3] * ranks, None),
        (three.clone(), three),
        (whole.clone(), whole.int()),
        (whole.clone(), "whole"),
    ]
    for call in bad:
        said = []
        for group in (world, gloo):
            try:
                dist.all_to_all_single(*call, group=group)
            except (RuntimeError, ValueError, TypeError) as error:
                said.append(f"{type(error).__name__}: {error}")
        check(len(said) == 2 and said[0] == said[1], f"refused with {said}")
    wrong = [1] * ranks
    wrong[0] += rank == 1
    try:
        dist.all_to_all_single(torch.zeros(ranks), torch.zeros(sum(wrong)), [1] * ranks, wrong)
    except RuntimeError as error:
        check("rank 1 sends 8 bytes to rank 0, which has room for 4" in str(error), str(error))
    else:
        check(False, "took splits on which ranks disagree")


def wrapped(gloo: Any) -> None:
    """Put a schedule around a group of gloo: by file, by SPEC, from a size on, for some pairs."""
    for given in (FILE, [BROKEN, FILE], "complete:4" if ranks == 4 else "hypercube:3"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            group = wrap(gloo, given)
        both(even, f"wrapped by {given}", group, gloo, 16)
    group = wrap(gloo, FILE, min_bytes=100)
    both(even, "above a size", group, gloo, 5)
    check(group.passed == 11, f"{group.passed} below a size")
    both(lists, "many bytes", group, gloo)
    small = torch.zeros(ranks)
    dist.all_to_all_single(small, values(ranks), [1] * ranks, [1] * ranks, group=group)
    check(group.passed == 12, "few bytes in splits")
    group = wrap(gloo, GROUPS)
    both(even, "pairs without chunks", group, gloo, 5)
    pairs = [int(each // 2 == rank // 2) for each in range(ranks)]
    dist.all_to_all_single(torch.zeros(2), torch.ones(2), pairs, pairs, group=group)
    check(group.taken == 6, "pairs with chunks")
    check(group.group_name == f"{gloo.group_name}/alltoall/5", f"a name {group.group_name}")
    both(gradients, "by name", wrap(gloo, FILE), gloo, 5)
    check(dist.get_world_size(group) == ranks and dist.get_rank(group) == rank, "its ranks")
    dist.destroy_process_group(group)
    dist.all_reduce(torch.zeros(1), group=gloo)


def in_groups() -> None:
    """Take the schedule of the size of a group, or gloo if there is none."""
    for size in (2, ranks // 2):
        for first in range(0, ranks, size):
            group = dist.new_group(list(range(first, first + size)))
            if first <= rank < first + size:
                found = torch.zeros(size, dtype=torch.int64)
                dist.all_to_all_single(found, torch.full_like(found, rank), group=group)
                check(found.tolist() == list(range(first, first + size)), f"{found} in a group")
                check(group.taken == bool(group.schedule), f"{group.report()}")


def broken() -> None:
    """Files that are none cost one warning, and nothing else."""
    for given in (Path(BROKEN), Path("no such file"), b"no path"):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            group = dist.new_group(pg_options=ScheduleSet([given]))  # type: ignore[list-item]
        ours = [each for each in said if "alltoall" in str(each.message)]
        check(len(ours) == (rank == 0), f"{given!r}: {len(ours)} warnings: {ours}")
        output = torch.zeros(ranks)
        dist.all_to_all_single(output, values(ranks), group=group)
        check((group.taken, group.passed) == (0, 1), "went by something that is no schedule")


def experts(world: Any, gloo: Any) -> None:
    """Train a mixture of experts: it learns the same, to the last bit."""
    spec = importlib.util.spec_from_file_location("moe_torch", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)

    def learnt(group: Any) -> list[torch.Tensor]:
        losses, model = example.train(group=group)
        parameters = list(model.parameters())
        return [torch.tensor(losses), *parameters, *(each.grad for each in parameters)]

    both(learnt, "experts", world, gloo, 12)


def main() -> None:
    """Run everything, in the world and in groups."""
    store = dist.FileStore(sys.argv[1], ranks)
    dist.init_process_group("alltoall", store=store, rank=rank, world_size=ranks)
    world, gloo = dist.group.WORLD, dist.new_group(backend="gloo")
    check(world.schedule != "" and dist.get_backend() == "alltoall", "no schedule for the world")
    both(even, "even", world, gloo, 16)
    both(uneven, "uneven", world, gloo, 8)
    both(strided, "strided", world, gloo, 2)
    both(outstanding, "outstanding", world, gloo, 7)
    both(lists, "lists", world, gloo)
    both(gradients, "gradients", world, gloo, 5)
    both(all_else, "all else", world, gloo, 0)
    experts(world, gloo)
    refusals(world, gloo)
    both(even, "after refusals", world, gloo, 16)
    wrapped(gloo)
    in_groups()
    broken()
    dist.barrier()
    dist.destroy_process_group()
    if rank == 0:
        sys.stdout.write("all as it must be\n")


main()
