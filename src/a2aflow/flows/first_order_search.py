"""The search of the first-order method: steps, polishing and checks (`flows.first_order`)."""

import numpy as np

from a2aflow.flows.certificate import program_bound
from a2aflow.flows.checkpoint import CHECKPOINT_SECONDS, Checkpoint, Keeping
from a2aflow.flows.exact import exact_flows, narrowness
from a2aflow.flows.fill import fill_missing
from a2aflow.flows.first_order_iterates import Guess, Iterates
from a2aflow.flows.first_order_loops import exact_load
from a2aflow.flows.program import FlowProgram
from a2aflow.ir.arrays import Floats, Ints, starts_of
from a2aflow.ir.flow import Status
from a2aflow.ir.news import News
from a2aflow.lp import SMALL_SIZE
from a2aflow.paths.shortest import Adjacency
from a2aflow.settings import SolveSettings, now

STEPS_BETWEEN_CHECKS = 50
"""Steps between checks whether the flows' loads are near the bound; later an eighth of all."""

SETTLED_SHARE = 0.2
"""The bound has settled when it grows by less than this share of the gap between checks."""

SETTLED_GROWTH, CERTIFYING_GROWTH = 1.25, 2.0
"""Flows are polished and made exact when there are this many times more steps: once the bound has
settled, and in any case."""

POLISHING_STEPS = 30
"""Steps of polishing at most."""

POLISHED_SHARE = 0.5
"""The share of the gap, above the bound, that polished flows are to reach."""

PROMISING_SHARE = 1.2
"""How much larger than the gap a gap may seem to be, for flows that are worth making exact."""

SINGLE_GAP = 1e-4
"""Gaps from here on are reached in single precision."""

MOST_STEPS = 1_000_000
"""Steps after which the method gives up."""

MOST_SMALL_STEPS = 20_000
"""The same for programs so small that a linear program's solver finishes them at once."""

BLOCK_CELLS = 8_000_000
"""Flows that are made exact at once when the answer is written out."""


