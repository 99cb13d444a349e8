"""The search of the first-order method: steps, restarts and checks (`flows.first_order`)."""

from typing import Any

import numpy as np

from alltoall.flows.best_so_far import BestSoFar
from alltoall.flows.checkpoint import Checkpoint, Keeping
from alltoall.flows.exact import narrowness
from alltoall.flows.fill import fill_missing
from alltoall.flows.first_order_lanes import lanes_for, positive_load, to_lanes, to_rows
from alltoall.flows.first_order_loops import (
    Network,
    Prices,
    State,
    Steps,
    exact_load,
    run_steps,
    run_steps_together,
)
from alltoall.flows.guess import Guess, shortest_paths, useful_widths, within_budget
from alltoall.flows.program import FlowProgram
from alltoall.ir.arrays import Floats
from alltoall.ir.flow import Status
from alltoall.lp import SMALL_SIZE
from alltoall.paths.kernels import run_in_turn
from alltoall.paths.shortest import Adjacency, shortest_distances
from alltoall.settings import SolveSettings

POTENTIALS_SHARE = 0.9
"""The share of the step condition that goes to the potentials; prices have the rest."""

WARM_STEP_SHARE = 0.3
"""How much smaller the steps of flows are after a guess: its flows are nearer than its prices."""

STEP_MARGIN = 0.998
"""Step sizes stay this much below what the condition allows, for rounding."""

RESTART_SUFFICIENT, RESTART_NECESSARY, RESTART_LONGEST = 0.2, 0.8, 0.36
"""Restart when the move is this share of the first one; or this one and rising; or after this share
of all steps."""

BATCH_VARIABLES = 40_000_000
"""Flow variables stepped in one compiled call, so that Ctrl-C is heard within a second."""

MOST_BATCH_STEPS = 10
"""Steps in one compiled call: restarts are considered in between."""

STEPS_BETWEEN_CHECKS = 50
"""Steps between checks whether the flows' loads are near the bound; later an eighth of all."""

STEPS_FOR_BOUND = 200
"""Steps before a flow is made exact, where a bound may be enough: that costs as much as these."""

CERTIFYING_GROWTH = 1.5
"""Flows are made exact when they look good, and when there are this many times more steps."""

SINGLE_GAP = 1e-4
"""Gaps from here on are reached in single precision."""

SINGLE_RANGE = 1e3
"""Capacities further apart than this need double precision: narrow links carry little."""

MOST_STEPS = 1_000_000
"""Steps after which the method gives up."""

MOST_SMALL_STEPS = 20_000
"""The same for programs so small that a linear program's solver finishes them at once."""


