"""`Answer`: the common part of flows, routes and schedules.

An answer to a problem has a `time`, a `Certificate` of a `bound` that no answer can beat, and a
`Bottleneck`: the links that set the time, and those that prove the bound.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from alltoall.ir.arguments import read_fields
from alltoall.ir.arrays import Floats, Ints, freeze, reachable
from alltoall.ir.noun import Noun, Provenance, drawn
from alltoall.ir.problem import Problem
from alltoall.ir.topology import Topology
from alltoall.ir.words import beyond_rounding, listed, number


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
        read_fields(self)

    def _title(self) -> str:
        return f"of bound {number(self.bound)}"

    def _facts(self) -> dict[str, str]:
        return {"bound": number(self.bound), "lengths": f"{len(self.lengths):,}"}

    def _columns(self) -> dict[str, Floats]:
        return {"length": self.lengths}


GIGA = 1e9

Mask = NDArray[np.bool_]

SAME = 1e-6
"""Relative difference up to which loads, or lengths, are equal."""


@dataclass(frozen=True, eq=False, repr=False)
class Bottleneck(Noun):
    """Links of a topology: the `fullest`, and the `proof`, those of positive length.

    `inside` has the nodes on the smaller side if the proof is a cut, else None;
    `even` is whether all links of the proof have one length.
    """

    TITLE = "topology.name"
    BRIEF = ("saturated", "proof")

    topology: Topology
    fullest: Ints
    proof: Ints
    inside: Ints | None
    even: bool

    def __post_init__(self) -> None:
        freeze(self, np.int64, "fullest", "proof", "inside")

    def __str__(self) -> str:
        found = self.words()
        return f"{found['saturated']} saturated; bound: {found['proof']}"

    def _facts(self) -> dict[str, str]:
        return self.words()

    def words(self) -> dict[str, str]:
        """Return the saturated links and the proof of the bound in words."""
        return {"saturated": self._saturated(), "proof": self._proof()}

    def _saturated(self) -> str:
        count, total = len(self.fullest), self.topology.links
        if count == total:
            return f"all {total:,} links"
        link, name = self.fullest[0], self.topology.node_name
        first = f"{name(int(self.topology.tail[link]))} -> {name(int(self.topology.head[link]))}"
        return first if count == 1 else f"{count:,} of {total:,} links, e.g. {first}"

    def _proof(self) -> str:
        count, total = len(self.proof), self.topology.links
        if self.inside is not None:
            links = "1 link" if count == 1 else f"{count:,} links"
            named = listed(map(self.topology.node_name, self.inside.tolist()))
            return f"cut of {links} around {named}"
        if count == total and self.even:
            return "total hops / total capacity"
        return f"distances over {count:,} of {total:,} links"

    def _columns(self) -> dict[str, Iterable[object]]:
        link = np.union1d(self.fullest, self.proof)
        return {
            "link": link,
            "tail": self.topology.called(self.topology.tail[link]),
            "head": self.topology.called(self.topology.head[link]),
            "fullest": np.isin(link, self.fullest),
            "proof": np.isin(link, self.proof),
        }


def find_bottleneck(topology: Topology, fullness: Floats, lengths: Floats) -> Bottleneck:
    """Return the links that are fullest, and those whose lengths prove the bound."""
    fullest = np.flatnonzero(fullness >= fullness.max() * (1 - SAME))
    proof = lengths > lengths.max() * SAME
    even = bool(np.ptp(lengths[proof]) <= SAME * lengths.max()) if proof.any() else False
    return Bottleneck(topology, fullest, np.flatnonzero(proof), _cut(topology, proof, even), even)


def _cut(topology: Topology, proof: Mask, even: bool) -> Ints | None:
    """Return the smaller side of a cut if the links are one, else None.

    They are a cut if they are all links that leave a set of nodes, or all between it and the rest.
    The set is found by a search without them, from their ends or from the first one's.
    """
    if not proof.any() or not even:
        return None
    tail, head, other = topology.tail, topology.head, ~proof
    for begin, end in ((tail, head), (head, tail)):
        for start in (begin[proof], begin[proof][:1]):
            inside = reachable(topology.nodes, begin[other], end[other], start)
            leaves, enters = inside[tail] & ~inside[head], ~inside[tail] & inside[head]
            if any(np.array_equal(proof, links) for links in (leaves, enters, leaves | enters)):
                sides = np.flatnonzero(inside), np.flatnonzero(~inside)
                return np.asarray(min(sides, key=len), dtype=np.int64)
    return None


Kind = TypeVar("Kind", bound="Answer")


class Answer(Noun):
    """An answer to `problem`; each kind defines its `time` and link loads."""

    problem: Problem
    certificate: Certificate
    method: str
    provenance: Provenance | None
    learnt: Mapping[str, Any]
    """Facts of the search, by the names of the JSON: notes, seconds, curves."""

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
        """The largest relative distance of `time` from the optimum; infinite without a bound."""
        return self.time / self.bound - 1.0 if self.bound > 0 else math.inf

    @property
    def throughput(self) -> float | None:
        """Mean GB/s of the sending terminals, None if links have no unit."""
        time = self.time
        rate, demand = self.problem.topology.bytes_per_second, self.problem.demand
        if rate is None or not 0 < time < math.inf:
            return None
        return demand.total / len(demand.sources()) / time * rate / GIGA

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for users."""
        return (*self.problem.topology.notes, *self.learnt.get("notes", ()))

    @property
    def seconds(self) -> float | None:
        """Seconds of the search, if known."""
        return None if self.provenance is None else self.provenance.seconds

    def bottleneck(self) -> Bottleneck:
        """Return the links that set the time, and those that prove the bound."""
        return find_bottleneck(self.problem.topology, self._fullness(), self.certificate.lengths)

    def _fullness(self) -> Floats:
        """Return the share of the time in which each link is the bottleneck, up to a factor."""
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


def made_now(answer: Kind, learnt: Mapping[str, Any] | None = None, **known: Any) -> Kind:
    """Return an answer with its provenance and the facts of its search."""
    made = Provenance.of_now(method=answer.method, **known)
    kept = answer.learnt if learnt is None else learnt
    again: Kind = replace(cast(Any, answer), provenance=made, learnt=kept)
    return again
