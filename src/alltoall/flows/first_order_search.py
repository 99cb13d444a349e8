"""Primal-dual steps, restarts and checks of the first-order method (`flows.first_order`)."""

from dataclasses import dataclass

import numpy as np

from alltoall import core
from alltoall.flows.best_so_far import BestSoFar, Checkpoint, CheckpointFile
from alltoall.flows.guess import (
    Guess,
    exact_load,
    fill_missing,
    shortest_paths,
    useful_widths,
    within_budget,
)
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Status
from alltoall.lp import SMALL_SIZE
from alltoall.paths.blocks import thread_count
from alltoall.paths.shortest import core_graph, shortest_distances
from alltoall.settings import SolveSettings


@dataclass(frozen=True)
class StepParams:
    """Parameters of primal-dual steps, measured by benchmarks/scale.py.

    The potentials have `potentials_share` of the step condition, and prices the rest. Steps of
    flows are smaller by `warm_step_share` after a guess, whose flows are nearer than its prices
    (benchmarks/resolve.py). Restart when a move is `restart_sufficient` of the first one,
    `restart_necessary` and rising, or after `restart_longest` of all steps, as in PDLP. Check loads
    after every `steps_between_checks`, and later an eighth of all. Make flows exact when they look
    good, and after `certifying_growth` times as many steps; if a bound is enough, not before
    `steps_for_bound`. End after `most_steps`, or `most_small_steps` of a program that solvers of
    linear programs finish at once. Step `batch_variables`, in at most `most_batch_steps`, between
    two checks of the clock.
    """

    potentials_share: float = 0.9
    warm_step_share: float = 0.3
    restart_sufficient: float = 0.2
    restart_necessary: float = 0.8
    restart_longest: float = 0.36
    steps_between_checks: int = 50
    steps_for_bound: int = 200
    certifying_growth: float = 1.5
    most_steps: int = 1_000_000
    most_small_steps: int = 20_000
    batch_variables: int = 40_000_000
    most_batch_steps: int = 10


STEP_DEFAULTS = StepParams()
"""The default parameters."""


