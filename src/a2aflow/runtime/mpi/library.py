"""The MPI that mpi4py has found; the only file that imports mpi4py."""

from a2aflow.errors import MissingComponentError

try:
    from mpi4py import MPI
except (ImportError, RuntimeError) as error:  # RuntimeError: mpi4py is here, libmpi is not
    raise MissingComponentError(
        f"MPI cannot be used: {error}; install it with: pip install 'a2aflow[mpi]'"
    ) from error

__all__ = ["MPI"]
