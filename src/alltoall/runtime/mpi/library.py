"""mpi4py's MPI; the only file that imports mpi4py."""

from alltoall.errors import MissingComponentError, how_to_install

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is here, libmpi is not
    raise MissingComponentError(
        f"MPI cannot be used: {error}; install it with: {how_to_install('mpi')}"
    ) from error

__all__ = ["MPI"]
