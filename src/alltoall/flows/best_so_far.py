"""The best flow and bound of a first-order search, and its checkpoints in a file."""

import hashlib
import zipfile
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.guess import exact_entries
from alltoall.flows.program import FlowProgram, program_bound
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.files.text import replacing
from alltoall.ir.flow import Status
from alltoall.ir.words import ProgressMessage
from alltoall.settings import SolveSettings, now

FORMAT = "alltoall.checkpoint/1"
"""The format and version of a checkpoint."""

CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints, at least."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Flows and potentials of the groups from `first` on, prices, steps so far, and the best bound.

    `weight` is the primal weight: the ratio of primal to dual step sizes.
    """

    first: int
    flow: Floats
    potential: Floats
    price: Floats
    lengths: Floats
    bound: float
    weight: float
    steps: int


def fingerprint(program: FlowProgram) -> str:
    """Return a digest that identifies a program."""
    graph, groups = program.graph, program.groups
    digest = hashlib.sha256()
    arrays = (graph.tail, graph.head, graph.capacity, groups.start, groups.wanted)
    for array in (*arrays, program.weight, program.link_class, program.budget):
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class CheckpointFile:
    """The checkpoints of one rank: their path, program, and first group."""

    path: Path
    program: str
    rank: int = 0
    first: int = 0

    def _of_rank(self, rank: int) -> Path:
        return self.path if rank == 0 else self.path.with_name(f"{self.path.name}.{rank}")

    def write(self, state: Checkpoint) -> None:
        """Replace the last checkpoint of this rank."""
        with replacing(self._of_rank(self.rank)) as file:
            np.savez(file, format=FORMAT, mark=self.program, **vars(state))

    def read(self, groups: int) -> Checkpoint | None:
        """Return the rows of these groups, whichever ranks wrote them; None if any is missing."""
        rank, begin, end = 0, self.first, self.first + groups
        flow: list[Floats] = []
        potential: list[Floats] = []
        newest: dict[str, Any] = {}
        while begin < end and (path := self._of_rank(rank)).exists():
            part = _read(path, self.program)
            newest = newest or part
            low, count = int(part["first"]), len(part["flow"])
            if low <= begin < low + count:
                rows = slice(begin - low, min(count, end - low))
                flow.append(part["flow"][rows])
                potential.append(part["potential"][rows])
                begin += len(flow[-1])
            rank += 1
        if begin < end:
            return None
        flows, potentials = np.concatenate(flow), np.concatenate(potential)
        arrays = flows, potentials, newest["price"], newest["lengths"]
        numbers = float(newest["bound"]), float(newest["weight"]), int(newest["steps"])
        return Checkpoint(self.first, *arrays, *numbers)


def _read(path: Path, program: str) -> dict[str, Any]:
    """Return the arrays of a checkpoint file; refuse one of another program."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if str(file["format"]) != FORMAT:
                raise ValueError
            same = str(file["mark"]) == program
            found = {name: file[name] for name in file.files} if same else {}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{path} is no checkpoint; expected one that checkpoint= wrote. Name another file, "
            "or remove this one to start again"
        ) from None
    if not found:
        raise InputError(
            f"{path} is a checkpoint of another problem: of another topology, demand, or use of "
            "symmetry. Name another file, or remove this one to start again"
        )
    return found


class BestSoFar(ABC):
    """The best flow and bound of a search so far, its target bound, and its checkpoint file."""

    turns: str
    """The unit of `steps`: steps or sweeps."""

    best_flow: Floats

    def __init__(
        self, program: FlowProgram, settings: SolveSettings, file: CheckpointFile | None
    ) -> None:
        self.program = program
        self.settings = settings
        self.team = settings.team
        self.file, self.written = file, now()
        self.time, self.bound, self.enough = np.inf, 0.0, np.inf
        self.best_lengths = np.ones(program.graph.links)
        self.steps = 0

    def run(self) -> Status:
        """Search until done; return how it ended."""
        status = self._run()
        if not status.done:
            self._write_checkpoint(last=True)
        return status

    @abstractmethod
    def _run(self) -> Status: ...

    @abstractmethod
    def certify(self) -> None:
        """Make the current flows exact, and keep them if they are the best so far."""

    @abstractmethod
    def _checkpoint(self, first: int) -> Checkpoint:
        """Return the state of the search; `first` is the first group of this rank."""

    @abstractmethod
    def _resume(self, found: Checkpoint) -> None:
        """Continue from a checkpoint."""

    @property
    def gap(self) -> float:
        """The certified gap of the best flow and the best bound."""
        return self.time / self.bound - 1 if self.bound > 0 else np.inf

    def try_lengths(self, lengths: Floats) -> None:
        """Keep lengths if their bound is the best so far."""
        bound = program_bound(self.program, lengths, self.team)
        if bound > self.bound:
            # In this order: Ctrl-C in between must leave no bound without its lengths.
            self.best_lengths, self.bound = lengths, bound

    def best_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return the best flow, exact, as (start, link, volume) by group."""
        return exact_entries(self.program, self.best_flow)

    def _sum(self, part: float) -> float:
        """Return the sum of a number over the ranks of the team."""
        return float(self.team.total(np.array([part], dtype=np.float64))[0])

    def _report(self) -> None:
        text = f"{self.steps} {self.turns}: certified gap {self.gap:.2e}"
        self.settings.report(ProgressMessage.of_gap(text, self.gap, self.settings.gap))

    def _read_checkpoint(self) -> None:
        """Continue from the last checkpoint, if all ranks find one."""
        found = None if self.file is None else self.file.read(len(self.program.weight))
        if self._sum(float(found is not None)) < self.team.size or found is None:
            return
        self._resume(found)
        self.steps = found.steps
        self.try_lengths(found.lengths)
        self.settings.report(
            f"from a checkpoint after {self.steps} {self.turns}: bound {self.bound:g}"
        )

    def _write_checkpoint(self, last: bool = False) -> None:
        """Write a checkpoint if one is due, or if it is the last."""
        due = last or now() - self.written >= CHECKPOINT_SECONDS
        if self.file is None or self._sum(float(due)) == 0.0:
            return
        self.file.write(self._checkpoint(self.file.first))
        self.written = now()
