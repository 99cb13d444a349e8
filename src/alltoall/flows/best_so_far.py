"""What a search for flows and lengths keeps, whether it steps or sweeps."""

from abc import ABC, abstractmethod

import numpy as np

from alltoall.flows.certificate import program_bound
from alltoall.flows.checkpoint import CHECKPOINT_SECONDS, Checkpoint, Keeping
from alltoall.flows.entries import exact_entries
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.ir.words import News
from alltoall.settings import SolveSettings, now


class BestSoFar(ABC):
    """The best flow and bound of a search so far, what is enough, and where checkpoints go."""

    turns: str
    """What it counts: steps or sweeps."""

    best_flow: Floats

    def __init__(
        self, program: FlowProgram, settings: SolveSettings, keeping: Keeping | None
    ) -> None:
        self.program = program
        self.settings = settings
        self.team = settings.team
        self.keeping, self.kept = keeping, now()
        self.time, self.bound, self.enough = np.inf, 0.0, np.inf
        self.best_lengths = np.ones(program.graph.links)
        self.steps = 0

    def run(self) -> Status:
        """Search until done; say how it ended."""
        status = self._run()
        if not status.done:
            self._keep(now_or_never=True)
        return status

    @abstractmethod
    def _run(self) -> Status: ...

    @abstractmethod
    def certify(self) -> None:
        """Keep the present flows, made exact, if they are the best so far."""

    @abstractmethod
    def _checkpoint(self, keeping: Keeping) -> Checkpoint:
        """Return where the search is."""

    @abstractmethod
    def _resume(self, found: Checkpoint) -> None:
        """Go on where a checkpoint is."""

    @property
    def gap(self) -> float:
        """The certified gap of the best flow and the best bound."""
        return self.time / self.bound - 1 if self.bound > 0 else np.inf

    def try_lengths(self, lengths: Floats) -> None:
        """Keep lengths if they prove more than the best so far."""
        bound = program_bound(self.program, lengths, self.team)
        if bound > self.bound:
            # In this order: Ctrl-C in between must not leave a bound without its lengths.
            self.best_lengths, self.bound = lengths, bound

    def best_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return the best flow, exact, as (start, link, volume) by group."""
        return exact_entries(self.program, self.best_flow)

    def _sum(self, part: float) -> float:
        """Return the sum of a number over the ranks of the team."""
        return float(self.team.total(np.array([part], dtype=np.float64))[0])

    def _report(self) -> None:
        text = f"{self.steps} {self.turns}: certified gap {self.gap:.2e}"
        self.settings.report(News.of_gap(text, self.gap, self.settings.gap))

    def _go_on(self) -> None:
        """Go on where the last checkpoint is, if all ranks find one."""
        found = None if self.keeping is None else self.keeping.read(len(self.program.weight))
        if self._sum(float(found is not None)) < self.team.size or found is None:
            return
        self._resume(found)
        self.steps = found.steps
        self.try_lengths(found.lengths)
        self.settings.report(
            f"from a checkpoint after {self.steps} {self.turns}: bound {self.bound:g}"
        )

    def _keep(self, now_or_never: bool = False) -> None:
        """Write a checkpoint, if it is time to."""
        due = now_or_never or now() - self.kept >= CHECKPOINT_SECONDS
        if self.keeping is None or self._sum(float(due)) == 0.0:
            return
        self.keeping.write(self._checkpoint(self.keeping))
        self.kept = now()
