"""All-to-all by a schedule over MPI.

    alltoall = Alltoall("torus:3x3x3", MPI.COMM_WORLD)   # or a schedule, or the path of one
    alltoall(send, recv)                                 # as comm.Alltoall(send, recv)
    alltoall.v([send, counts], [recv, counts])           # as comm.Alltoallv
    pending = alltoall.start(send, recv)                 # and later pending.wait()

Bytes go between the user's buffers and the scratch buffer without copies in between. The exchange
is the engine's, in C, where all ranks have it (`runtime.engine`), and else that of
`requests`, for which any MPI 3 will do.
"""

from alltoall.runtime.mpi.alltoall import Alltoall, Pending
from alltoall.runtime.mpi.endpoint import Endpoint

__all__ = ["Alltoall", "Endpoint", "Pending"]
