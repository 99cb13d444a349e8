"""`Answer`: what flows, routes and schedules have in common, each an answer to a problem.

It takes a `time`, has a `certificate` of a `bound` that no answer can beat, and the links in it
that set the one and prove the other are its `bottleneck`.
"""

import math
from dataclasses import replace
from typing import Any, TypeVar, cast

from alltoall.ir.arrays import Floats
from alltoall.ir.bottleneck import Bottleneck, find_bottleneck
from alltoall.ir.certificate import Certificate
from alltoall.ir.noun import Noun, drawn
from alltoall.ir.problem import Problem
from alltoall.ir.provenance import Provenance
from alltoall.ir.words import beyond_rounding, number

Kind = TypeVar("Kind", bound="Answer")


class Answer(Noun):
    """An answer to `problem`, of which a kind says its `time` and what each link carries."""

    problem: Problem
    certificate: Certificate
    method: str
    provenance: Provenance | None

    @property
    def time(self) -> float:
        """The all-to-all time, in units of one shard over a link of capacity 1."""
        raise NotImplementedError

    @property
    def bound(self) -> float:
        """The certified lower bound on the time of any all-to-all for this problem."""
        return self.certificate.bound

    @property
    def gap(self) -> float:
        """How far `time` can be from the optimum at most; infinite if no bound is claimed."""
        return self.time / self.bound - 1.0 if self.bound > 0 else math.inf

    def bottleneck(self) -> Bottleneck:
        """Return the links that set the time, and those that prove what no answer can beat."""
        return find_bottleneck(self.problem.topology, self._fullness(), self.certificate.lengths)

    def _fullness(self) -> Floats:
        """Return how much of the time each link is what all wait for, up to a factor."""
        raise NotImplementedError

    def _title(self) -> str:
        return self.problem.topology.name

    def _facts(self) -> dict[str, str]:
        return {
            "time": number(self.time),
            "bound": number(self.bound),
            "gap": f"{beyond_rounding(self.gap):.2g}",
            "method": self.method,
        }

    def _details(self) -> dict[str, str]:
        made = {"made by": str(self.provenance)} if self.provenance else {}
        return {**self._facts(), "bottleneck": str(self.bottleneck()), **made}

    def _repr_svg_(self) -> str | None:
        return drawn(self.problem.topology, self._fullness())


def made_now(answer: Kind, **known: Any) -> Kind:
    """Return an answer that says that this version gives it now, and what else is known of it."""
    made = Provenance.of_now(method=answer.method, **known)
    again: Kind = replace(cast(Any, answer), provenance=made)
    return again


def bottleneck_line(answer: Answer) -> str:
    """Return the line that verbs print: what sets the time, and what proves the bound."""
    return str(answer.bottleneck())