class Search(BestSoFar):
    """The state of one solve by steps: iterates, step sizes, and the best so far."""

    turns = "steps"

    def __init__(
        self,
        program: FlowProgram,
        settings: SolveSettings,
        guess: Guess | None,
        keeping: Keeping | None = None,
    ) -> None:
        super().__init__(program, settings, keeping)
        warm = guess is not None
        total = program.groups.wanted.sum(axis=1)
        self.scale = total / (self._sum(total.sum()) / self._sum(len(total)))
        uneven = program.graph.capacity.max() > SINGLE_RANGE * program.graph.capacity.min()
        single = settings.gap >= SINGLE_GAP and not uneven
        self.real: Any = np.float32 if single else np.float64
        self.width = lanes_for(len(program.weight), program.graph.nodes)
        self.network = self._network()
        self.prices = Prices(
            np.searchsorted(program.budget, np.arange(int(program.budget.max()) + 2)),
            program.link_class,
            program.class_size,
            program.class_capacity,
        )
        self.most_steps = MOST_STEPS
        guess = guess or shortest_paths(program)
        self.useful = useful_widths(program, guess.volumes, self.team)
        self.state = self._start(guess)
        self.trial = np.zeros((len(program.weight), program.graph.links), dtype=self.real)
        self.best_flow = np.zeros_like(self.trial)
        self.weight = 1.0
        self.weight = self._natural_weight() * (WARM_STEP_SHARE if warm else 1.0)
        self._go_on()

    def _time(self, load: Floats) -> float:
        """Return the time of loads, each the sum of this rank's flows on a link."""
        return float(self.program.durations(self.team.total(load)).sum())

    def _resume(self, found: Checkpoint) -> None:
        """Go on with the iterates and the weight of a checkpoint."""
        state = self.state
        state.flow[:], state.potential[:] = self._lanes(found.flow), self._lanes(found.potential)
        state.price[:] = found.price
        self._restart()
        self.weight = found.weight

    def _checkpoint(self, keeping: Keeping) -> Checkpoint:
        """Return the iterates, the weight and the best proof."""
        groups, state = len(self.program.weight), self.state
        flow = np.empty((groups, self.program.graph.links), dtype=self.real)
        potential = np.empty((groups, self.program.graph.nodes), dtype=self.real)
        to_rows(state.flow, flow)
        to_rows(state.potential, potential)
        proof = self.best_lengths, self.bound
        return Checkpoint(
            keeping.first, flow, potential, state.price, *proof, self.weight, self.steps
        )

    def _network(self) -> Network:
        program = self.program
        return Network(
            program.graph.tail.astype(np.uint32),
            program.graph.head.astype(np.uint32),
            self._lanes(program.groups.start, np.int64),
            self._lanes(program.groups.wanted / self.scale[:, None]),
            self._lanes(program.weight * self.scale),
        )

    def _lanes(self, rows: Any, kind: Any = None) -> Any:
        """Return what is by group in lanes."""
        return to_lanes(rows, self.width, kind or self.real)

    def _start(self, guess: Guess) -> State:
        """Start from the guess: flows, prices and potentials."""
        program = self.program
        price = within_budget(program, guess.lengths)
        length = program.link_lengths(price)
        flow = self._lanes(guess.volumes / self.scale[:, None])
        distance = shortest_distances(program.graph, length, program.groups.start)
        distance[~np.isfinite(distance)] = 0.0
        potential = self._lanes(distance)
        return State(flow, potential, price, flow.copy(), potential.copy(), price.copy())

    def _steps(self) -> Steps:
        """Return step sizes for the present weight of flows against lengths."""
        program, graph = self.program, self.program.graph
        flow = STEP_MARGIN * self.weight * self.useful
        near = np.bincount(graph.tail, flow, graph.nodes)
        near += np.bincount(graph.head, flow, graph.nodes)
        near[near == 0] = 1.0  # what no link touches wants nothing
        total = self._sum(float((program.weight * self.scale).sum()))
        size = np.bincount(program.link_class, flow, program.classes)[: program.classes]
        price = (1 - POTENTIALS_SHARE) / (size / program.class_size * total)
        per_link = flow.astype(self.real), (1 / flow).astype(self.real)
        return Steps(*per_link, (POTENTIALS_SHARE / (2 * near)).astype(self.real), price)

    def _natural_weight(self) -> float:
        """Return the weight that makes flows and lengths as far from zero as each other."""
        steps, state = self._steps(), self.state
        share = self.network.share
        flow = np.einsum("blw,blw,l,bw->", state.flow, state.flow, steps.inverse, share)
        inverse = 1 / steps.potential
        squares = np.einsum("bnw,bnw,n,bw->", state.potential, state.potential, inverse, share)
        price = float((self.prices.size * state.price**2 / steps.price).sum())
        return float(np.sqrt(self._sum(float(flow)) / (self._sum(float(squares)) + price)))

    def _run(self) -> Status:
        """Step, restart and check until done."""
        steps, since, begun = self._steps(), 0, self.steps
        first_move, last_move = 0.0, np.inf
        eager = np.isinf(self.enough)  # A flow is asked for, and a bound alone is never enough.
        next_certified = 0.0 if eager else float(begun + STEPS_FOR_BOUND)
        next_check = begun + STEPS_BETWEEN_CHECKS
        variables = int(self._sum(self.program.variables))
        batch = int(np.clip(BATCH_VARIABLES // variables, 1, MOST_BATCH_STEPS))
        small = MOST_SMALL_STEPS if variables < SMALL_SIZE else MOST_STEPS
        while self.steps < begun + min(small, self.most_steps):
            move = self._run_steps(steps, since, batch)
            first_move = move if since == 0 else first_move
            since, self.steps = since + batch, self.steps + batch
            late = self._sum(float(self.settings.out_of_time())) > 0
            if self.steps >= next_check or late:
                promising = self._promising()
                due = (promising and eager) or self.steps >= next_certified or late
                if self.bound < self.enough and due:
                    self.certify()
                    next_certified = CERTIFYING_GROWTH * self.steps
                    self._report()
                if self.gap <= self.settings.gap or self.bound >= self.enough:
                    return Status.WITHIN_GAP
                if late:
                    return Status.TIME_LIMIT
                self._keep()
                next_check = self.steps + max(STEPS_BETWEEN_CHECKS, self.steps // 8)
            slower = move > last_move and move <= RESTART_NECESSARY * first_move
            long = since >= max(64, RESTART_LONGEST * self.steps)
            if move <= RESTART_SUFFICIENT * first_move or slower or long:
                self._restart()
                since, move = 0, np.inf
            last_move = move
        return Status.GAP_NOT_REACHED

    def _run_steps(self, steps: Steps, since: int, count: int) -> float:
        """Take some steps; return how far the last one moves."""
        given = (self.network, self.prices, steps, self.state, since, count)
        if self.team.size == 1:
            return float(run_in_turn(run_steps, *given))
        return run_in_turn(run_steps_together, *given, self.team)

    def _restart(self) -> None:
        state = self.state
        state.flow_anchor[:] = state.flow
        state.potential_anchor[:] = state.potential
        state.price_anchor[:] = state.price

    def _promising(self) -> bool:
        """Raise the bound by the present prices; say whether the flows' loads are within the gap.

        The loads count what is still to be delivered as if it were free, so they are no proof.
        """
        program = self.program
        self.try_lengths(program.link_lengths(np.maximum(self.state.price, 0.0)))
        load = run_in_turn(positive_load, self.state.flow, self.network.share).sum(axis=0)
        return self._time(load) <= self.bound * (1 + self.settings.gap)

    def certify(self) -> None:
        """Make the present flows exact, and keep them if they are the best so far."""
        program, groups, trial = self.program, self.program.groups, self.trial
        to_rows(self.state.flow, trial)
        np.multiply(trial, self.scale[:, None], out=trial, casting="same_kind")
        fill_missing(program, trial, team=self.team)
        adjacency = Adjacency(program.graph)
        load = run_in_turn(
            exact_load,
            (program.graph.tail, program.graph.head),
            adjacency.outgoing,
            adjacency.incoming,
            narrowness(program.graph),
            groups.start,
            groups.wanted,
            program.weight,
            trial,
        )
        time = self._time(load.sum(axis=0))
        if time < self.time:
            self.time, self.trial, self.best_flow = time, self.best_flow, trial
