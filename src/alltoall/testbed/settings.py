"""Which fabric a run asks for: what can be said before any solver is loaded."""

from dataclasses import dataclass

from alltoall.testbed.shares import WEIGHTS
from alltoall.topologies.given import Given

DEFAULT_RATE = "20mbit"


@dataclass(frozen=True)
class BedSettings:
    """Which fabric to run on, and how.

    An existing one by the name `fabric`; else one made for the run, with links of `rate` at
    capacity 1, of the topology of the file, or of `topology` if the file does not say.
    """

    rate: str = DEFAULT_RATE
    fabric: str | None = None
    topology: Given | None = None
    through: str = "mpi"
    native: bool = True
    weights: str = WEIGHTS[0]
    steering: str = "plain"
    cut: str | None = None
