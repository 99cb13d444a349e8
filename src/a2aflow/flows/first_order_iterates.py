"""The iterates of the first-order method: flows, potentials and prices, stepped and restarted."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from a2aflow.flows.exact import exact_flows
from a2aflow.flows.first_order_lanes import lanes_for, load_and_lack, squares, to_lanes, to_rows
from a2aflow.flows.first_order_loops import (
    Network,
    Prices,
    State,
    Steps,
    run_steps,
    run_steps_together,
)
from a2aflow.flows.program import FlowProgram
from a2aflow.ir.arrays import Floats, Reals
from a2aflow.paths.shortest import shortest_distances
from a2aflow.settings import Team

POTENTIALS_SHARE = 0.75
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

BATCHES = (10, 5, 2, 1)
"""Steps in one compiled call; restarts are considered after every ten."""

SINGLE_RANGE = 1e3
"""Capacities further apart than this need double precision: narrow links carry little."""


@dataclass(frozen=True, eq=False)
class Guess:
    """Where to start: volumes [groups, links] and a length per link, near to optimal or not."""

    volumes: Floats
    lengths: Floats


def shortest_paths(program: FlowProgram) -> Guess:
    """Return where to start without a guess: shortest paths, and links that are equally full."""
    nothing = np.zeros((len(program.weight), program.graph.links))
    volumes = exact_flows(program.graph, program.groups, nothing)
    return Guess(volumes, 1 / program.graph.capacity)


class Iterates:
    """Flows, potentials and prices, with the sizes of their steps and where they restarted."""

    def __init__(self, program: FlowProgram, team: Team, guess: Guess | None, single: bool) -> None:
        self.program, self.team = program, team
        total = program.groups.wanted.sum(axis=1)
        self.scale = total / (self.sum(total.sum()) / self.sum(len(total)))
        self.demand = self.sum(float(program.weight @ total))
        uneven = program.graph.capacity.max() > SINGLE_RANGE * program.graph.capacity.min()
        self.real: Any = np.float32 if single and not uneven else np.float64
        self.width = lanes_for(len(program.weight), program.graph.nodes)
        self.network = self._network()
        self.prices = Prices(
            np.searchsorted(program.budget, np.arange(int(program.budget.max()) + 2)),
            program.link_class,
            program.class_size,
            program.class_capacity,
        )
        start = guess or shortest_paths(program)
        self.useful = self._useful_widths(start.volumes)
        self.state = self._start(start)
        self.least = self._no_least()
        self.weight, self.count = 1.0, 0
        self.weight = self._balance() * (1.0 if guess is None else WARM_STEP_SHARE)
        variables = self.sum(program.variables)
        self.batch = next((each for each in BATCHES if each * variables <= BATCH_VARIABLES), 1)
        self.restart()

    def sum(self, part: float) -> float:
        """Return the sum of a number over the ranks of the team."""
        return float(self.team.total(np.array([part], dtype=np.float64))[0])

    def _useful_widths(self, volumes: Floats) -> Floats:
        """Return how much of each link there is to use, next to that of a median one.

        In the time that some volumes take, all demand together needs no more than a certain width.
        """
        program, capacity = self.program, self.program.graph.capacity
        time = float(program.durations(self.team.total(program.weight @ volumes)).sum())
        useful = np.minimum(capacity, self.demand / time) if time > 0 else capacity
        return np.asarray(useful / np.quantile(useful, 0.5, method="lower"))

    def _network(self) -> Network:
        program = self.program
        return Network(
            program.graph.tail.astype(np.uint32),
            program.graph.head.astype(np.uint32),
            self.lanes(program.groups.start, np.int64),
            self.lanes(program.groups.wanted / self.scale[:, None]),
            self.lanes(program.weight * self.scale),
        )

    def lanes(self, rows: Any, kind: Any = None) -> Any:
        """Return what is by group in lanes."""
        return to_lanes(rows, self.width, kind or self.real)

    def rows(self, lanes: Reals) -> Reals:
        """Return flows or potentials in lanes by group."""
        found = np.empty((len(self.program.weight), lanes.shape[1]), dtype=self.real)
        to_rows(lanes, found)
        return found

    def volumes(self, rows: Reals) -> None:
        """Write the present flows to an array [groups, links], in units of the program."""
        to_rows(self.state.flow, rows)
        np.multiply(rows, self.scale[:, None], out=rows, casting="same_kind")

    def load_and_lack(self) -> tuple[Floats, float]:
        """Return what all flows put on each link, and the share of the demand that they lack.

        Negative flows count as nothing.
        """
        network = self.network
        groups = network.root, network.wanted, network.share
        told = load_and_lack((network.tail, network.head), groups, self.state.flow).sum(axis=0)
        total = self.team.total(told)
        return total[:-1], float(total[-1]) / self.demand

    def lengths(self) -> Floats:
        """Return the present prices as a length per link."""
        return self.program.link_lengths(np.maximum(self.state.price, 0.0))

    def _start(self, guess: Guess) -> State:
        """Start from the guess: flows, prices and potentials; the anchors are zero."""
        program = self.program
        price = self._within_budget(guess.lengths)
        length = program.link_lengths(price)
        flow = self.lanes(guess.volumes / self.scale[:, None])
        distance = shortest_distances(program.graph, length, program.groups.start)
        distance[~np.isfinite(distance)] = 0.0
        potential = self.lanes(distance)
        anchors = np.zeros_like(flow), np.zeros_like(potential), np.zeros_like(price)
        return State(flow, potential, price, *anchors)

    def _within_budget(self, lengths: Floats) -> Floats:
        """Return the mean length of each class, scaled so that each budget is spent."""
        program = self.program
        counted = np.bincount(program.link_class, lengths, program.classes)[: program.classes]
        price = counted / program.class_size
        spent = np.bincount(program.budget, program.class_size * program.class_capacity * price)
        even = 1 / np.bincount(program.budget, program.class_size * program.class_capacity)
        share = np.divide(1.0, spent, out=np.zeros_like(spent), where=spent > 0)[program.budget]
        return np.where(share > 0, price * share, even[program.budget])

    def _steps(self) -> Steps:
        """Return step sizes for the present weight of flows against lengths."""
        program, graph = self.program, self.program.graph
        flow = STEP_MARGIN * self.weight * self.useful
        near = np.bincount(graph.tail, flow, graph.nodes)
        near += np.bincount(graph.head, flow, graph.nodes)
        near[near == 0] = 1.0  # what no link touches wants nothing
        total = self.sum(float((program.weight * self.scale).sum()))
        size = np.bincount(program.link_class, flow, program.classes)[: program.classes]
        price = (1 - POTENTIALS_SHARE) / (size / program.class_size * total)
        per_link = flow.astype(self.real), (1 / flow).astype(self.real)
        return Steps(*per_link, (POTENTIALS_SHARE / (2 * near)).astype(self.real), price)

    def _balance(self) -> float:
        """Return the weight that makes flows and lengths equally far from their anchors."""
        steps, state, share = self._steps(), self.state, self.network.share
        flows = squares(state.flow, state.flow_anchor, steps.inverse, share)
        potentials = squares(state.potential, state.potential_anchor, 1 / steps.potential, share)
        prices = self.prices.size * (state.price - state.price_anchor) ** 2 / steps.price
        primal, dual = self.sum(flows.sum()), self.sum(potentials.sum()) + float(prices.sum())
        return self.weight * float(np.sqrt(primal / dual)) if primal > 0 < dual else self.weight

    def restart(self) -> None:
        """Take the present iterates as anchors."""
        state = self.state
        state.flow_anchor[:] = state.flow
        state.potential_anchor[:] = state.potential
        state.price_anchor[:] = state.price
        self.steps, self.since = self._steps(), 0
        self.first_move, self.last_move = 0.0, np.inf

    def advance(self) -> None:
        """Take a batch of steps; restart if progress slows."""
        move = self._moved(self.batch)
        self.since, self.count = self.since + self.batch, self.count + self.batch
        if self.since % max(BATCHES) > 0:
            return
        self.first_move = self.first_move or move
        slower = move > self.last_move and move <= RESTART_NECESSARY * self.first_move
        long = self.since >= max(64, RESTART_LONGEST * self.count)
        self.last_move = move
        if move <= RESTART_SUFFICIENT * self.first_move or slower or long:
            if not self.polishing:
                self.weight = float(np.sqrt(self.weight * self._balance()))
            self.restart()

    def _moved(self, count: int) -> float:
        """Take some steps; return how far the last one moves."""
        known = self.network, self.prices, self.steps, self.state, self.least, self.since, count
        if self.team.size == 1:
            return float(run_steps(*known))
        return run_steps_together(*known, self.team)

    def _no_least(self) -> Floats:
        return np.full(len(self.prices.first) - 1, -np.inf)

    @property
    def polishing(self) -> bool:
        """Whether steps are towards a time that is short enough, and no further."""
        return bool(self.least[0] > -np.inf)

    @contextmanager
    def towards(self, time: float) -> Iterator[None]:
        """Let steps lead to flows that take no more than a time; prices stay as they are.

        Nothing has a price at first, so flows leave where they are only as far as they must: near
        good flows those that are a little longer than optimal are found soon.
        """
        state = self.state
        potential, price = state.potential.copy(), state.price.copy()
        state.potential[:], state.price[:] = 0.0, 0.0
        durations = self.program.durations(self.load_and_lack()[0])
        self.least = durations * (time / durations.sum())
        self.restart()
        yield
        self.least = self._no_least()
        state.potential[:], state.price[:] = potential, price
        self.restart()
