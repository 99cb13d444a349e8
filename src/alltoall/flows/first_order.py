r"""`first-order`: the master program by sweeps or steps, without a matrix or a factorisation.

Sweeps (`flows.sweeps`) solve programs with one budget and many flows; primal-dual steps solve all
others, and close the gaps that sweeps leave. The program (`flows.program`) is then a saddle point
of flows and lengths:

    min over x >= 0  of  max over y, p  of
        sum over g of weight[g] ( y . x[g]  +  p[g] . (wanted[g] - B x[g]) )

where prices y >= 0 cost no more than 1 per budget (sum of cap[l] y[l] = 1) and the potentials p[g]
are free. It proves both sides: y are lengths whose shortest paths bound the time from below
(`flows.program`), x are flows that become exact by routing the missing rest along a tree
(`flows.exact`). So the gap is known at any moment, and the method stops at the requested one.

Steps follow the primal-dual hybrid gradient method, reflected and pulled back to an anchor
(Halpern), which restarts when progress slows: r2HPDHG of Lu and Yang, "Restarted Halpern PDHG for
linear programming" (2024). Two dual blocks share the step condition

    |S_p^(1/2) B T^(1/2)|^2 + |S_y^(1/2) A T^(1/2)|^2  <=  1,

for steps T of flows, S_p of potentials, S_y of prices. T[l] = w t[l],
S_p[v] = a / (2 w sum of t[l] over the links l at v) and S_y[l] = (1 - a) / (w t[l] sum of the
groups' weights) satisfy it, with any w > 0 and any t[l] > 0. Flows scale with link widths, so t[l]
is the width: the capacity, or the part of it that all demand together could use. The primal weight
w that gives flows and lengths equal norms does well everywhere, from first lengths 1 / capacity.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np

from alltoall.flows.best_so_far import CheckpointFile, fingerprint
from alltoall.flows.by_lp import flow_from_entries, plain_flow, with_status
from alltoall.flows.first_order_search import Search
from alltoall.flows.guess import Guess
from alltoall.flows.program import FlowProgram, program_bound
from alltoall.flows.sweeps import Sweeps, suits_sweeps
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import Floats, Ints, starts_of
from alltoall.ir.flow import Flow, Status
from alltoall.ir.problem import Problem
from alltoall.paths.blocks import using_threads
from alltoall.settings import ALONE, NotRootRank, SolveSettings

THREAD_VARIABLES = 200_000
"""Flows per additional thread: short steps lose more by waiting for threads on a busy machine."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Exact volumes (start, link, volume) by group, the lengths of the bound, and the status."""

    entries: tuple[Ints, Ints, Floats]
    lengths: Floats
    bound: float
    status: Status


def solve_by_steps(
    problem: Problem, program: FlowProgram, settings: SolveSettings, method: str
) -> Flow:
    """Return a flow within the requested gap, or the best one found by a time limit or Ctrl-C."""
    with using_threads(settings.workers):
        if settings.team.size > 1:
            answer = _answer_together(program, settings)
        else:
            plain = plain_flow(problem, program, method)
            if plain.gap <= settings.gap:
                return with_status(plain, Status.WITHIN_GAP, settings)
            answer = answer_by_steps(program, settings, file=_checkpoint_file(program, settings))
    certificate = Certificate(answer.lengths, answer.bound)
    flow = flow_from_entries(problem, program, answer.entries, certificate, method)
    return with_status(flow, answer.status, settings)


def _checkpoint_file(
    program: FlowProgram, settings: SolveSettings, first: int = 0
) -> CheckpointFile | None:
    """Return the checkpoint file of a whole program, for a part that starts at group `first`."""
    if settings.checkpoint is None:
        return None
    return CheckpointFile(settings.checkpoint, fingerprint(program), settings.team.rank, first)


def _answer_together(program: FlowProgram, settings: SolveSettings) -> Answer:
    """Solve for a part of the groups as one rank of a team; the first rank returns the answer.

    The first rank solves alone if there are fewer groups than ranks.
    """
    team = settings.team
    if len(program.weight) < team.size:
        if team.rank > 0:
            raise NotRootRank
        return answer_by_steps(program, replace(settings, team=ALONE))
    first, last = (len(program.weight) * rank // team.size for rank in (team.rank, team.rank + 1))
    mine = slice(first, last)
    part = replace(program, groups=program.groups.part(mine), weight=program.weight[mine])
    answer = answer_by_steps(part, settings, None, _checkpoint_file(program, settings, first))
    parts = team.gathered(answer.entries)
    if parts is None:
        raise NotRootRank
    counts, links, volumes = zip(*((np.diff(start), *rest) for start, *rest in parts), strict=True)
    entries = starts_of(np.concatenate(counts)), np.concatenate(links), np.concatenate(volumes)
    return replace(answer, entries=entries)


def _step_threads(program: FlowProgram, settings: SolveSettings) -> AbstractContextManager[int]:
    """Use as many threads as pay for a program of this size."""
    return using_threads(min(settings.workers, 1 + program.variables // THREAD_VARIABLES))


def answer_by_steps(
    program: FlowProgram,
    settings: SolveSettings,
    guess: Guess | None = None,
    file: CheckpointFile | None = None,
) -> Answer:
    """Sweep or step until the certified gap is the requested one.

    In a team, the program and the answer have the groups of this rank.
    """
    program.require_memory()
    given = program, settings, guess, file
    search = Sweeps(*given) if suits_sweeps(program, settings.team) else Search(*given)
    with _step_threads(program, settings):
        try:
            status = search.run()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            search.certify()
        # Before the first check there is no bound, but unit lengths always prove one.
        bound = search.bound or program_bound(program, search.best_lengths, settings.team)
        return Answer(search.best_entries(), search.best_lengths, bound, status)


def search_from(program: FlowProgram, settings: SolveSettings, guess: Guess) -> Search:
    """Return a search that starts from a guess and the bound of its lengths."""
    program.require_memory()
    search = Search(program, settings, guess)
    for lengths in (search.best_lengths, guess.lengths):
        search.try_lengths(lengths)
    return search


def raise_bound(search: Search, enough: float, most_steps: int | None = None) -> Certificate:
    """Step until the bound is enough, or the gap is the requested one; return the certificate."""
    search.enough = enough
    if most_steps is not None:
        search.params = replace(search.params, most_steps=most_steps)
    if search.bound < enough:
        with _step_threads(search.program, search.settings):
            search.run()
    return Certificate(search.best_lengths, search.bound)
