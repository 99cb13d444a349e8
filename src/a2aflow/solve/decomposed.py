"""`decomposed` and `grouped`: the master program over sources, and its children over destinations.

The master program (eq:Dmcmcf-source-F to ineq:Dmcmcf-source-non-negativity) is the concurrent flow
program with one group per source: N times fewer variables than `link`, and the same optimum. Its
flow per source then splits into one flow per destination by N independent child programs.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np

from a2aflow.ir.arrays import Floats, Ints
from a2aflow.ir.flow import Flow, Status
from a2aflow.ir.problem import Problem
from a2aflow.lp import LPStatus
from a2aflow.solve.children import Child, child_of, solve_child
from a2aflow.solve.concurrent import solve_groups, with_status
from a2aflow.solve.groups import by_source
from a2aflow.solve.settings import SolveSettings

POOL_WORTH = 5_000_000
"""Used links times destinations over all children above which starting worker processes pays."""


def solve_grouped(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program alone; the flow is per source."""
    return solve_groups(problem, by_source(problem), settings, "grouped")


def solve_decomposed(problem: Problem, settings: SolveSettings) -> Flow:
    """Solve the master program, then the children; the flow is per commodity.

    If time runs out, or the user stops it, during the children, the master's flow is returned as
    it is: same rate, same certificate, but per source.
    """
    master = solve_grouped(problem, settings)
    if settings.out_of_time() or master.status is Status.INTERRUPTED:
        return replace(master, method="decomposed")
    try:
        flows = list(_solve_children(_children(master, settings), settings))
    except (TimeoutError, KeyboardInterrupt) as stop:
        early = Status.TIME_LIMIT if isinstance(stop, TimeoutError) else Status.INTERRUPTED
        return replace(master, method="decomposed", status=early)
    return with_status(_per_commodity(master, flows), LPStatus.OPTIMAL, settings)


def _children(master: Flow, settings: SolveSettings) -> list[Child]:
    topology = master.problem.topology
    wanted = master.problem.node_demand(master.source)
    children = []
    for group, source in enumerate(master.source):
        begin, end = master.start[group], master.start[group + 1]
        volume = np.zeros(topology.links)
        volume[master.link[begin:end]] = master.amount[begin:end] * master.time
        start = int(topology.terminals[source])
        children.append(child_of(topology, start, wanted[group], volume, settings.solver))
    return children


def _solve_children(
    children: Sequence[Child], settings: SolveSettings
) -> Iterator[tuple[Ints, Ints, Floats]]:
    """Solve all children, in this process or in a pool, in order; raise TimeoutError when late."""
    workers = min(settings.workers, len(children))
    work = sum(child.used.links * len(child.destinations) for child in children)
    if workers == 1 or work < POOL_WORTH:
        yield from _watched(map(solve_child, children), len(children), settings)
        return
    # Forking a process that has run compiled threads can deadlock; spawned workers cannot.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, context, initializer=_leave_interrupts_to_the_parent) as pool:
        try:
            yield from _watched(
                pool.map(solve_child, children, chunksize=4), len(children), settings
            )
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _watched(
    results: Iterator[tuple[Ints, Ints, Floats]], count: int, settings: SolveSettings
) -> Iterator[tuple[Ints, Ints, Floats]]:
    for done, result in enumerate(results, start=1):
        if settings.out_of_time():
            raise TimeoutError
        settings.report(f"children: {done} of {count}")
        yield result


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _per_commodity(master: Flow, flows: Sequence[tuple[Ints, Ints, Floats]]) -> Flow:
    """Put the children's flows together, at the largest rate at which they fit."""
    topology = master.problem.topology
    position = np.zeros(topology.nodes, dtype=np.int64)
    position[topology.terminals] = np.arange(len(topology.terminals))
    source = np.repeat(master.source, [len(link) for _, link, _ in flows])
    destination = position[np.concatenate([node for node, _, _ in flows])]
    link = np.concatenate([link for _, link, _ in flows])
    amount = np.concatenate([amount for _, _, amount in flows])
    time = float((np.bincount(link, amount, topology.links) / topology.capacity).max())
    pair_source, pair_destination = master.problem.demand.pairs()
    terminals = len(topology.terminals)
    keys = source * terminals + destination
    wanted = pair_source * terminals + pair_destination
    return replace(
        master,
        method="decomposed",
        rate=1.0 / time,
        source=pair_source,
        destination=pair_destination,
        start=np.append(np.searchsorted(keys, wanted), len(keys)),
        link=link,
        amount=amount / time,
    )
