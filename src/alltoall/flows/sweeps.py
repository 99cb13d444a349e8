r"""Sweeps: the master program by prices, to which sources respond in turn.

The program with one budget (`flows.program`) is a saddle point of flows and prices of classes,

    min over flows x  of  max over prices p >= 0 that sum to 1  of  sum over c of p[c] busy[c](x),

where busy[c] is the time of class c, linear in x. The method of multipliers updates the prices q
of the last sweep by the times above a level,

    p[c]  =  max(0, q[c] + slope[c] (busy[c] - level)),        sum of p = 1,

and a sweep lets each source in turn move flow from its most expensive paths to its cheapest ones,
while p follows every move (`core/sweeps.h`). Then q becomes p. Sequential responses by origin come
from traffic assignment: Dial, "A path-based user-equilibrium traffic assignment algorithm" (2006).
Flows are exact at any moment, so the time is the largest load; p are lengths, and their shortest
paths prove a bound (`flows.program`).

Slopes are class widths times one steepness. A small steepness leaves times uneven for long, a large
one prices: so it grows while the largest time is further above the level (primal residual) than the
level is above the bound (dual residual), and shrinks in the opposite case.
"""

from dataclasses import dataclass

import numpy as np

from alltoall.core import find_level, update_batch
from alltoall.flows import sizes
from alltoall.flows.best_so_far import BestSoFar, Checkpoint, CheckpointFile
from alltoall.flows.exact import exact_flows
from alltoall.flows.first_order_search import Search
from alltoall.flows.guess import Guess, shortest_paths, useful_widths, within_budget
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.paths.shortest import core_graph
from alltoall.settings import SolveSettings, Team


@dataclass(frozen=True)
class SweepParams:
    """Parameters of sweeps, measured by benchmarks/scale.py.

    At first prices rise by `steepness` mean prices if a time doubles. The primal residual may be
    `balance` times the dual one; the steepness follows by the power `balance_power`, and changes by
    at most `largest_change` in a sweep. A class further than `late_share` of the largest time above
    the level is late: its slope grows by `urgency` each sweep, up to `most_urgent`. Of
    `shared_groups` groups or more, `parts` respond concurrently on all ranks, each with at most
    `part_groups` groups and 1 / `part_share` of all; fewer groups are one part, because a large
    share of all flow delays others. The bound is computed when it looks good enough, and after
    every `sweeps_between_bounds`. Sweeps that leave more than `stalled_share` of the gap after
    `stalled_sweeps` are followed by steps.
    """

    steepness: float = 5.0
    balance: float = 10.0
    balance_power: float = 0.25
    largest_change: float = 1.5
    urgency: float = 1.3
    most_urgent: float = 10.0
    late_share: float = 0.5
    parts: int = 2
    part_groups: int = 32
    part_share: int = 8
    shared_groups: int = 400
    sweeps_between_bounds: int = 5
    stalled_sweeps: int = 30
    stalled_share: float = 0.9


SWEEP_DEFAULTS = SweepParams()
"""The default parameters."""

MOST_UNEVEN = 100.0
"""The largest ratio of capacities for sweeps; steps solve the others."""


def suits_sweeps(program: FlowProgram, team: Team) -> bool:
    """Return whether sweeps apply; in a team the program is the part of one rank."""
    capacity = program.graph.capacity
    even = capacity.max() <= MOST_UNEVEN * capacity.min()
    variables = team.total(np.array([float(program.variables)]))[0]
    return bool(program.budget.max() == 0 and even and variables >= sizes.STEPPED_VARIABLES)


