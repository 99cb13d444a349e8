"""Normal units: every problem is solved with capacities and demands of about 1.

Capacities come in Gbit/s or in bit/s, demands in shards or in bytes, and solvers have tolerances of
their own. So producers of answers convert the problem by `normal_units`, and the answer back to the
units of the caller by `restored`.

The unit of capacity is the capacity of the median link, so that equal links are exactly 1. The unit
of demand is a power of two, so that exact amounts stay exact. Times are in units of demand over
capacity.
"""

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import LARGEST, SMALLEST, Topology

Answer = TypeVar("Answer", Flow, Routes, Schedule)


@dataclass(frozen=True, eq=False)
class Units:
    """A problem in the caller's units, the same in normal units, and these units."""

    posed: Problem
    problem: Problem
    capacity: float
    demand: float

    @property
    def time(self) -> float:
        """The unit of time: that of demand over that of capacity."""
        return self.demand / self.capacity

    def restored(self, answer: Answer) -> Answer:
        """Return an answer to the normal problem in the caller's units."""
        if self.posed is self.problem:
            return answer
        proof = Certificate(answer.certificate.lengths, answer.certificate.bound * self.time)
        return replace(answer, problem=self.posed, certificate=proof, **self._scaled(answer))

    def _scaled(self, answer: Flow | Routes | Schedule) -> dict[str, Any]:
        """Return the fields with a unit of an answer, in the caller's unit."""
        if isinstance(answer, Flow):
            return {"amount": answer.amount * self.capacity, "rate": answer.rate / self.time}
        if isinstance(answer, Schedule):
            return {"fractional_time": answer.fractional_time * self.time}
        # Weights were multiples of 1 / denominator in a unit of demand that is a power of two.
        multiple = Fraction(self.demand) / (answer.denominator or 1)
        common = None if answer.denominator is None else multiple.denominator
        return {"weight": answer.weight * self.demand, "denominator": common}


def normal_units(problem: Problem, demand: float | None = None) -> Units:
    """Return a problem in normal units, or with `demand` as the unit of demand.

    Chunks have a unit of demand already: the shard.
    """
    capacity, matrix = _capacity_unit(problem.topology), problem.demand.matrix
    amount = 1.0 if matrix is None else demand or _demand_unit(matrix)
    if capacity == amount == 1.0:
        return Units(problem, problem, 1.0, 1.0)
    topology = replace(problem.topology, capacity=problem.topology.capacity / capacity)
    scaled = None if matrix is None else matrix / amount
    normal = Problem(topology, Demand(problem.demand.terminals, scaled))
    return Units(problem, normal, capacity, amount)


def shard_unit(problem: Problem) -> float:
    """Return a power of two, at least 1 and at least the mean shard.

    A shard of mean size is then cut into no more chunks than one of this size.
    """
    matrix = problem.demand.matrix
    mean = 1.0 if matrix is None else float(matrix[matrix > 0].mean())
    return 2.0 ** max(0, math.ceil(math.log2(mean)))


def _capacity_unit(topology: Topology) -> float:
    """Return the capacity of the median link, or 1 if that would put others out of range."""
    median = float(np.quantile(topology.capacity, 0.5, method="lower"))
    least, most = topology.capacity.min() / median, topology.capacity.max() / median
    return median if least >= SMALLEST and most <= LARGEST else 1.0


def _demand_unit(matrix: Floats) -> float:
    """Return the power of two next to the largest demand, if the smallest stays within range."""
    smallest = float(matrix[matrix > 0].min())
    return 2.0 ** math.floor(math.log2(min(float(matrix.max()), smallest / SMALLEST)))
