"""`Certificate`: link lengths, and the bound on the all-to-all time that they prove."""

from dataclasses import dataclass

import numpy as np

from alltoall.ir.arrays import Floats, frozen
from alltoall.ir.noun import Noun
from alltoall.ir.words import number


@dataclass(frozen=True, eq=False, repr=False)
class Certificate(Noun):
    """Non-negative link lengths, and the bound on the all-to-all time that they prove.

    Whatever the routing, pair (s, d) occupies at least demand(s, d) * distance(s, d) of the
    length-weighted capacity, so the time is at least

        sum of demand(s, d) * distance(s, d)  /  sum of capacity(l) * length(l).
    """

    BRIEF = ("lengths",)

    lengths: Floats
    bound: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "lengths", frozen(self.lengths, np.float64))

    def _title(self) -> str:
        return f"of bound {number(self.bound)}"

    def _facts(self) -> dict[str, str]:
        return {"bound": number(self.bound), "lengths": f"{len(self.lengths):,}"}

    def _columns(self) -> dict[str, Floats]:
        return {"length": self.lengths}
