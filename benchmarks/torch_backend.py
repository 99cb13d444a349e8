"""All-to-alls of the torch backend against gloo's own, as ratios of times in one run.

    python benchmarks/torch_backend.py [TOPOLOGY] [SHARD...]

Four ranks by default, all on this machine and no link emulated: so the ratio is what the software
costs, in Python and in hops, and nothing about a network. Even shards without splits, and the same
sizes on average with splits that differ, for which ranks first tell each other their sizes. Calls
by schedule and by gloo take turns; a time is that of the slowest rank, and the median counts.
"""

import os
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from alltoall.runtime.processes import Command, grouped

SHARDS = ("1K", "4K", "16K", "64K", "256K", "1M")
TURNS, WARMUP = 40, 5
LIMIT = 900.0


def launch(topology: str, shards: tuple[str, ...]) -> str:
    """Start as many ranks as the topology has terminals; return what the first one said."""
    import alltoall  # noqa: PLC0415  (only the launcher needs a solver)

    schedule = alltoall.schedule(topology)
    ranks = schedule.problem.demand.terminals
    with grouped() as group:
        path = group.folder / "schedule.json"
        schedule.save(path)
        variables = {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo", **os.environ}
        commands = [
            Command(
                [sys.executable, __file__, "--rank", str(rank), str(ranks), str(path), *shards],
                {**variables, "ALLTOALL_STORE": str(group.folder / "store")},
                group.folder / f"{rank}.log",
            )
            for rank in range(ranks)
        ]
        group.run(commands, LIMIT, "the benchmark")
        return commands[0].log.read_text()


def work(rank: int, ranks: int, path: Path, shards: list[str]) -> None:
    """Measure as one rank."""
    import torch  # noqa: PLC0415
    import torch.distributed as dist  # noqa: PLC0415

    from alltoall.ir.quantities import parse_sizes  # noqa: PLC0415
    from alltoall.runtime.torch_backend import wrap  # noqa: PLC0415

    store = dist.FileStore(os.environ["ALLTOALL_STORE"], ranks)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=ranks)
    gloo, ours = dist.group.WORLD, wrap(None, path)

    def slowest(call: Callable[[], object]) -> float:
        dist.barrier()
        begin = time.perf_counter()
        call()
        taken = torch.tensor(time.perf_counter() - begin, dtype=torch.float64)
        dist.all_reduce(taken, dist.ReduceOp.MAX)
        return float(taken)

    def row(size: int, table: "torch.Tensor | None") -> str:
        sent = [size] * ranks if table is None else table[rank].tolist()
        received = [size] * ranks if table is None else table[:, rank].tolist()
        given = torch.zeros(sum(sent), dtype=torch.uint8)
        taken = torch.zeros(sum(received), dtype=torch.uint8)
        splits = () if table is None else (received, sent)
        times: dict[object, list[float]] = {gloo: [], ours: []}
        for _ in range(TURNS + WARMUP):
            for group, found in times.items():
                call = partial(dist.all_to_all_single, taken, given, *splits, group=group)
                found.append(slowest(call))
        native, scheduled = (statistics.median(found[WARMUP:]) for found in times.values())
        kind = "even" if table is None else "splits"
        micro = f"{scheduled * 1e6:10.0f} {native * 1e6:10.0f}"
        return f"{size:>9} {kind:>7} {micro} {scheduled / native:7.2f}"

    rows = [f"{'shard B':>9} {'':>7} {'ours us':>10} {'gloo us':>10} {'ratio':>7}"]
    for text in shards:
        (size,) = parse_sizes(text)
        random = torch.Generator().manual_seed(0)
        uneven = torch.randint(0, 2 * size, (ranks, ranks), generator=random)
        rows += [row(size, None), row(size, uneven)]
    if rank == 0:
        sys.stdout.write("\n".join(rows) + "\n")
    dist.barrier()
    dist.destroy_process_group()


def main(words: list[str]) -> None:
    """Measure and print the table."""
    if words[:1] == ["--rank"]:
        work(int(words[1]), int(words[2]), Path(words[3]), words[4:])
        return
    topology, *shards = words or ["hypercube:2"]
    sys.stdout.write(f"{topology}\n{launch(topology, tuple(shards) or SHARDS)}")


if __name__ == "__main__":
    main(sys.argv[1:])
