"""`Demand`: the amounts that terminals send each other."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from alltoall.errors import DemandError
from alltoall.ir.arguments import check_arguments, read_fields
from alltoall.ir.arrays import Floats, Ints, freeze
from alltoall.ir.noun import Noun
from alltoall.ir.topology import LARGEST, SMALLEST
from alltoall.ir.words import number


@dataclass(frozen=True, eq=False, repr=False)
class Demand(Noun):
    """Amounts in shards between terminals, indexed by position in `Topology.terminals`.

    `matrix` is None for the uniform all-to-all: a matrix of ones would dominate the memory.
    """

    BRIEF = ("terminals", "total")

    terminals: int
    matrix: Floats | None = None

    def __post_init__(self) -> None:
        read_fields(self)
        if self.terminals < 1:
            raise DemandError(f"a demand of {self.terminals} terminals; expected 2 or more")
        freeze(self, np.float64, "matrix")
        matrix = self.matrix
        if matrix is None:
            return
        if matrix.shape != (self.terminals, self.terminals):
            raise DemandError(
                f"demand matrix of shape {'x'.join(map(str, matrix.shape))}; "
                f"expected {self.terminals}x{self.terminals}, one row and column per terminal"
            )
        check_amounts(matrix)
        if not matrix.any():
            raise DemandError("the demand is zero everywhere; expected at least one positive entry")

    @classmethod
    @check_arguments
    def of_groups(cls, terminals: int, groups: Iterable[Sequence[int]]) -> "Demand":
        """Return the all-to-all within each of several groups, by position of their terminals.

        A pair in several groups sends one shard in each. Other terminals only relay.
        """
        cls(terminals)  # Refuses a wrong number of terminals.
        matrix = np.zeros((terminals, terminals))
        for index, group in enumerate(groups):
            members = _members(group, index, terminals)
            matrix[np.ix_(members, members)] += 1.0
        np.fill_diagonal(matrix, 0.0)
        return cls(terminals, matrix)

    @property
    def uniform(self) -> bool:
        """Whether this is the uniform all-to-all."""
        return self.matrix is None

    @property
    def total(self) -> float:
        """The sum of all amounts."""
        if self.matrix is None:
            return float(self.terminals * (self.terminals - 1))
        return float(self.matrix.sum())

    def rows(self, sources: Ints) -> Floats:
        """Return the amounts that the given terminals send, one row each."""
        if self.matrix is not None:
            return np.array(self.matrix[sources])
        rows = np.ones((len(sources), self.terminals))
        rows[np.arange(len(sources)), sources] = 0.0
        return rows

    def table(self) -> Floats:
        """Return the amounts of all pairs, a row per source."""
        return self.rows(np.arange(self.terminals, dtype=np.int64))

    def of(self, sources: Ints, destinations: Ints) -> Floats:
        """Return the amounts of some pairs, without a table of all."""
        if self.matrix is not None:
            return np.asarray(self.matrix[sources, destinations])
        return np.asarray(sources != destinations, dtype=np.float64)

    def sources(self) -> Ints:
        """Return the terminals that send anything."""
        if self.matrix is None:
            return np.arange(self.terminals, dtype=np.int64)
        return np.flatnonzero(self.matrix.any(axis=1)).astype(np.int64)

    def pairs(self) -> tuple[Ints, Ints]:
        """Return source and destination of every pair with a positive amount, by source."""
        source, destination = np.nonzero(self.table())
        return source.astype(np.int64), destination.astype(np.int64)

    def _title(self) -> str:
        return "uniform" if self.uniform else "by matrix"

    def _facts(self) -> dict[str, str]:
        return {"terminals": f"{self.terminals:,}", "total": number(self.total)}

    def _columns(self) -> dict[str, Ints | Floats]:
        source, destination = self.pairs()
        amount = self.of(source, destination)
        return {"source": source, "destination": destination, "amount": amount}


def _members(group: Sequence[int], index: int, terminals: int) -> Ints:
    """Return the positions of a group, which must be two or more different ones."""
    members = np.unique(np.asarray(group, dtype=np.int64))
    if len(members) < 2 or len(members) != len(group):
        raise DemandError(
            f"group {index} is {list(group[:8])}; expected two or more terminals, each once"
        )
    wrong = members[(members < 0) | (members >= terminals)]
    if len(wrong):
        raise DemandError(
            f"group {index} has terminal {wrong[0]}; expected positions 0..{terminals - 1}"
        )
    return members


def check_amounts(matrix: Floats, name: Callable[[int], str] = str) -> None:
    """Raise for the first amount that is out of range; `name` names a terminal."""
    sound = (matrix == 0) | ((matrix >= SMALLEST) & (matrix <= LARGEST))
    for bad, expected in (
        (~sound, f"0, or a number from {SMALLEST:g} to {LARGEST:g}"),
        (np.diag(np.diag(matrix) != 0), "0: a terminal sends nothing to itself"),
    ):
        found = np.argwhere(bad)
        if len(found):
            source, destination = (int(index) for index in found[0])
            raise DemandError(
                f"demand from terminal {name(source)} to terminal {name(destination)} is "
                f"{matrix[source, destination]:g}; expected {expected}"
            )