class Sweeps(BestSoFar):
    """The state of one solve by sweeps: exact flows, prices, and the best so far."""

    turns = "sweeps"
    best_flow: Floats

    def __init__(
        self,
        program: FlowProgram,
        settings: SolveSettings,
        guess: Guess | None,
        file: CheckpointFile | None = None,
    ) -> None:
        super().__init__(program, settings, file)
        self.params = SWEEP_DEFAULTS
        warm = guess is not None
        guess = guess or shortest_paths(program)
        self.flows = guess.volumes
        if warm:
            self.flows = exact_flows(program.graph, program.groups, guess.volumes)
        self.best_flow = self.flows.copy()
        self.share = self._shares(guess.lengths)
        useful = useful_widths(program, self.flows, self.team)
        width = np.bincount(program.link_class, useful, program.classes)[: program.classes]
        self.width = width / width.sum()
        self.graph = core_graph(program.graph)
        self.unit_cost = program.link_lengths(1 / (program.class_size * program.class_capacity))
        self.steepness, self.urgency = self.params.steepness, np.ones(program.classes)
        self._read_checkpoint()
        self.busy = self._times()
        self.certify()

    def _shares(self, lengths: Floats) -> Floats:
        """Return prices of classes that sum to 1, from link lengths."""
        program = self.program
        return within_budget(program, lengths) * program.class_size * program.class_capacity

    def _lengths(self) -> Floats:
        """Return link lengths from the prices of classes."""
        program = self.program
        return program.link_lengths(self.share / (program.class_size * program.class_capacity))

    def _times(self) -> Floats:
        """Return the time of each class, by the flows of all ranks."""
        return self.program.busy(self.team.total(self.program.weight @ self.flows))

    def _run(self) -> Status:
        """Sweep until done."""
        checked, before = self.steps, np.inf
        while True:
            length, late = self._sweep()
            self.steps += 1
            self.certify()
            self._adjust(length)
            # The length belongs to prices during the sweep, slightly below the final ones.
            enough = min(self.enough, self.time / (1 + self.settings.gap))
            promising = max(self.bound, length) >= enough
            if promising or late or self.steps % self.params.sweeps_between_bounds == 0:
                self.try_lengths(self._lengths())
                self._report()
            if self.gap <= self.settings.gap or self.bound >= self.enough:
                return Status.WITHIN_GAP
            if late:
                return Status.TIME_LIMIT
            self._write_checkpoint()
            if self.steps >= checked + self.params.stalled_sweeps:
                if self.gap > self.params.stalled_share * before:
                    return self._step_on()
                checked, before = self.steps, self.gap

    def _step_on(self) -> Status:
        """Continue by steps, from the best flow and lengths."""
        self._write_checkpoint(last=True)
        search = Search(self.program, self.settings, Guess(self.best_flow, self.best_lengths))
        search.time, search.bound, search.enough = self.time, self.bound, self.enough
        search.best_lengths = self.best_lengths
        try:
            return search.run()
        finally:
            self.best_lengths, self.bound = search.best_lengths, search.bound
            if search.time < self.time:
                self.best_flow, self.time = search.best_flow, search.time

    def _cuts(self) -> tuple[Ints, int]:
        """Return the bounds of all parts of the groups, and the number of concurrent parts."""
        params, ranks, groups = self.params, self.team.size, len(self.program.weight)
        every = int(self._sum(groups))
        parts = max(1, params.parts // ranks) if every >= params.shared_groups else 1
        size = min(params.part_groups, max(1, every // (params.part_share * parts * ranks)))
        batches = -(-every // (parts * ranks * size))
        return np.arange(batches * parts + 1) * groups // (batches * parts), parts

    def _sweep(self) -> tuple[float, bool]:
        """Let all groups respond; return total demand times distance, and whether time is up."""
        program, team = self.program, self.team
        cuts, parts = self._cuts()
        damping = float(parts * team.size)  # as if all concurrent parts made the same move
        slope = self.steepness * self.urgency * self.width / self.busy.max()
        classes = program.link_class, self.unit_cost, self.share, slope
        groups = program.groups.start, program.weight, program.groups.wanted, self.flows
        threads = min(parts, self.settings.workers)
        length, late = 0.0, False
        for first in range(0, len(cuts) - 1, parts):
            batch = self.busy, cuts[first : first + parts + 1], damping, threads
            change = update_batch(self.graph, *classes, *groups, *batch).sum(axis=0)
            total = team.total(np.append(change, float(self.settings.out_of_time())))
            self.busy = self.busy + total[:-2]
            length, late = length + total[-2], total[-1] > 0
            if late:
                break
        self.busy = self._times()
        target = self.share + slope * self.busy
        self.level = find_level(target, slope, np.ones(len(slope)))
        self.share = np.maximum(0.0, target - slope * self.level)
        return length, late

    def _adjust(self, length: float) -> None:
        """Balance primal and dual residuals, and raise the slopes of late classes."""
        params, above, below = self.params, self.busy.max() - self.level, self.level - length
        if above > 0 and below > 0:
            change = (above / (params.balance * below)) ** params.balance_power
            largest = params.largest_change
            self.steepness *= float(np.clip(change, 1 / largest, largest))
        late = self.busy - self.level > params.late_share * above
        faster = np.minimum(params.urgency * self.urgency, params.most_urgent)
        self.urgency = np.where(late, faster, 1.0)

    def certify(self) -> None:
        """Keep the current flows if they are the best so far."""
        time = float(self.busy.max())
        if time < self.time:
            self.best_flow[:] = self.flows
            self.time = time

    def best_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return the best flow as (start, link, volume) by group, freeing the current one."""
        self.flows = self.best_flow
        return super().best_entries()

    def _resume(self, found: Checkpoint) -> None:
        flows = np.asarray(found.flow, dtype=np.float64)
        self.flows = exact_flows(self.program.graph, self.program.groups, flows)
        self.share = self._shares(self.program.link_lengths(found.price))

    def _checkpoint(self, first: int) -> Checkpoint:
        price = within_budget(self.program, self._lengths())
        nothing, proof = np.empty((len(self.flows), 0)), (self.best_lengths, self.bound)
        return Checkpoint(first, self.flows, nothing, price, *proof, 1.0, self.steps)
