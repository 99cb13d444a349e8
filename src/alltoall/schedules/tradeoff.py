"""Trade time for operations: every message costs the rank that starts it.

    minimize    time + latency * steps + operation_cost * operations of the busiest rank

over schedules with fewer relays, fewer steps and fewer chunks. Relays are the terminals without a
demand of their own; 0, 1, 2, 4, ... of those with most flow are tried. One more step allows one
more hop. Fewer chunks take fewer paths, and so need fewer messages.

Hopeless cases are skipped: no schedule is faster than the fractional one in as many steps, and a
rank needs at least one message for each other rank that it sends to or receives from.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from alltoall.errors import TopologyError
from alltoall.flows.methods import solve_master
from alltoall.flows.symmetry.translations import find_translations
from alltoall.ir.arrays import Ints
from alltoall.ir.chunks import Chunks
from alltoall.ir.demand import Demand
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule, operations_of
from alltoall.schedules.chunks import choices_of, floor_of, schedule_from
from alltoall.schedules.found import Choice, FoundSchedule, worth_telling
from alltoall.schedules.search import (
    affordable_numbers,
    flow_in_steps_of,
    flow_of_steps,
    forms_of,
    smallest_loss,
    timed_flows,
)
from alltoall.schedules.timestepped import TimedFlow
from alltoall.settings import ScheduleSettings

PATIENCE = 2
"""Numbers of steps without gain after which no more are tried with equal relays.

`benchmarks/chunk_schedules.py` measures it.
"""


@dataclass(frozen=True, eq=False)
class Part:
    """A problem without some of its idle terminals, and the remaining terminals and links."""

    whole: Problem
    problem: Problem
    terminals: Ints
    links: Ints

    def restored(self, schedule: Schedule, master: Flow) -> Schedule:
        """Return a schedule of a part as a schedule of the whole problem, with its certificate."""
        counts = np.zeros((self.whole.demand.terminals,) * 2, dtype=np.int64)
        counts[np.ix_(self.terminals, self.terminals)] = schedule.chunk_counts()
        uniform = self.whole.demand.uniform
        return replace(
            schedule,
            problem=self.whole,
            chunks=schedule.chunks if uniform else Chunks(len(counts), counts=counts),
            source=self.terminals[schedule.source],
            destination=self.terminals[schedule.destination],
            link=self.links[schedule.link],
            certificate=master.certificate,
        )


@dataclass
class Search:
    """The best schedule so far, and the costs of all."""

    whole: Problem
    settings: ScheduleSettings
    choices: list[Choice]
    best: tuple[Choice, Schedule, TimedFlow] | None = None

    def bound(self, time: float, steps: int) -> float:
        """Return a lower bound on the total cost of a schedule of this time and steps."""
        table = self.whole.demand.table() > 0
        least = int((table.any(axis=0).astype(int) + table.any(axis=1)).max())
        return self._total(time, steps, least)

    def hopeless(self, bound: float) -> bool:
        """Return whether no such schedule can improve the best, or time is up."""
        if self.best is None:
            return False
        return bound >= self.best[0].total * (1 - 1e-9) or self.settings.solve.out_of_time()

    def add(self, schedule: Schedule, flow: TimedFlow) -> None:
        """Compare a schedule of the whole problem with the best."""
        operations, time, steps = operations_of(schedule), schedule.time, schedule.steps
        relays = int(np.count_nonzero(operations[idle_terminals(self.whole.demand)]))
        most = int(operations.max())
        total = self._total(time, steps, most)
        choice = Choice(relays, steps, schedule.chunks_per_shard, most, time, total)
        self.choices.append(choice)
        if self.best is None or total < self.best[0].total * (1 - 1e-9):
            self.best = choice, schedule, flow

    def _total(self, time: float, steps: int, operations: int) -> float:
        asked = self.settings
        return time + asked.latency * steps + asked.operation_cost * operations


def find_cheapest(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Find the schedule of least cost for a problem in normal units, with the costs of others."""
    master = solve_master(problem, settings.solve)
    if master.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    search = Search(problem, settings, [])
    for part in _parts(master):
        _try_part(part, master, search)
    assert search.best is not None  # The whole problem is one of the parts.
    chosen, schedule, flow = search.best
    flow = flow_in_steps_of(schedule, flow, master, settings.solve)
    schedule = replace(schedule, fractional_time=flow.time)
    proven = flow.bound if flow.expansion.problem is master.problem else 0.0
    tradeoff = worth_telling(search.choices, chosen)
    return FoundSchedule.single(schedule, max(proven, master.bound), tradeoff=tradeoff)


