r"""Sweeps: the master program by prices, and sources that answer to them one after the other.

The program with one budget (`flows.program`) is a game between flows and prices of classes,

    min over flows x  of  max over prices p >= 0 that sum to 1  of  sum over c of p[c] busy[c](x),

where busy[c] is the time of class c, linear in x. The method of multipliers adds to the prices q
of the last sweep what times are above a level,

    p[c]  =  max(0, q[c] + slope[c] (busy[c] - level)),        sum of p = 1,

and a sweep lets each source in turn move flow from its dearest paths to cheapest ones, while p
follows every move (`flows.sweep_loops`). Then q becomes p. Origins that answer in turn are how
traffic is assigned to roads: Dial, "A path-based user-equilibrium traffic assignment algorithm"
(2006). Flows are exact all the time, so the time is the largest load; p are lengths, and their
shortest paths prove a bound (`flows.certificate`).

Slopes are as wide as classes are, times one number. If it is small, times differ for long; if it is
large, prices do: so it grows while the largest time is further above the level than the level
is above what the shortest paths prove, and shrinks where it is the other way round.
"""

import numpy as np

from alltoall.flows import sizes
from alltoall.flows.best_so_far import BestSoFar
from alltoall.flows.checkpoint import Checkpoint, Keeping
from alltoall.flows.exact import exact_flows
from alltoall.flows.first_order_loops import level_of
from alltoall.flows.first_order_search import Search
from alltoall.flows.guess import Guess, shortest_paths, useful_widths, within_budget
from alltoall.flows.program import FlowProgram
from alltoall.flows.sweep_loops import Pressure, Roads, wave
from alltoall.flows.threads import using_threads
from alltoall.ir.arrays import Floats, Ints
from alltoall.ir.flow import Status
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.shortest import Adjacency
from alltoall.settings import SolveSettings, Team

SWEEP_STEEPNESS = 5.0
"""How steep prices are at first: by so many shares of a mean one if a time doubles."""

BALANCE, BALANCING, LARGEST_CHANGE = 10.0, 0.25, 1.5
"""Times may be this many times as far from the level as the bound is; the power by which the
steepness follows; and its largest change in a sweep."""

URGENCY, MOST_URGENT, LATE_SHARE = 1.3, 10.0, 0.5
"""A class that is this share of the largest time above the level is late: its price rises faster by
a factor each sweep, up to a largest one."""

PARTS = 2
"""Parts that answer at the same time, on all ranks: a constant, whatever the number of threads."""

PART_GROUPS, PART_SHARE = 32, 8
"""The most groups of a part, and which part of all groups answers at the same time at most: they
move to the paths that were cheapest before any of them did."""

LEAST_SHARED_GROUPS = 400
"""Groups below which there is one part: the larger its share of all flow, the more others wait."""

CROWDING = 0.5
"""How much of what another part moves at the same time a part expects to be like its own moves."""

SWEEPS_BETWEEN_BOUNDS = 5
"""Sweeps after which a bound is proven, whether or not it looks good enough."""

PROMISE = 0.25
"""A share of the gap by which the bound may be better than it looks."""

STALLED_SWEEPS, STALLED_SHARE = 30, 0.9
"""Sweeps end where so many of them leave more than this share of the gap; steps then go on."""

MOST_UNEVEN = 100.0
"""Capacities further apart than this are left to steps."""


