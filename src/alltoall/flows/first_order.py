r"""`first-order`: the master program by sweeps or steps, without a matrix or a factorisation.

Programs with one budget and many flows go by sweeps (`flows.sweeps`); others, and what sweeps leave
of a gap, by steps. For these the program (`flows.program`) is a game between flows and lengths:

    min over x >= 0  of  max over y, p  of
        sum over g of weight[g] ( y . x[g]  +  p[g] . (wanted[g] - B x[g]) )

where prices y >= 0 cost no more than 1 per budget (sum of cap[l] y[l] = 1) and the potentials p[g]
are free. Its answer holds both proofs: y are lengths whose shortest paths bound the time from below
(`flows.program`), x are flows that become exact by routing the little that is missing along a
tree (`flows.exact`). So the gap is known at any moment, and the method stops at the one asked for.

Steps are those of the primal-dual hybrid gradient method, reflected and pulled back to an anchor
(Halpern), which restarts where progress slows: r2HPDHG of Lu and Yang, "Restarted Halpern PDHG for
linear programming" (2024). Two dual blocks share the step condition

    |S_p^(1/2) B T^(1/2)|^2 + |S_y^(1/2) A T^(1/2)|^2  <=  1,

for steps T of flows, S_p of potentials, S_y of prices. T[l] = w t[l],
S_p[v] = a / (2 w sum of t[l] over the links l at v) and S_y[l] = (1 - a) / (w t[l] sum of the
groups' weights) satisfy it, with any w > 0 and any t[l] > 0. Flows differ as much as the widths of
the links, so t[l] is the width: the capacity, or what all demand together could use of it if that
is less. A w that makes flows and lengths equally large in the norms of their steps does well
everywhere, if the first lengths are those of links that are all equally full, 1 / capacity.
"""

from dataclasses import dataclass, replace

import numpy as np

from alltoall.flows.best_so_far import Keeping, fingerprint
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
"""Flows per further thread: short steps lose more by waiting for threads on a busy machine."""


@dataclass(frozen=True, eq=False)
class Answer:
    """Exact volumes (start, link, volume) by group, lengths that bound them, how it ended."""

    entries: tuple[Ints, Ints, Floats]
    lengths: Floats
    bound: float
    status: Status


def solve_by_steps(
    problem: Problem, program: FlowProgram, settings: SolveSettings, method: str
) -> Flow:
    """Return a flow within the gap asked for, or the best when time runs out or the user stops."""
    with using_threads(settings.workers):
        if settings.team.size > 1:
            answer = _answer_together(program, settings)
        else:
            plain = plain_flow(problem, program, method)
            if plain.gap <= settings.gap:
                return with_status(plain, Status.WITHIN_GAP, settings)
            answer = answer_by_steps(program, settings, keeping=_keeping(program, settings, 0))
    certificate = Certificate(answer.lengths, answer.bound)
    flow = flow_from_entries(problem, program, answer.entries, certificate, method)
    return with_status(flow, answer.status, settings)


def _keeping(program: FlowProgram, settings: SolveSettings, first: int) -> Keeping | None:
    """Return where to keep checkpoints of a whole program, of whose groups `first` is ours."""
    if settings.checkpoint is None:
        return None
    return Keeping(settings.checkpoint, fingerprint(program), settings.team.rank, first)


def _answer_together(program: FlowProgram, settings: SolveSettings) -> Answer:
    """Step for some of the groups, as one of a team; the first rank returns the whole answer.

    Groups that are fewer than the ranks are left to the first one.
    """
    team = settings.team
    if len(program.weight) < team.size:
        if team.rank > 0:
            raise NotRootRank
        return answer_by_steps(program, replace(settings, team=ALONE))
    first, last = (len(program.weight) * rank // team.size for rank in (team.rank, team.rank + 1))
    mine = slice(first, last)
    part = replace(program, groups=program.groups.part(mine), weight=program.weight[mine])
    answer = answer_by_steps(part, settings, None, _keeping(program, settings, first))
    parts = team.gathered(answer.entries)
    if parts is None:
        raise NotRootRank
    counts, links, volumes = zip(*((np.diff(start), *rest) for start, *rest in parts), strict=True)
    entries = starts_of(np.concatenate(counts)), np.concatenate(links), np.concatenate(volumes)
    return replace(answer, entries=entries)


def _search(
    program: FlowProgram,
    settings: SolveSettings,
    guess: Guess | None = None,
    keeping: Keeping | None = None,
) -> Search | Sweeps:
    """Return the search for a program: by sweeps if they do well on its kind, else by steps."""
    if suits_sweeps(program, settings.team):
        return Sweeps(program, settings, guess, keeping)
    return Search(program, settings, guess, keeping)


def answer_by_steps(
    program: FlowProgram,
    settings: SolveSettings,
    guess: Guess | None = None,
    keeping: Keeping | None = None,
) -> Answer:
    """Step until the certified gap is the one asked for; keep checkpoints if told where.

    In a team the program is the part of this rank, and so are the entries of the answer.
    """
    program.require_memory()
    search = _search(program, settings, guess, keeping)
    with using_threads(min(settings.workers, 1 + program.variables // THREAD_VARIABLES)):
        try:
            status = search.run()
        except KeyboardInterrupt:
            status = Status.INTERRUPTED
            search.certify()
        # Before the first check nothing is proven yet, but unit lengths always prove something.
        bound = search.bound or program_bound(program, search.best_lengths, settings.team)
        return Answer(search.best_entries(), search.best_lengths, bound, status)


def search_from(program: FlowProgram, settings: SolveSettings, guess: Guess) -> Search:
    """Return a search that begins with a guess, and with what its lengths prove."""
    program.require_memory()
    search = Search(program, settings, guess, _keeping(program, settings, 0))
    for lengths in (search.best_lengths, guess.lengths):
        search.try_lengths(lengths)
    return search


def raise_bound(search: Search, enough: float, most_steps: int | None = None) -> Certificate:
    """Step until the bound is enough, or within the gap asked for of a flow; return its proof."""
    program, settings = search.program, search.settings
    search.enough = enough
    if most_steps is not None:
        search.params = replace(search.params, most_steps=most_steps)
    if search.bound < enough:
        with using_threads(min(settings.workers, 1 + program.variables // THREAD_VARIABLES)):
            search.run()
    return Certificate(search.best_lengths, search.bound)
