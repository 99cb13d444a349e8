"""Ranks of MPI on the nodes of a fabric, for whoever starts them."""

from dataclasses import replace

from alltoall.errors import UsageError
from alltoall.runtime.mpiexec import Mpi
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.plan import IDENTITY, NETWORK

DEVICE_VARIABLES = ("FI_TCP_IFACE", "GLOO_SOCKET_IFNAME")
"""By which MPICH and gloo are told whose address is theirs."""

KIND = "mpich"
"""The MPI whose ranks find each other through their launcher, wherever they are."""


def device_variables(scheduled: bool) -> dict[str, str]:
    """Return what leads ranks to each other: a schedule's to neighbours, others by a network."""
    return dict.fromkeys(DEVICE_VARIABLES, IDENTITY if scheduled else NETWORK)


def placed(mpi: Mpi, bed: Bed, scheduled: bool) -> Mpi:
    """Return an MPI whose ranks are on the nodes of a fabric."""
    require_kind(mpi)
    environment = {**mpi.environment, **device_variables(scheduled)}
    return replace(mpi, environment=environment, place=tuple(bed.prefix()))


def require_kind(mpi: Mpi) -> None:
    """Refuse an MPI whose ranks could not reach their launcher from another namespace."""
    if mpi.kind != KIND:
        raise UsageError(
            f"{mpi.mpiexec} is of {mpi.kind}, whose ranks reach their launcher over a network that "
            f"a fabric does not have; expected --mpi {KIND}"
        )
