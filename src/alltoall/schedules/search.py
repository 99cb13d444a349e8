"""Search for the numbers of steps and chunks of a time-stepped schedule.

Each step costs latency, and up to a point saves bandwidth time.

`find_decomposed` is tsMCF decomposed as published. The master is the time-stepped program with a
group for every source, without symmetry. Source s then has a child on the time-expanded graph,
whose capacities are the volumes f' that the master gave to s, waiting included:

    minimise    sum over d, l, t of x[d, l, t]
    subject to  sum over d of x[d, l, t]  <=  f'[l, t]     for every link l and step t
                B x[d]  =  wanted[d]                       for every destination d
                x >= 0

No step carries more than in the master, so the time is that of the master, and of tsMCF per pair.
Chunks follow the flow of their own pair. The method `tsmcf` splits by chunks at once, which is
faster; this one is for comparison on small networks.

`narrow_links` reduces the links of switches and NICs to the width that can be used, so that a step
loads them evenly: six links behind a NIC that four of them fill are never all busy.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from alltoall.errors import InputError
from alltoall.flows import sizes
from alltoall.flows.decompose import child_of, solve_child
from alltoall.flows.exact import by_commodity
from alltoall.flows.methods import solve_master
from alltoall.flows.symmetry.translations import Translations, find_translations
from alltoall.flows.workers import Local, run_all
from alltoall.ir.arrays import Floats, reachable
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.paths.shortest import shortest_distances
from alltoall.schedules.chunks import (
    Rounded,
    choices_of,
    floor_of,
    least_loss,
    mean_shard,
    most_chunks,
    on_grid,
    round_flow,
    rounding_work,
    schedule_from,
    squeeze,
)
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.timestepped import (
    COARSE_GAP,
    TimedFlow,
    is_large,
    solve_timestepped,
    without_translations,
)
from alltoall.settings import STEP_TOLERANCE, ScheduleSettings, SolveSettings


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


@dataclass(frozen=True)
class ChunkSearchParams:
    """Effort of time-stepped schedules; `benchmarks/chunk_schedules.py` measures it.

    The least number of steps is tight if more than `tight_share` of the pairs need all of them.
    Integer durations are tried up to a loss of `worst_loss`. Another method is tried above a gap of
    `worth_another`, or the loss if that is larger; the steps are then at most `most_waits` times
    those of the longest path.
    """

    tight_share: float = 0.05
    worst_loss: float = 2.0
    worth_another: float = 0.05
    most_waits: float = 2.0


Finder = Callable[[Problem, ScheduleSettings], FoundSchedule]
"""A method, which finds a schedule for a problem in normal units."""


def find_timestepped(
    problem: Problem,
    settings: ScheduleSettings,
    other: Finder | None = None,
    split: Callable[[TimedFlow, SolveSettings], TimedFlow] | None = None,
) -> FoundSchedule:
    """Find a schedule within the loss of the fractional optimum, in normal units.

    The numbers of chunks that divide the fractional time evenly are tried for a loss of 0; failing
    that, the smallest number within the loss is taken, and failing that, the best found. If that is
    far above the bound, the `other` method is tried too, and the better schedule taken. The other
    one goes first if the fractional schedule is already far above the bound. `split` splits the
    flow of each source.
    """
    master = solve_master(problem, _plain_settings(problem, settings.solve).sharing())
    if master.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    stepping = replace(settings, solve=settings.solve.sharing())
    most_waits = np.inf if other is None else ChunkSearchParams.most_waits
    flow = None
    narrow = narrow_links(problem)
    if narrow is not problem:
        # Over narrowed links the load is even: taken if that costs no time.
        found = solve_master(narrow, _plain_settings(narrow, stepping.solve))
        if found.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        within = master.bound * (1 + max(settings.solve.gap, 1e-9))
        flow = choose_flow(found, stepping) if found.time <= within else None
        flow = None if flow is None or flow.time > within else flow
    flow = flow or choose_flow(master, stepping, most_waits)
    if split is not None:
        flow = split(flow, settings.solve)
    if other is None:
        return _with_chunks(master, flow, settings)
    enough = master.bound * (1 + max(settings.loss, ChunkSearchParams.worth_another))
    others = [other(problem, settings)] if flow.time > enough else []
    # Whole chunks are no faster than the fractional schedule.
    if others and _cost(others[0], settings) <= flow.cost(settings.latency):
        return others[0]
    stepped = _with_chunks(master, flow, settings)
    if not others and stepped.schedule.time > enough and not settings.solve.out_of_time():
        others = [other(problem, settings)]
    return min((stepped, *others), key=lambda each: _cost(each, settings))


def _cost(found: FoundSchedule, settings: ScheduleSettings) -> float:
    return found.schedule.time + settings.latency * found.schedule.steps


def _with_chunks(master: Flow, flow: TimedFlow, settings: ScheduleSettings) -> FoundSchedule:
    """Return a schedule of whole chunks for a time-stepped flow."""
    problem = master.problem
    rounded, curve = _search(flow, settings)
    schedule = replace(schedule_from(rounded, master.certificate, "tsmcf"), problem=problem)
    if schedule.steps < flow.expansion.steps:
        fewer = flow_in_steps_of(schedule, flow, master, settings.solve)
        schedule = replace(schedule, fractional_time=fewer.time)
        longer = fewer.time / flow.time
        curve = {chunks: (1 + loss) / longer - 1 for chunks, loss in curve.items()}
        flow = fewer
    numbers = choices_of(flow, settings.max_chunks)
    floor: dict[float, float] = {chunks: floor_of(flow, chunks) for chunks in numbers}
    return FoundSchedule(schedule, curve, floor, flow.status, max(flow.bound, master.bound))


def _plain_settings(problem: Problem, solving: SolveSettings) -> SolveSettings:
    """Return settings of the plain flow, which only gives the bound and a number of steps."""
    large = len(problem.sources) * problem.topology.links > sizes.SHARP_BOUND_VARIABLES
    return replace(solving, gap=max(solving.gap, COARSE_GAP)) if large else solving


def choose_flow(master: Flow, settings: ScheduleSettings, most_waits: float = np.inf) -> TimedFlow:
    """Return the fractional schedule of the requested, or else the best, number of steps.

    The best number is at most `most_waits` times the longest path of the plain flow.
    """
    translations = find_translations(master.problem, settings.solve.symmetry)
    if settings.steps is not None:
        return flow_of_steps(master, settings.steps, settings.solve, translations)
    steps = least_steps(master.problem)
    tight = share_without_delay(master.problem) > ChunkSearchParams.tight_share
    if settings.latency == 0 and tight and is_large(master.problem, steps, translations):
        # So few steps miss the bound, and are the hardest for primal-dual steps.
        steps += 1
    # The smallest chunk of a shard of mean size, on the widest link.
    chunks = settings.chunks or most_chunks(master.problem, settings.max_chunks)
    shortest = mean_shard(master.problem) / chunks / float(master.problem.topology.capacity.max())
    tolerance = settings.step_tolerance
    flows = timed_flows(
        master, settings.solve, tolerance, translations, steps, shortest, most_waits
    )
    return best_flow(flows, master.bound, settings.latency)


def _search(flow: TimedFlow, settings: ScheduleSettings) -> tuple[Rounded, dict[float, float]]:
    flows = forms_of(flow)
    if settings.chunks is not None:
        only = smallest_loss(flows, settings.chunks, settings.solve)
        return only, {settings.chunks: only.loss}
    choices = choices_of(flow, settings.max_chunks)
    whole = [chunks for chunks in choices if on_grid(flow, chunks)]
    affordable = affordable_numbers(flow, choices)
    exact = [chunks for chunks in whole if chunks in affordable and least_loss(flow, chunks) < 1e-6]
    for most_loss, several in ((0.0, exact), (settings.loss, whole)):
        for chunks in several:
            if settings.solve.out_of_time():
                break
            settings.solve.report(f"{chunks} chunks per shard, within {most_loss:.2%}")
            rounded = _round(flows, chunks, most_loss, settings.solve)
            if rounded is not None:
                return rounded, {chunks: rounded.loss}
    found = {}
    for chunks in affordable:
        settings.solve.report(f"{chunks} chunks per shard, at the least loss")
        found[chunks] = smallest_loss(flows, chunks, settings.solve, settings.loss)
        if found[chunks].within(settings.loss) or settings.solve.out_of_time():
            break
    best = min(found.values(), key=lambda found: (found.loss, found.chunks_per_shard))
    return best, {chunks: rounded.loss for chunks, rounded in found.items()}


def affordable_numbers(flow: TimedFlow, choices: list[int]) -> list[int]:
    """Return the first number of chunks, and all others whose rounding is affordable."""
    first, *others = choices
    return [first, *(n for n in others if rounding_work(flow, n) <= sizes.AFFORDABLE_WORK)]


def forms_of(flow: TimedFlow) -> list[TimedFlow]:
    """Return the flow, and if it is small the same flow without translations.

    Without translations there are more schedules: a ring of even length has one of one chunk only
    there. At scale they are not needed, and not affordable.
    """
    variables = len(flow.expansion.problem.sources) * flow.expansion.graph.links
    small = flow.translations.order > 1 and variables <= sizes.WRITTEN_OUT_VARIABLES
    return [flow, without_translations(flow)] if small else [flow]


def _round(
    flows: list[TimedFlow],
    chunks: int,
    most_loss: float,
    solving: SolveSettings,
    refine: bool = True,
) -> Rounded | None:
    """Return whole chunks within a loss, for the first form of the flow that has them."""
    for flow in flows:
        rounded = round_flow(flow, chunks, most_loss, solving, refine)
        if rounded is not None:
            return rounded
    return None


def smallest_loss(
    flows: list[TimedFlow], chunks: int, solving: SolveSettings, enough: float = 0.0
) -> Rounded:
    """Return the best schedule found with a given number of chunks; `enough` ends the search."""
    most_loss, refine = 0.01, True
    worst = ChunkSearchParams.worst_loss if on_grid(flows[0], chunks) else 0.0
    while most_loss < worst and not solving.out_of_time():
        rounded = _round(flows, chunks, most_loss, solving, refine)
        if rounded is not None:
            return rounded
        most_loss, refine = 2 * most_loss + 1 / chunks, False
    squeezes = (squeeze(flow, chunks, enough, solving) for flow in flows)
    return min(squeezes, key=lambda rounded: rounded.loss)


METHOD = "tsmcf-decomposed"
"""The name of the method."""


def find_decomposed(problem: Problem, settings: ScheduleSettings) -> FoundSchedule:
    """Find a schedule by master and child programs, for a problem in normal units."""
    plain = replace(settings, solve=replace(settings.solve, symmetry=False))
    found = find_timestepped(problem, plain, split=split_by_children)
    return replace(found, schedule=replace(found.schedule, method=METHOD))


def split_by_children(master: TimedFlow, settings: SolveSettings) -> TimedFlow:
    """Return a flow per source as one per pair, by child programs; as it is if time is up."""
    expansion, graph = master.expansion, master.program.graph
    program = expansion.program(expansion.groups(by_commodity(expansion.problem)))
    program.require_memory()
    children = (
        child_of(graph, int(start), wanted, volume, settings.solver)
        for start, wanted, volume in zip(
            master.groups.start, master.groups.wanted, master.volumes, strict=True
        )
    )
    try:
        given = solve_child, children, len(master.volumes), settings
        solved = list(run_all(*given, Local.ONE_BY_ONE, "children in steps"))
    except TimeoutError:
        return master
    volumes = np.zeros((len(program.weight), graph.links))
    terminals = len(expansion.ends)
    source, destination = expansion.problem.demand.pairs()
    keys = source * terminals + destination
    for first, (end, link, volume) in zip(master.groups.source, solved, strict=True):
        pair = np.searchsorted(keys, first * terminals + end - expansion.ends[0])
        volumes[pair, link] = volume
    return replace(master, program=program, volumes=volumes)
