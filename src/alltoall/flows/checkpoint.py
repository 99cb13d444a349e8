"""Checkpoints: where a long solve is, in a file from which it can go on.

Any flows, potentials and prices are a place to start from, and every answer is certified anew; so a
checkpoint has to belong to the problem, and nothing else about it is trusted. Each rank of a team
writes the rows of its own groups (FILE, FILE.1, ...), which another number of ranks may read.
"""

import hashlib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.errors import InputError
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats
from alltoall.ir.files.text import replacing

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
            f"{path} is no checkpoint; expected one that --checkpoint wrote. Name another file, "
            "or remove this one to begin anew"
        ) from None
    if not found:
        raise InputError(
            f"{path} is a checkpoint of another problem: of another topology, demand, or use of "
            "symmetry. Name another file, or remove this one to begin anew"
        )
    return found
