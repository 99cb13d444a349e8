"""A rank of test_mpi.py: `mpi_ranks.py FILE...` checks every schedule on every kind of buffer."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from mpi4py import MPI
from numpy.typing import NDArray
from rank_data import DTYPES, ITEMS, received, same_bytes, sent

from alltoall.errors import UsageError
from alltoall.ir.files.json.saved_answers import answer_from_json
from alltoall.ir.files.json.values import read_json
from alltoall.ir.schedule import Schedule
from alltoall.runtime.mpi import Alltoall

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()


def check(found: bool, what: str) -> None:
    """End all ranks if something is not as it must be."""
    if not found:
        sys.stderr.write(f"rank {rank}: {what}\n")
        sys.stderr.flush()
        comm.Abort(1)


def exchange(alltoall: Alltoall, items: int, dtype: type, what: str, calls: int = 1) -> None:
    """Exchange other contents of the same buffers in every call."""
    send: NDArray[Any] = np.empty((ranks, items), dtype)
    recv = np.empty_like(send)
    for seed in range(calls):
        send[:] = sent(rank, ranks, items, dtype, seed)
        recv.view(np.uint8)[:] = 0
        alltoall(send, recv)
        same = same_bytes(recv, received(rank, ranks, items, dtype, seed))
        check(same, f"{what} {items} of {dtype.__name__}, call {seed}")


def many_buffers(alltoall: Alltoall) -> None:
    """Exchange with many buffers in turns, each of them twice."""
    pairs = [(sent(rank, ranks, 5, np.uint8, seed), np.empty((ranks, 5), np.uint8))
             for seed in range(10)]  # fmt: skip
    for _ in range(2):
        for seed, (send, recv) in enumerate(pairs):
            recv[:] = 0
            alltoall(send, recv)
            check(same_bytes(recv, received(rank, ranks, 5, np.uint8, seed)), f"buffer {seed}")


def halves(alltoall: Alltoall) -> None:
    """Two halves of one array are apart, and what is read only may be sent."""
    both = np.concatenate([sent(rank, ranks, 3, np.float64, 5), np.zeros((ranks, 3))])
    given = both[:ranks]
    given.setflags(write=False)
    alltoall(given, both[ranks:])
    check(same_bytes(both[ranks:], received(rank, ranks, 3, np.float64, 5)), "halves")


def of_each(alltoall: Alltoall) -> None:
    """Exchange shards of every size, as MPI_Alltoallv does; twice, then others.

    Some are of none: of a rank that sends nothing, of one that receives nothing, and of all.
    """
    for seed in (1, 1, 2, 3):
        sizes = np.random.default_rng(seed).integers(0, 40, (ranks, ranks))
        sizes[seed % ranks], sizes[:, (seed + 1) % ranks] = 0, 0
        sizes *= seed < 3
        data = [np.random.default_rng((seed, s)).bytes(int(sizes[s].sum())) for s in range(ranks)]
        send = np.frombuffer(data[rank], np.uint8)
        recv, other = (np.zeros(int(sizes[:, rank].sum()), np.uint8) for _ in range(2))
        alltoall(send, recv, sizes)
        comm.Alltoallv([send, sizes[rank].tolist()], [other, sizes[:, rank].tolist()])
        check(same_bytes(recv, other), f"shards of every size {seed}")


def counted(alltoall: Alltoall) -> None:
    """Exchange by counts and displacements as comm.Alltoallv: with gaps, a type, and in place."""
    counts = np.random.default_rng(3).integers(0, 9, (ranks, ranks))
    counts[0, 1:] = 0
    mine, theirs = counts[rank].tolist(), counts[:, rank].tolist()
    gaps = (np.cumsum([0, *mine[:-1]]) + 2 * np.arange(ranks)).tolist()
    send = np.arange(sum(mine) + 2 * ranks, dtype=np.int32) + 1000 * rank
    recv, other = (np.full(sum(theirs), -1, np.int32) for _ in range(2))
    alltoall.v([send, mine, gaps, MPI.INT], [recv, theirs])
    comm.Alltoallv([send, mine, gaps, MPI.INT], [other, theirs])
    check(same_bytes(recv, other), "counts with gaps to send from")
    wide, widest = (np.full(sum(theirs) + 3 * ranks, -1, np.int32) for _ in range(2))
    places = (np.cumsum([0, *theirs[:-1]]) + 3 * np.arange(ranks)).tolist()
    for call, to in ((alltoall.v, wide), (comm.Alltoallv, widest)):
        call([send, (mine, gaps), "i"], [to, (theirs, places), "i"])
    check(same_bytes(wide, widest), "counts with gaps to receive to")
    both = np.minimum(counts, counts.T)[rank].tolist()
    held = np.arange(sum(both), dtype=np.int32) + 100 * rank
    kept = held.copy()
    alltoall.v(MPI.IN_PLACE, [held, both])
    comm.Alltoallv(MPI.IN_PLACE, [kept, both])
    check(same_bytes(held, kept), "counts in place")


def as_mpi4py_has_them(alltoall: Alltoall) -> None:
    """Buffers of all kinds that comm.Alltoall takes, in place, and without waiting."""
    given = sent(rank, ranks, 6, np.float64, 9)
    wanted = received(rank, ranks, 6, np.float64, 9)
    recv = np.zeros_like(given)
    for left, right in (
        ([given, MPI.DOUBLE], [recv, MPI.DOUBLE]),
        ([given, 6 * ranks, MPI.DOUBLE], [recv, 6 * ranks, MPI.DOUBLE]),
        ([given, "d"], [recv, "d"]),
    ):
        recv[:] = 0
        alltoall(left, right)
        check(same_bytes(recv, wanted), "buffers with a type")
    text = bytearray(given.tobytes())
    into = bytearray(len(text))
    alltoall(text, into)
    check(bytes(into) == wanted.tobytes(), "bytes")
    recv[:] = given
    alltoall(MPI.IN_PLACE, recv)
    check(same_bytes(recv, wanted), "in place")
    recv[:] = 0
    pending = alltoall.start(given, recv)
    try:
        alltoall.start(given, recv)
    except UsageError as error:
        check("is not over" in str(error), str(error))
    else:
        check(pending.done or pending.test(), "took a second call before the first was over")
    comm.Barrier()
    while not pending.test():
        pass
    pending.wait()
    check(same_bytes(recv, wanted), "started, and tested")


def refusals(schedule: Schedule, alltoall: Alltoall) -> None:
    """Buffers and communicators that do not fit are refused before anything is sent."""
    good, twice, fixed = np.zeros(ranks), np.zeros(2 * ranks), np.zeros(ranks)
    fixed.setflags(write=False)
    bad: list[tuple[Any, Any, str]] = [
        (np.zeros(ranks + 1), np.zeros(ranks + 1), "expected a multiple"),
        (good, twice, "expected as many in both"),
        (good, np.zeros(ranks, np.int64), "expected one type"),
        (good, np.zeros(ranks, ">f8"), "expected one type"),
        (np.zeros(2 * ranks, np.float32), good, "expected one type"),
        (good, good, "apart from the send buffer"),
        (twice[:ranks], twice[ranks - 1 : -1], "apart from the send buffer"),
        (good, fixed, "must be writable"),
        (twice[::2], good, "send buffer is not contiguous"),
        (good, twice[::2], "receive buffer is not contiguous"),
        (np.array([None] * ranks), good, "send buffer is not an array of plain"),
        (good, [0.0] * ranks, "receive buffer is not an array of plain"),
        ([good, [1] * ranks], good, "are for Alltoall.v"),
    ]
    for send, recv, problem in bad:
        try:
            alltoall(send, recv)
        except UsageError as error:
            check(problem in str(error), f"said {error!r}, not {problem!r}")
        else:
            check(False, f"took what must be refused: {problem}")
    try:
        Alltoall(schedule, MPI.COMM_SELF)
    except UsageError:
        return
    check(False, "took a communicator of one rank")


def main(files: list[str]) -> None:
    """Run everything."""
    for file in files:
        name = Path(file).name
        schedule = answer_from_json(read_json(Path(file)), file)
        with Alltoall(schedule, comm) as alltoall:
            for dtype in DTYPES:
                for items in ITEMS:
                    exchange(alltoall, items, dtype, name)
            exchange(alltoall, 7, np.float64, f"{name} again", calls=3)
        with Alltoall(schedule, comm, "step") as alltoall:
            exchange(alltoall, 7, np.float64, f"{name} by step", calls=2)
    with Alltoall(schedule, comm) as alltoall:
        many_buffers(alltoall)
        halves(alltoall)
        of_each(alltoall)
        counted(alltoall)
        as_mpi4py_has_them(alltoall)
        refusals(schedule, alltoall)
        exchange(alltoall, 3, np.float64, "after refusals")
    if rank == 0:
        sys.stdout.write("all as it must be\n")


main(sys.argv[1:])