class Search:
    """The state of one solve: its iterates, and the best flow and bound so far."""

    def __init__(
        self,
        program: FlowProgram,
        settings: SolveSettings,
        guess: Guess | None,
        keeping: Keeping | None = None,
    ) -> None:
        self.program = program
        self.settings = settings
        self.team = settings.team
        self.keeping, self.kept = keeping, now()
        self.time, self.bound, self.enough = np.inf, 0.0, np.inf
        self.best_lengths = np.ones(program.graph.links)
        self.iterates = Iterates(program, settings.team, guess, settings.gap >= SINGLE_GAP)
        shape = len(program.weight), program.graph.links
        self.trial = np.zeros(shape, dtype=self.iterates.real)
        self.best_flow = np.zeros_like(self.trial)
        self._go_on()

    def _go_on(self) -> None:
        """Go on where the last checkpoint is, if all ranks find one."""
        iterates, groups = self.iterates, len(self.program.weight)
        found = None if self.keeping is None else self.keeping.read(groups)
        if iterates.sum(float(found is not None)) < self.team.size or found is None:
            return
        state = iterates.state
        state.flow[:] = iterates.lanes(found.flow)
        state.potential[:] = iterates.lanes(found.potential)
        state.price[:] = found.price
        iterates.weight, iterates.count = found.weight, found.steps
        iterates.restart()
        self.try_lengths(found.lengths)
        self.settings.report(f"from a checkpoint after {found.steps} steps: bound {self.bound:g}")

    def _keep(self, now_or_never: bool = False) -> None:
        """Write a checkpoint, if it is time to."""
        iterates = self.iterates
        due = now_or_never or now() - self.kept >= CHECKPOINT_SECONDS
        if self.keeping is None or iterates.sum(float(due)) == 0.0:
            return
        flow, potential = map(iterates.rows, iterates.state[:2])
        proof = self.best_lengths, self.bound
        reached = iterates.weight, iterates.count
        self.keeping.write(
            Checkpoint(self.keeping.first, flow, potential, iterates.state.price, *proof, *reached)
        )
        self.kept = now()

    def run(self) -> Status:
        """Step, restart and check until done; say how it ended."""
        status = self._run()
        if status is not Status.OPTIMAL:
            self._keep(now_or_never=True)
        return status

    def _run(self) -> Status:
        iterates = self.iterates
        small = iterates.sum(self.program.variables) < SMALL_SIZE
        end = iterates.count + (min(MOST_SMALL_STEPS, MOST_STEPS) if small else MOST_STEPS)
        tried = certified = iterates.count
        next_check = iterates.count + STEPS_BETWEEN_CHECKS
        while iterates.count < end:
            iterates.advance()
            late = iterates.sum(float(self.settings.out_of_time())) > 0
            if iterates.count < next_check and not late:
                continue
            settled = self._settled()
            growth = SETTLED_GROWTH if settled else CERTIFYING_GROWTH
            if self.bound < self.enough and (late or iterates.count >= growth * tried):
                promising = not late and self._polish()
                if late or promising or iterates.count >= CERTIFYING_GROWTH * certified:
                    self.certify()
                    self._report()
                    certified = iterates.count
                tried = iterates.count
            if self.gap <= self.settings.gap or self.bound >= self.enough:
                return Status.OPTIMAL
            if late:
                return Status.TIME_LIMIT
            self._keep()
            next_check = iterates.count + max(STEPS_BETWEEN_CHECKS, iterates.count // 8)
        self.certify()
        return Status.OPTIMAL if self.gap <= self.settings.gap else Status.GAP_NOT_REACHED

    @property
    def gap(self) -> float:
        """The certified gap of the best flow and the best bound."""
        return self.time / self.bound - 1 if self.bound > 0 else np.inf

    def _settled(self) -> bool:
        """Raise the bound by the present prices; say whether it hardly grows any more."""
        before = self.bound
        self.try_lengths(self.iterates.lengths())
        return self.bound <= before * (1 + SETTLED_SHARE * self.settings.gap)

    def _polish(self) -> bool:
        """Step the flows towards some that are near enough to the bound; say if they seem to be."""
        iterates, wanted = self.iterates, self.settings.gap
        end = iterates.count + POLISHING_STEPS
        with iterates.towards(self.bound * (1 + POLISHED_SHARE * wanted)):
            while iterates.count < end and self._seeming_gap() > wanted:
                for _ in range(POLISHING_STEPS // 3 // iterates.batch):
                    iterates.advance()
        return self._seeming_gap() <= PROMISING_SHARE * wanted

    def _seeming_gap(self) -> float:
        """Return the gap of the present flows if what they lack costs what all else does."""
        load, lack = self.iterates.load_and_lack()
        return float(self.program.durations(load).sum()) / self.bound + lack - 1

    def try_lengths(self, lengths: Floats) -> None:
        """Keep lengths if they prove more than the best so far."""
        bound = program_bound(self.program, lengths, self.team)
        if bound > self.bound:
            # In this order: Ctrl-C in between must not leave a bound without its lengths.
            self.best_lengths, self.bound = lengths, bound

    def certify(self) -> None:
        """Make the present flows exact, and keep them if they are the best so far."""
        program, groups, trial = self.program, self.program.groups, self.trial
        self.iterates.volumes(trial)
        fill_missing(program, trial, team=self.team)
        adjacency = Adjacency(program.graph)
        load = exact_load(
            (program.graph.tail, program.graph.head),
            adjacency.outgoing,
            adjacency.incoming,
            narrowness(program.graph),
            groups.start,
            groups.wanted,
            program.weight,
            trial,
        )
        time = float(program.durations(self.team.total(load.sum(axis=0))).sum())
        if time < self.time:
            self.time, self.trial, self.best_flow = time, self.best_flow, trial

    def _report(self) -> None:
        text = f"{self.iterates.count} steps: certified gap {self.gap:.2e}"
        self.settings.report(News.of_gap(text, self.gap, self.settings.gap))

    def best_entries(self) -> tuple[Ints, Ints, Floats]:
        """Return the best flow, exact, as (start, link, volume) by group; a block at a time."""
        program = self.program
        rows = max(1, BLOCK_CELLS // program.graph.links)
        counts, links, volumes = [], [], []
        for begin in range(0, len(program.weight), rows):
            part = slice(begin, begin + rows)
            exact = exact_flows(
                program.graph, program.groups.part(part), self.best_flow[part].astype(np.float64)
            )
            group, link = np.nonzero(exact)
            counts.append(np.bincount(group, minlength=len(exact)))
            links.append(link)
            volumes.append(exact[group, link])
        start = starts_of(np.concatenate(counts))
        return start, np.concatenate(links), np.concatenate(volumes)