class Search(BestSoFar):
    """The state of one solve by steps: iterates, step sizes, and the best so far."""

    turns = "steps"

    def __init__(
        self,
        program: FlowProgram,
        settings: SolveSettings,
        guess: Guess | None,
        file: CheckpointFile | None = None,
    ) -> None:
        super().__init__(program, settings, file)
        self.params = STEP_DEFAULTS
        warm = guess is not None
        total = program.groups.wanted.sum(axis=1)
        self.scale = total / (self._sum(total.sum()) / self._sum(len(total)))
        self.share = program.weight * self.scale
        guess = guess or shortest_paths(program)
        self.useful = useful_widths(program, guess.volumes, self.team)
        price = within_budget(program, guess.lengths)
        flow = guess.volumes / self.scale[:, None]
        length = program.link_lengths(price)
        potential = shortest_distances(program.graph, length, program.groups.start)
        potential[~np.isfinite(potential)] = 0.0
        self.weight = self._natural_weight(flow, potential, price)
        self.weight *= self.params.warm_step_share if warm else 1.0
        self.iterates = self._start(flow, potential, price)
        self.trial = np.zeros((len(program.weight), program.graph.links))
        self.best_flow = np.zeros_like(self.trial)
        self._read_checkpoint()

    def _time(self, load: Floats) -> float:
        """Return the time of link loads, summed over all ranks."""
        return float(self.program.durations(self.team.total(load)).sum())

    def _start(self, flow: Floats, potential: Floats, price: Floats) -> core.PrimalDual:
        """Return the first iterates: flows, potentials and prices."""
        program, groups = self.program, self.program.groups
        budgets = np.arange(int(program.budget.max()) + 2)
        iterates = core.PrimalDual(
            core_graph(program.graph),
            program.link_class,
            np.searchsorted(program.budget, budgets),
            program.class_size,
            program.class_capacity,
            groups.start,
            groups.wanted / self.scale[:, None],
            self.share,
            flow,
            potential,
            price,
        )
        iterates.set_steps(*self._step_sizes())
        return iterates

    def _resume(self, found: Checkpoint) -> None:
        self.weight = found.weight
        self.iterates = self._start(found.flow, found.potential, found.price)

    def _checkpoint(self, first: int) -> Checkpoint:
        groups, graph = len(self.program.weight), self.program.graph
        flow, potential = np.empty((groups, graph.links)), np.empty((groups, graph.nodes))
        self.iterates.write_flows(flow)
        self.iterates.write_potentials(potential)
        state = flow, potential, self.iterates.price, self.best_lengths, self.bound
        return Checkpoint(first, *state, self.weight, self.steps)

    def _step_sizes(self) -> tuple[Floats, Floats, Floats]:
        """Return step sizes of flows, potentials and prices, by the primal weight."""
        program, graph, share = self.program, self.program.graph, self.params.potentials_share
        flow = self.weight * self.useful
        near = np.bincount(graph.tail, flow, graph.nodes)
        near += np.bincount(graph.head, flow, graph.nodes)
        near[near == 0] = 1.0  # isolated nodes
        total = self._sum(float(self.share.sum()))
        size = np.bincount(program.link_class, flow, program.classes)[: program.classes]
        return flow, share / (2 * near), (1 - share) / (size / program.class_size * total)

    def _natural_weight(self, flow: Floats, potential: Floats, price: Floats) -> float:
        """Return the primal weight that gives flows and lengths equal norms."""
        self.weight = 1.0
        of_flow, of_potential, of_price = self._step_sizes()
        flows = self._sum(float((self.share @ flow**2) @ (1 / of_flow)))
        potentials = self._sum(float((self.share @ potential**2) @ (1 / of_potential)))
        prices = float((self.program.class_size * price**2 / of_price).sum())
        return float(np.sqrt(flows / (potentials + prices)))

    def _run(self) -> Status:
        """Step, restart and check until done."""
        params, since, begun = self.params, 0, self.steps
        first_move, last_move = 0.0, np.inf
        eager = np.isinf(self.enough)  # A flow is wanted, not only a bound.
        next_certified = 0.0 if eager else float(begun + params.steps_for_bound)
        next_check = begun + params.steps_between_checks
        variables = int(self._sum(self.program.variables))
        batch = int(np.clip(params.batch_variables // variables, 1, params.most_batch_steps))
        small = params.most_small_steps if variables < SMALL_SIZE else params.most_steps
        while self.steps < begun + min(small, params.most_steps):
            move = self._run_steps(since, batch)
            first_move = move if since == 0 else first_move
            since, self.steps = since + batch, self.steps + batch
            late = self._sum(float(self.settings.out_of_time())) > 0
            if self.steps >= next_check or late:
                promising = self._promising()
                due = (promising and eager) or self.steps >= next_certified or late
                if self.bound < self.enough and due:
                    self.certify()
                    next_certified = params.certifying_growth * self.steps
                    self._report()
                if self.gap <= self.settings.gap or self.bound >= self.enough:
                    return Status.WITHIN_GAP
                if late:
                    return Status.TIME_LIMIT
                self._write_checkpoint()
                next_check = self.steps + max(params.steps_between_checks, self.steps // 8)
            slower = move > last_move and move <= params.restart_necessary * first_move
            long = since >= max(64, params.restart_longest * self.steps)
            if move <= params.restart_sufficient * first_move or slower or long:
                self.iterates.restart()
                since, move = 0, np.inf
            last_move = move
        return Status.GAP_NOT_REACHED

    def _run_steps(self, since: int, count: int) -> float:
        """Take reflected Halpern steps, `since` steps after the anchor; return the last move.

        With T the primal-dual step, z becomes a (2 T(z) - z) + (1 - a) anchor with
        a = (k + 1) / (k + 2). The ranks of a team share prices, by the sum of their loads.
        """
        moved = 0.0
        for step in range(since, since + count):
            keep = (step + 1) / (step + 2)
            load = self.team.total(self.iterates.step_flows(keep, thread_count()))
            moved = float(load[-1]) + self.iterates.step_prices(load, keep)
        return float(np.sqrt(moved))

    def _promising(self) -> bool:
        """Raise the bound by the current prices; return whether the loads are within the gap.

        Undelivered flow adds no load, so this is no proof.
        """
        self.try_lengths(self.program.link_lengths(np.maximum(self.iterates.price, 0.0)))
        self.iterates.write_flows(self.trial)
        load = self.share @ np.maximum(self.trial, 0.0, out=self.trial)
        return self._time(load) <= self.bound * (1 + self.settings.gap)

    def certify(self) -> None:
        """Make the current flows exact, and keep them if they are the best so far."""
        trial = self.trial
        self.iterates.write_flows(trial)
        trial *= self.scale[:, None]
        fill_missing(self.program, trial, team=self.team)
        time = self._time(exact_load(self.program, trial))
        if time < self.time:
            self.time, self.trial, self.best_flow = time, self.best_flow, trial
