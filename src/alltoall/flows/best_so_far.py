"""The best flow and bound of a search that steps or sweeps, and its checkpoints in a file."""

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
"""What a checkpoint says that it is."""

CHECKPOINT_SECONDS = 60.0
"""Seconds between two checkpoints, at least."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Flows and potentials of the groups from `first` on, prices, steps so far, and the best proof.

    `weight` is that of flows against lengths in the sizes of steps.
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
    """Return what tells a program from all others."""
    graph, groups = program.graph, program.groups
    digest = hashlib.sha256()
    for part in (graph.tail, graph.head, graph.capacity, groups.start, groups.wanted):
        digest.update(np.ascontiguousarray(part).tobytes())
    for part in (program.weight, program.link_class, program.budget):
        digest.update(np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Keeping:
    """Where one rank keeps its checkpoints, of which problem, and from which group on."""

    path: Path
    mark: str
    rank: int = 0
    first: int = 0

    def read(self, groups: int) -> Checkpoint | None:
        """Return the last checkpoint of so many groups, if there is one."""
        return read_checkpoint(self.path, self.mark, self.first, groups)

    def write(self, state: Checkpoint) -> None:
        """Write a checkpoint in the place of the last one."""
        write_checkpoint(self.path, self.rank, self.mark, state)


def write_checkpoint(path: Path, rank: int, mark: str, state: Checkpoint) -> None:
    """Write the rows of one rank."""
    with replacing(_part(path, rank)) as file:
        np.savez(file, format=FORMAT, mark=mark, **vars(state))


def read_checkpoint(path: Path, mark: str, first: int, groups: int) -> Checkpoint | None:
    """Return the rows of groups from `first` on, whoever wrote them; None if not all are there."""
    if not path.exists():
        return None
    flow: list[Floats] = []
    potential: list[Floats] = []
    rank, begin, newest = 0, first, _read(path, mark)
    part: dict[str, Any] | None = newest
    while part is not None and begin < first + groups:
        low, count = int(part["first"]), len(part["flow"])
        if low <= begin < low + count:
            rows = slice(begin - low, min(count, first + groups - low))
            flow.append(part["flow"][rows])
            potential.append(part["potential"][rows])
            begin += len(flow[-1])
        rank += 1
        part = _read(_part(path, rank), mark) if _part(path, rank).exists() else None
    if begin < first + groups:
        return None
    return Checkpoint(
        first,
        np.concatenate(flow),
        np.concatenate(potential),
        newest["price"],
        newest["lengths"],
        float(newest["bound"]),
        float(newest["weight"]),
        int(newest["steps"]),
    )


def _part(path: Path, rank: int) -> Path:
    return path if rank == 0 else path.with_name(f"{path.name}.{rank}")


def _read(path: Path, mark: str) -> dict[str, Any]:
    """Return the arrays of one file of a checkpoint; refuse those of another problem."""
    try:
        with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            if str(file["format"]) != FORMAT:
                raise ValueError
            theirs = str(file["mark"])
            found = {name: file[name] for name in file.files} if theirs == mark else {}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        raise InputError(
            f"{path} is no checkpoint; expected one that checkpoint= wrote. Name another file, "
            "or remove this one to begin anew"
        ) from None
    if not found:
        raise InputError(
            f"{path} is a checkpoint of another problem: of another topology, demand, or use of "
            "symmetry. Name another file, or remove this one to begin anew"
        )
    return found


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
        self.settings.report(ProgressMessage.of_gap(text, self.gap, self.settings.gap))

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
