"""Choose the number of steps: each one costs latency, and up to a point saves bandwidth time.

`narrow_links` reduces the links of switches and NICs to the width that can be used, so that a step
loads them evenly: six links behind a NIC that four of them fill are never all busy.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

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
    """Return the share of pairs that need the least number of steps."""
    steps = _pair_steps(problem)
    return float((steps == steps.max()).mean())


def _pair_steps(problem: Problem) -> Floats:
    """Return the least number of steps of each pair with a demand."""
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

    The plain optimum may need detours, which pay off only after many steps, so the steps go on at
    least to the longest path of the plain flow `master`. They begin with `first`, by default the
    least possible number. No step is shorter than `shortest`, that of one chunk, so the search ends
    when more steps would take longer; and at `most_waits` times the longest path.
    """
    problem = master.problem
    steps = least_steps(problem) if first is None else first
    last, enough = np.inf, longest_path(master)
    while True:
        settings.report(f"time-stepped flow over {steps} steps")
        lengths = master.certificate.lengths
        flow = solve_timestepped(problem, steps, settings, False, translations, lengths)
        yield flow
        gained = flow.time <= last * (1 - tolerance)
        if flow.time <= master.bound * (1 + flow.exact) or not (gained or steps < enough):
            return
        useless = (steps + 1) * shortest > flow.time or steps >= most_waits * enough
        if useless or settings.out_of_time():
            return
        steps, last = steps + 1, flow.time


def longest_path(flow: Flow) -> int:
    """Return the most steps of any path of an acyclic flow per source."""
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
    problem, lengths = master.problem, master.certificate.lengths
    if steps < (least := least_steps(problem)):
        raise InputError(
            f"{steps} steps; {problem.topology.name} needs at least {least}, its diameter"
        )
    return solve_timestepped(problem, steps, settings, False, translations, lengths)


def flow_in_steps_of(
    schedule: Schedule, flow: TimedFlow, master: Flow, settings: SolveSettings
) -> TimedFlow:
    """Return the optimal flow in the steps of a schedule, or `flow` if time runs out first.

    Whole chunks may leave steps of their flow unused, or belong to a part of the problem.
    """
    if flow.expansion.steps == schedule.steps and flow.expansion.problem is master.problem:
        return flow
    translations = find_translations(master.problem, settings.symmetry)
    same = flow_of_steps(master, schedule.steps, settings, translations)
    return same if same.time <= schedule.time * (1 + 1e-9) else flow


def best_flow(flows: Iterable[TimedFlow], bound: float, latency: float) -> TimedFlow:
    """Return the flow of least time plus latency per step, among flows of more and more steps.

    No time is below `bound`, so the search ends when the latency of one more step exceeds the
    possible gain.
    """
    rest = iter(flows)
    best = next(rest)
    for flow in rest:
        best = min(best, flow, key=lambda flow: flow.cost(latency))
        if bound + latency * (flow.expansion.steps + 1) >= best.cost(latency):
            break
    return best


def narrow_links(problem: Problem) -> Problem:
    """Reduce links to their share of the throughput of a switch or NIC.

    Return the problem itself if no link is wider.
    """
    capacity = _shares(problem.topology)
    if np.all(capacity >= problem.topology.capacity * (1 - 1e-9)):
        return problem
    narrow = problem.topology.changed("links are as wide as what comes to them", capacity=capacity)
    return replace(problem, topology=narrow)


def _shares(topology: Topology) -> Floats:
    """Return the capacity of links that share the throughput of both their ends evenly.

    Links on no path between terminals keep their capacity.
    """
    nodes, capacity = topology.nodes, topology.capacity
    tail, head = topology.tail, topology.head
    begun = reachable(nodes, tail, head, topology.terminals)
    ended = reachable(nodes, head, tail, topology.terminals)
    used = begun[tail] & ended[head]
    entering = np.bincount(head, capacity * used, nodes)
    leaving = np.bincount(tail, capacity * used, nodes)
    passed = np.minimum(entering, leaving)
    switch = topology.position < 0
    out, into = switch.astype(np.float64), switch.astype(np.float64)
    np.divide(passed, leaving, out=out, where=switch & (leaving > 0))
    np.divide(passed, entering, out=into, where=switch & (entering > 0))
    # The wider of both shares: one end may have fewer links to share with.
    share = np.maximum(out[tail], into[head])
    return np.where((switch[tail] | switch[head]) & used, share, 1.0) * capacity
