"""How many steps: each one costs latency, and up to a point saves bandwidth time.

`narrowed` takes links as wide as what can come to them, so that a step loads them evenly. Six links
behind a NIC that four of them fill are never all busy, and a NIC shares itself evenly among them.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from alltoall.errors import InputError
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.ir.arrays import Floats, reachable
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import shortest_distances
from alltoall.schedules.timestepped import TimedFlow, solve_timestepped
from alltoall.settings import STEP_TOLERANCE, SolveSettings


def least_steps(problem: Problem) -> int:
    """Return the diameter between terminals; passing a switch takes no step of its own."""
    return int(_pair_steps(problem).max())


def share_without_delay(problem: Problem) -> float:
    """Return the share of pairs that the least number of steps leaves no step to wait."""
    steps = _pair_steps(problem)
    return float((steps == steps.max()).mean())


def _pair_steps(problem: Problem) -> Floats:
    """Return how many steps each pair with a demand needs."""
    topology = problem.topology
    arrives = np.isin(topology.head, topology.terminals).astype(np.float64)
    distance = shortest_distances(topology, arrives, topology.terminals)[:, topology.terminals]
    wanted = problem.demand.table() > 0
    return np.asarray(distance[wanted])


def timed_flows(
    master: Flow,
    settings: SolveSettings,
    tolerance: float = STEP_TOLERANCE,
    translations: Translations | None = None,
    first: int | None = None,
    shortest: float = 0.0,
    most_waits: float = np.inf,
) -> Iterator[TimedFlow]:
    """Yield optimal flows of more and more steps, until one more gains less than `tolerance`.

    The plain optimum may need detours that take many steps to pay off, so the search goes on at
    least until a step allows for the longest path of the plain flow `master`. It begins with the
    `first` number of steps, the least that there can be if left out. No step takes less than the
    `shortest`, that of one chunk: so it ends where more of them would take longer than fewer do. It
    also ends at `most_waits` times the longest path.
    """
    problem = master.problem
    steps = least_steps(problem) if first is None else first
    last, enough = np.inf, longest_path(master)
    while True:
        settings.report(f"time-stepped flow over {steps} steps")
        flow = solve_timestepped(
            problem, steps, settings, translations=translations, lengths=master.certificate.lengths
        )
        yield flow
        gained = flow.time <= last * (1 - tolerance)
        if flow.time <= master.bound * (1 + flow.exact) or not (gained or steps < enough):
            return
        useless = (steps + 1) * shortest > flow.time or steps >= most_waits * enough
        if useless or settings.out_of_time():
            return
        steps, last = steps + 1, flow.time


def longest_path(flow: Flow) -> int:
    """Return the most terminals that any path of an acyclic flow per source arrives at in turn."""
    topology = flow.problem.topology
    arrives = np.isin(topology.head, topology.terminals).astype(np.int64)
    longest = 0
    for group in range(flow.groups):
        link = flow.link[flow.start[group] : flow.start[group + 1]]
        depth = np.zeros(topology.nodes, dtype=np.int64)
        for _ in range(topology.nodes):
            before = depth.copy()
            np.maximum.at(depth, topology.head[link], depth[topology.tail[link]] + arrives[link])
            if np.array_equal(depth, before):
                break
        longest = max(longest, int(depth.max()))
    return longest


def flow_of_steps(
    master: Flow, steps: int, settings: SolveSettings, translations: Translations | None = None
) -> TimedFlow:
    """Return the optimal flow of a given number of steps."""
    problem = master.problem
    if steps < least_steps(problem):
        raise InputError(
            f"{steps} steps; {problem.topology.name} needs at least {least_steps(problem)}, "
            "its diameter"
        )
    return solve_timestepped(
        problem, steps, settings, translations=translations, lengths=master.certificate.lengths
    )


def flow_in_steps_of(
    schedule: Schedule, flow: TimedFlow, master: Flow, settings: SolveSettings
) -> TimedFlow:
    """Return the optimal flow in as many steps as a schedule has; `flow` if time runs out first.

    Whole chunks may leave steps of their flow unused, or be those of a part of the problem.
    """
    if flow.expansion.steps == schedule.steps and flow.expansion.problem is master.problem:
        return flow
    translations = find_translations(master.problem, settings.symmetry)
    same = flow_of_steps(master, schedule.steps, settings, translations)
    return same if same.time <= schedule.time * (1 + 1e-9) else flow


def best_flow(flows: Iterable[TimedFlow], bound: float, latency: float) -> TimedFlow:
    """Return the flow of least time plus latency per step, among flows of more and more steps.

    Since no time is below `bound`, the search ends when latency alone has used up what could
    still be gained.
    """
    each = iter(flows)
    best = next(each)
    for flow in each:
        if _cost(flow, latency) < _cost(best, latency):
            best = flow
        if bound + latency * (flow.expansion.steps + 1) >= _cost(best, latency):
            break
    return best


def _cost(flow: TimedFlow, latency: float) -> float:
    return flow.time + latency * flow.expansion.steps


def narrowed(problem: Problem) -> Problem:
    """Return the problem with links that get their share of what a switch or NIC can pass on.

    The problem itself, if that is all that they have.
    """
    capacity = _shares(problem.topology)
    if np.all(capacity >= problem.topology.capacity * (1 - 1e-9)):
        return problem
    narrow = problem.topology.changed("links are as wide as what comes to them", capacity=capacity)
    return replace(problem, topology=narrow)


def _shares(topology: Topology) -> Floats:
    """Return what a link carries if both its ends share out evenly what they can pass on.

    Links that are on no path between terminals take no share, and keep their capacity.
    """
    nodes, capacity = topology.nodes, topology.capacity
    used = _on_paths(topology)
    entering = np.bincount(topology.head, capacity * used, nodes)
    leaving = np.bincount(topology.tail, capacity * used, nodes)
    passed = np.minimum(entering, leaving)
    # Terminals make and take what they send: nothing has to pass them.
    passing = topology.position < 0
    out, into = np.ones(nodes), np.ones(nodes)
    np.divide(passed, leaving, out=out, where=passing & (leaving > 0))
    np.divide(passed, entering, out=into, where=passing & (entering > 0))
    # The wider of both shares: one end may have fewer links to share with.
    share: Floats = np.maximum(
        np.where(passing[topology.tail], out[topology.tail], 0.0),
        np.where(passing[topology.head], into[topology.head], 0.0),
    )
    ends = passing[topology.tail] | passing[topology.head]
    return np.where(ends & used, share, 1.0) * capacity


def _on_paths(topology: Topology) -> NDArray[np.bool_]:
    """Return a mask of the links from where a terminal can be reached, and that one reaches."""
    nodes, tail, head = topology.nodes, topology.tail, topology.head
    begun = reachable(nodes, tail, head, topology.terminals)
    ended = reachable(nodes, head, tail, topology.terminals)
    return np.asarray(begun[tail] & ended[head])