def suits_sweeps(program: FlowProgram, team: Team) -> bool:
    """Return whether a program, of which a team's rank has a part, is one for sweeps."""
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
        keeping: Keeping | None = None,
    ) -> None:
        super().__init__(program, settings, keeping)
        exact = guess is None
        guess = guess or shortest_paths(program)
        self.flows = guess.volumes
        if not exact:
            self.flows = exact_flows(program.graph, program.groups, guess.volumes)
        self.best_flow = self.flows.copy()
        self.share = self._shares(guess.lengths)
        useful = useful_widths(program, self.flows, self.team)
        width = np.bincount(program.link_class, useful, program.classes)[: program.classes]
        self.width = width / width.sum()
        self.roads = self._roads()
        self.steepness, self.urgency = SWEEP_STEEPNESS, np.ones(program.classes)
        self._go_on()
        self.busy = self._times()
        self.certify()

    def _shares(self, lengths: Floats) -> Floats:
        """Return prices of classes that sum to 1, by lengths of links."""
        program = self.program
        return within_budget(program, lengths) * program.class_size * program.class_capacity

    def _lengths(self) -> Floats:
        """Return the length of each link by the prices of its class."""
        program = self.program
        return program.link_lengths(self.share / (program.class_size * program.class_capacity))

    def _times(self) -> Floats:
        """Return how long each class is busy, by the flows of all ranks."""
        return self.program.busy(self.team.total(self.program.weight @ self.flows))

    def _roads(self) -> Roads:
        graph, adjacency = self.program.graph, Adjacency(self.program.graph)
        toll = 1 / (self.program.class_size * self.program.class_capacity)
        ends = graph.tail, graph.head, self.program.link_class
        return Roads(
            *adjacency.outgoing, *adjacency.incoming, *ends, self.program.link_lengths(toll)
        )

    def _run(self) -> Status:
        """Sweep until done."""
        checked, before = self.steps, np.inf
        while True:
            length, late = self._sweep()
            self.steps += 1
            self.certify()
            self._adjust(length)
            # These distances are those of prices on the way, and a little short of the last ones'.
            good = max(self.bound, length * (1 + PROMISE * self.settings.gap))
            promising = good >= min(self.enough, self.time / (1 + self.settings.gap))
            if promising or late or self.steps % SWEEPS_BETWEEN_BOUNDS == 0:
                self.try_lengths(self._lengths())
                self._report()
            if self.gap <= self.settings.gap or self.bound >= self.enough:
                return Status.WITHIN_GAP
            if late:
                return Status.TIME_LIMIT
            self._keep()
            if self.steps >= checked + STALLED_SWEEPS:
                if self.gap > STALLED_SHARE * before:
                    return self._step_on()
                checked, before = self.steps, self.gap

    def _step_on(self) -> Status:
        """Go on by steps, from the best flow and lengths."""
        self._keep(now_or_never=True)
        search = Search(self.program, self.settings, Guess(self.best_flow, self.best_lengths))
        search.time, search.bound, search.enough = self.time, self.bound, self.enough
        search.best_lengths = self.best_lengths
        try:
            return search.run()
        finally:
            self.best_lengths, self.bound = search.best_lengths, search.bound
            if search.time < self.time:
                self.best_flow, self.time = search.best_flow.astype(np.float64), search.time

    def _sweep(self) -> tuple[float, bool]:
        """Let all groups answer; return the sum of demands times distances, and if time is up."""
        program, team = self.program, self.team
        groups = len(program.weight)
        every = int(self._sum(groups))
        parts = max(1, PARTS // team.size) if every >= LEAST_SHARED_GROUPS else 1
        crowd = 1 + CROWDING * (parts * team.size - 1)
        size = min(PART_GROUPS, max(1, every // (PART_SHARE * parts * team.size)))
        waves = -(-every // (parts * team.size * size))
        cuts = np.arange(waves * parts + 1) * groups // (waves * parts)
        slope = self.steepness * self.urgency * self.width / self.busy.max()
        pressure = Pressure(self.share, slope)
        sources = program.groups.start, program.weight, program.groups.wanted
        length, late = 0.0, False
        # Threads without a part would only be waited for.
        with using_threads(min(parts, self.settings.workers)):
            for turn in range(waves):
                part = cuts[turn * parts : (turn + 1) * parts + 1]
                given = (self.roads, pressure, sources, self.flows, self.busy, part, crowd)
                answer = run_in_turn(wave, *given)
                told = np.append(answer.sum(axis=0), float(self.settings.out_of_time()))
                told = team.total(told)
                self.busy = self.busy + told[:-2]
                length, late = length + told[-2], told[-1] > 0
                if late:
                    break
        self.busy = self._times()
        target = self.share + slope * self.busy
        self.level = level_of(target, slope, np.ones(len(slope)))
        self.share = np.maximum(0.0, target - slope * self.level)
        return length, late

    def _adjust(self, length: float) -> None:
        """Balance how far times and the bound are from the level, and hurry what is too late."""
        above, below = self.busy.max() - self.level, self.level - length
        if above > 0 and below > 0:
            change = (above / (BALANCE * below)) ** BALANCING
            self.steepness *= float(np.clip(change, 1 / LARGEST_CHANGE, LARGEST_CHANGE))
        late = self.busy - self.level > LATE_SHARE * above
        faster = np.minimum(URGENCY * self.urgency, MOST_URGENT)
        self.urgency = np.where(late, faster, 1.0)

    def certify(self) -> None:
        """Keep the present flows if they are the best so far."""
        time = float(self.busy.max())
        if time < self.time:
            self.best_flow[:] = self.flows
            self.time = time

    def best_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return the best flow as (start, link, volume) by group; the present one makes room."""
        self.flows = self.best_flow
        return super().best_entries()

    def _resume(self, found: Checkpoint) -> None:
        """Go on with the flows and prices of a checkpoint."""
        flows = np.asarray(found.flow, dtype=np.float64)
        self.flows = exact_flows(self.program.graph, self.program.groups, flows)
        self.share = self._shares(self.program.link_lengths(found.price))

    def _checkpoint(self, keeping: Keeping) -> Checkpoint:
        """Return the flows, the prices and the best proof."""
        price = within_budget(self.program, self._lengths())
        nothing, proof = np.empty((len(self.flows), 0)), (self.best_lengths, self.bound)
        return Checkpoint(keeping.first, self.flows, nothing, price, *proof, 1.0, self.steps)