def idle_terminals(demand: Demand) -> Ints:
    """Return the terminals without any demand."""
    if demand.matrix is None:
        return np.zeros(0, dtype=np.int64)
    used = demand.matrix.any(axis=0) | demand.matrix.any(axis=1)
    return np.flatnonzero(~used).astype(np.int64)


def _parts(master: Flow) -> Iterator[Part]:
    """Yield the problem with none, one, two, four, ... and all of its relays."""
    problem, topology = master.problem, master.problem.topology
    idle = idle_terminals(problem.demand)
    passing = np.bincount(topology.head, master.mean_load(), topology.nodes)
    ranked = idle[np.argsort(-np.round(passing[topology.terminals[idle]], 9), kind="stable")]
    few = {min(2**power, len(idle)) for power in range(len(idle).bit_length())}
    for count in sorted({0, len(idle)} | few):
        if (part := _without(problem, ranked[count:])) is not None:
            yield part


def _without(problem: Problem, left_out: Ints) -> Part | None:
    """Return a problem without some idle terminals, or None if that disconnects the others."""
    topology, matrix = problem.topology, problem.demand.matrix
    terminals = np.setdiff1d(np.arange(problem.demand.terminals), left_out)
    gone = topology.terminals[left_out]
    links = np.flatnonzero(~np.isin(topology.tail, gone) & ~np.isin(topology.head, gone))
    if matrix is None or not len(left_out):
        return Part(problem, problem, terminals, links)
    smaller = replace(
        topology,
        tail=topology.tail[links],
        head=topology.head[links],
        capacity=topology.capacity[links],
        terminals=topology.terminals[terminals],
    )
    demand = Demand(len(terminals), matrix[np.ix_(terminals, terminals)])
    try:
        return Part(problem, Problem(smaller, demand), terminals, links)
    except TopologyError:
        return None


def _try_part(part: Part, master: Flow, search: Search) -> None:
    """Try schedules of one part, of more and more steps."""
    whole = part.problem is part.whole
    own = master if whole else solve_master(part.problem, search.settings.solve)
    failures = 0
    if search.hopeless(search.bound(own.bound, 1)):
        return
    settings = search.settings
    translations = find_translations(own.problem, settings.solve.symmetry)
    if settings.steps is None:
        flows = timed_flows(own, settings.solve, settings.step_tolerance, translations)
    else:
        flows = iter([flow_of_steps(own, settings.steps, settings.solve, translations)])
    for flow in flows:
        last = search.best
        for schedule in _whole(flow, own, search):
            search.add(part.restored(schedule, master), flow)
        failures = failures + 1 if search.best is last else 0
        more = search.bound(own.bound, flow.expansion.steps + 1)
        if failures == PATIENCE or search.hopeless(more):
            return


def _whole(flow: TimedFlow, master: Flow, search: Search) -> Iterator[Schedule]:
    """Yield schedules of one flow, of all numbers of chunks that could be better."""
    asked = search.settings
    choices = [asked.chunks] if asked.chunks else choices_of(flow, asked.max_chunks)
    for chunks in affordable_numbers(flow, choices):
        # Whole chunks may leave steps of the flow unused.
        if search.hopeless(search.bound(flow.time * (1 + floor_of(flow, chunks)), 1)):
            continue
        asked.solve.report(f"{flow.expansion.steps} steps, {chunks} chunks per shard")
        rounded = smallest_loss(forms_of(flow), chunks, asked.solve)
        yield schedule_from(rounded, master.certificate, "tsmcf")
