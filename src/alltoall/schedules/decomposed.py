"""tsMCF decomposed as published: a master program per source, then a child program per source.

The paper decomposes tsMCF like its plain program. The master is the time-stepped program with a
group for every source, without symmetry. Source s then has a child on the time-expanded graph,
whose capacities are the volumes f' that the master gave to s, waiting included:

    minimise    sum over d, l, t of x[d, l, t]
    subject to  sum over d of x[d, l, t]  <=  f'[l, t]     for every link l and step t
                B x[d]  =  wanted[d]                       for every destination d
                x >= 0

No step carries more than in the master, so the time is that of the master, and of tsMCF per pair.
Chunks follow the flow of their own pair. The method `tsmcf` splits by chunks at once, which is
faster; this one is for comparison on small networks.
"""

from dataclasses import replace

import numpy as np

from alltoall.flows.children import child_of, solve_child
from alltoall.flows.exact import by_commodity
from alltoall.flows.workers import Local, run_all
from alltoall.ir.problem import Problem
from alltoall.schedules.found import FoundSchedule
from alltoall.schedules.search import find_timestepped
from alltoall.schedules.timestepped import TimedFlow
from alltoall.settings import ScheduleSettings, SolveSettings

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
