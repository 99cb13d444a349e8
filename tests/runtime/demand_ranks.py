"""A rank of test_random_demands.py: `demand_ranks.py FILE...`, each file among as many as it has.

Every file is used with the demand that it was made for, and as a template: any sizes of the pairs
that it has chunks for. Ranks that a schedule does not have wait for the others.
"""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI

from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import shards_of
from alltoall.ir.files.artefacts import read_as
from alltoall.ir.schedule import Schedule
from alltoall.runtime.mpi import Alltoall

SIZE = 23
"""Bytes of a shard of size 1: no multiple of most numbers of chunks."""


def exchanged(alltoall: Alltoall, sizes: Ints, rank: int, seed: int) -> bool:
    """Exchange bytes that all ranks know, and say whether all arrived here."""
    ranks = range(len(sizes))
    data = [[np.random.default_rng((seed, s, d)).bytes(int(sizes[s, d])) for d in ranks]
            for s in ranks]  # fmt: skip
    send = np.frombuffer(b"".join(data[rank]), np.uint8)
    recv = np.zeros(int(sizes[:, rank].sum()), np.uint8)
    alltoall(send, recv, sizes)
    return recv.tobytes() == b"".join(data[source][rank] for source in ranks)


def wrong_in(file: str, comm: "MPI.Intracomm") -> list[str]:
    """Return what went wrong with one file."""
    schedule = read_as(Path(file), Schedule)
    ranks = len(schedule.problem.topology.terminals)
    some = comm.Split(0 if comm.rank < ranks else MPI.UNDEFINED, comm.rank)
    if some == MPI.COMM_NULL:
        return []
    pairs = np.indices((ranks, ranks))
    own = shards_of(schedule.problem.demand, SIZE).of(*pairs)
    other = np.random.default_rng(ranks).integers(0, 50, own.shape)
    other[schedule.chunk_counts() == 0] = 0
    wrong = []
    with Alltoall(schedule, MPI.Intracomm(some)) as alltoall:
        for seed, sizes in enumerate((own, other, own)):
            if not exchanged(alltoall, np.asarray(sizes), some.rank, seed):
                wrong.append(f"{Path(file).name}, call {seed}, rank {some.rank}")
    some.Free()
    return wrong


def main(files: list[str]) -> None:
    """Run every file, and say what went wrong."""
    wrong = [each for file in files for each in wrong_in(file, MPI.COMM_WORLD)]
    found = MPI.COMM_WORLD.gather(wrong)
    if found is not None:
        sys.stdout.write("".join(f"wrong: {each}\n" for part in found for each in part))
        sys.stdout.write(f"{len(files)} files done\n")


main(sys.argv[1:])
