"""A problem that kills the process that works on it, as a lack of memory would."""

import os
import signal
from dataclasses import dataclass, field
from pathlib import Path

from alltoall.ir.arrays import Ints
from alltoall.ir.problem import Problem


@dataclass(frozen=True, eq=False, repr=False)
class DeadlyProblem(Problem):
    """A problem that every process but its maker's dies of; with a note, only the first.

    The note is a file that the first one leaves.
    """

    note: str = ""
    maker: int = field(default_factory=os.getpid)

    @property
    def sources(self) -> Ints:
        """The terminals that send anything, for its maker."""
        if os.getpid() != self.maker and not (self.note and Path(self.note).exists()):
            if self.note:
                Path(self.note).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().sources
