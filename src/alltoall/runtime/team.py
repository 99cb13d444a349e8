"""The ranks of an MPI job as a team that solves one problem together (`alltoall.settings.Team`)."""

import os
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

SIZES = ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "MPI_LOCALNRANKS")
"""Environment variables with the number of ranks: Open MPI, and MPICH and relatives."""


class Ranks:
    """All ranks of the job; every method is collective."""

    def __init__(self) -> None:
        from alltoall.runtime.mpi.library import MPI  # noqa: PLC0415 (only ranks need an MPI)

        self._mpi, self._comm = MPI, MPI.COMM_WORLD
        self.rank, self.size = self._comm.rank, self._comm.size
        self.neighbours = self._comm.Split_type(MPI.COMM_TYPE_SHARED).size

    def total(self, part: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum over all ranks, to the last bit the same on all of them."""
        mine, whole = np.ascontiguousarray(part, dtype=np.float64), np.empty_like(part, np.float64)
        self._comm.Reduce(mine, whole, op=self._mpi.SUM, root=0)
        # An all-reduce may differ in last digits from rank to rank, and so would decisions.
        self._comm.Bcast(whole, root=0)
        return whole

    def gathered(self, part: Any) -> list[Any] | None:
        """Return the parts of all ranks, in order, on the first one."""
        return self._comm.gather(part, root=0)

    def leave(self) -> None:
        """Disconnect from the other ranks."""
        self._mpi.Finalize()

    def give_up(self, code: int) -> None:
        """Abort all ranks, which would otherwise wait for this one."""
        sys.stdout.flush()
        sys.stderr.flush()
        self._comm.Abort(code)


def ranks_of_this_job() -> Ranks | None:
    """Return the team of this process, if mpiexec started several."""
    told = next((os.environ[name] for name in SIZES if name in os.environ), "1")
    return Ranks() if told.isdigit() and int(told) > 1 else None
