"""All-to-all by a schedule over MPI.

    alltoall = Alltoall("torus:3x3x3", MPI.COMM_WORLD)   # or a schedule, or the path of one
    alltoall(send, recv)                                 # as comm.Alltoall(send, recv)
    alltoall.v([send, counts], [recv, counts])           # as comm.Alltoallv
    pending = alltoall.start(send, recv)                 # and later pending.wait()

The engine in C exchanges the bytes (`runtime.engine`); it is built for the MPI when first used.
"""

from alltoall.runtime.mpi.alltoall import Alltoall, Pending
from alltoall.runtime.mpi.endpoint import Endpoint

__all__ = ["Alltoall", "Endpoint", "Pending"]
