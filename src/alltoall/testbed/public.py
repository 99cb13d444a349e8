"""`alltoall.run(..., on="testbed")`: run a file on a fabric and report."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike
from pathlib import Path

import numpy as np

from alltoall.errors import UsageError, VerificationError
from alltoall.flows.public import solve
from alltoall.ir.arrays import rows
from alltoall.ir.chunks import shards_of
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import bytes_per_second
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.loading import LoweredText, opened
from alltoall.lowering import parse_lowered
from alltoall.lowering.tables.routed_file import RoutedFile, rebuild
from alltoall.routes.phases import split_phases
from alltoall.routes.public import route
from alltoall.runtime.launch import RunSettings, require_runnable
from alltoall.runtime.mpiexec import find_mpi
from alltoall.runtime.needs import demand_of, require_memory
from alltoall.runtime.parts import rank_work
from alltoall.runtime.wrap import wrap
from alltoall.schedules.public import schedule
from alltoall.testbed.drill import Run, drill
from alltoall.testbed.launch import (
    BedWork,
    Hosted,
    ranks_on,
    run_on_bed,
    temporary_bed,
)
from alltoall.testbed.loads import pair_bytes, require_paths
from alltoall.testbed.namespaces import Bed, bed_called, require_testbed, reroute
from alltoall.testbed.plan import merged
from alltoall.testbed.ports import PORTS, per_chunk
from alltoall.testbed.report import BedReport, BedSettings, SharedReport
from alltoall.testbed.routed import run_routes
from alltoall.testbed.sharing import share
from alltoall.topologies.given import topology_of
from alltoall.topologies.operators import remove_links
from alltoall.verification import verify

MOST_ITERATIONS = 10_000
"""Of a run that a cut is to end."""

PHASE_LOSS = 0.05
"""Largest loss of time by phases, computed from the loads."""


Subject = Schedule | Routes | str | PathLike[str]
"""What can be run: an answer, or the path of a file for ranks or a fabric."""


def run_on_testbed(given: Subject, run: RunSettings, asked: BedSettings) -> BedReport:
    """Run schedules, routes, or their lowered forms, on a fabric of namespaces."""
    name, subject, file = _opened(given)
    own = getattr(getattr(subject, "problem", None), "topology", None)
    with bed_for(own, asked, name) as bed:
        if isinstance(subject, RoutedFile):
            problem = subject.problem or Problem.all_to_all(bed.plan.topology)
            subject = rebuild(subject, problem, subject.certificate)
        if asked.ranks_per_host is not None and not isinstance(subject, Schedule):
            raise UsageError(
                f"{name}: ranks per host of {type(subject).__name__}; expected a schedule"
            )
        if asked.cut is not None:
            return _drilled(bed, subject, name, run, asked)
        if isinstance(subject, Routes):
            return _run_routes(bed, subject, run, asked, name)
        if isinstance(subject, Schedule):
            work = _work(bed, subject, name, run, asked)
        else:
            parts = rank_work(name, subject, file)
            verify(parts.parts)
            require_runnable(parts, asked.through, None, run)
            bound = solve(bed.plan.topology, demand=demand_of(parts.parts)).bound
            work = BedWork(name, parts.parts, file, bound)
        return run_on_bed(bed, work, run, asked.through, asked.native)


def _opened(given: Subject) -> tuple[str, object, bytes | None]:
    """Return the name and content of the subject, and the bytes of a program."""
    if isinstance(given, Schedule | Routes):
        return f"{type(given).__name__} of {given.problem.topology.name}", given, None
    found = opened(Path(given))
    if isinstance(found, LoweredText):
        return str(given), parse_lowered(found.text, found.where)[1], found.text.encode()
    return str(given), found, None


def share_testbed(given: Sequence[Subject], run: RunSettings, asked: BedSettings) -> SharedReport:
    """Run schedules on one fabric, each alone, all at once, and one joint schedule."""
    if len(run.sizes) != 1:
        raise UsageError(
            f"{len(run.sizes)} sizes for jobs that share a fabric; expected one: name it (--bytes "
            "256K)"
        )
    if asked.cut is not None:
        raise UsageError("a cable to cut and jobs that share a fabric; expected one of the two")
    answers = [_schedule_of(each) for each in given]
    topology = answers[0][1].problem.topology
    with bed_for(topology, asked, answers[0][0]) as bed:
        works = [_work(bed, answer, name, run, asked) for name, answer in answers]
        require_memory([work.parts for work in works], run.sizes)
        total = sum(answer.problem.demand.table() for _, answer in answers)
        joint = schedule(topology, demand=np.asarray(total))
        everything = _work(bed, joint, "the joint schedule", run, asked)
        return share(bed, works, everything, run, asked.through)


def _schedule_of(given: Subject) -> tuple[str, Schedule]:
    """Return the name and the schedule of a job."""
    name, found, _ = _opened(given)
    if not isinstance(found, Schedule):
        raise UsageError(
            f"{name}: a {type(found).__name__} in the place of a job; expected a saved schedule "
            "(alltoall schedule SPEC --group 0,1,2,3 -o FILE)"
        )
    return name, found


def _work(bed: Bed, answer: Schedule, name: str, run: RunSettings, asked: BedSettings) -> BedWork:
    """Return the ranks' work; raise if it is not for this fabric."""
    work = rank_work(name, answer)
    require_runnable(work, asked.through, None, run)
    require_same(bed, answer, name)
    unit = max(run.sizes)
    pairs = pair_bytes(work.parts, shards_of(demand_of(work.parts), unit))
    require_paths(bed, answer, pairs, unit)
    if asked.ranks_per_host is None:
        return BedWork(name, work.parts, bound=answer.bound)
    ranks = ranks_on(asked.ranks_per_host, len(bed.plan.topology.terminals))
    hosted = _hosted(answer, ranks, run, asked.through)
    require_memory([hosted.every.parts], run.sizes)
    demand = np.outer(ranks, ranks).astype(np.float64)
    np.fill_diagonal(demand, 0.0)
    if len(set(ranks)) == 1:
        bound = answer.bound * ranks[0] ** 2
    else:
        bound = solve(bed.plan.topology, demand=demand).bound
    return BedWork(name, work.parts, None, bound, hosted)


def _hosted(answer: Schedule, ranks: tuple[int, ...], run: RunSettings, through: str) -> Hosted:
    """Return what several ranks per host do by a schedule for hosts."""
    if through != "mpi":
        raise UsageError(f"several ranks per host through {through}; expected mpi, under wrap")
    if not answer.problem.demand.uniform:
        raise UsageError(
            "several ranks per host by a schedule for uneven demand or groups; expected one for "
            "the uniform all-to-all of hosts"
        )
    total = sum(ranks)
    every = rank_work(f"{total} ranks", schedule(f"complete:{total}"))
    mpi = find_mpi(run.mpi)
    environment = wrap([answer], launcher=str(mpi.mpiexec), quiet=True)
    return Hosted(ranks, every, environment)


def _drilled(
    bed: Bed, subject: object, name: str, run: RunSettings, asked: BedSettings
) -> BedReport:
    """Cut a cable during a run, solve for the remaining links, and run the new answer."""
    if not isinstance(subject, Schedule | Routes):
        raise UsageError(f"{name}: cannot be made again without a cable; expected saved answers")
    topology = subject.problem.topology
    ends = topology.ends_of(asked.cut or "")
    left = remove_links(topology, [ends])
    endless = replace(run, sizes=run.sizes[-1:], iterations=MOST_ITERATIONS, warmup=0)
    quiet = replace(asked, native=False)
    moved = shards_of(subject.problem.demand, endless.sizes[0]).total

    def runs(answer: Schedule | Routes, called: str, settings: RunSettings) -> Run:
        def run_it(bed: Bed) -> BedReport:
            if isinstance(answer, Routes):
                return _run_routes(bed, answer, settings, quiet, called)
            work = _work(bed, answer, called, settings, quiet)
            return run_on_bed(bed, work, settings, quiet.through, native=False)

        return run_it

    def solved() -> Run:
        problem = Problem(left, subject.problem.demand)
        if isinstance(subject, Routes):
            return runs(route(problem), "routes around the cut", run)
        return runs(schedule(problem), "the schedule around the cut", run)

    return drill(bed, ends, moved, runs(subject, name, endless), solved)


def _run_routes(
    bed: Bed, routes: Routes, run: RunSettings, asked: BedSettings, subject: str
) -> BedReport:
    """Run routes: each is a flow that the fabric keeps on its path."""
    if asked.steering == PORTS:
        routes = per_chunk(routes)
    phase = split_phases(routes, None, PHASE_LOSS) if asked.weights == "phases" else None
    measured = run_routes(
        bed,
        routes,
        run.sizes,
        run.iterations,
        run.warmup,
        weights=asked.weights,
        steering=asked.steering,
        phase=phase,
        timeout=run.timeout,
    )
    wrong = [f"{row.bytes:,} bytes: {each}" for row in measured for each in row.disagreements]
    if wrong:
        raise VerificationError(f"the run of {subject} on {bed.plan.topology.name}", wrong)
    return BedReport(
        fabric=bed.plan.name,
        topology=bed.plan.topology.name,
        ranks=len(bed.plan.topology.terminals),
        rate=bed.plan.bytes_per_second,
        runtime=f"{routes.count} flows, {asked.weights}, {asked.steering} steering",
        native=None,
        links_emulated=True,
        rows=measured,
        violations=(),
    )


@contextmanager
def bed_for(own: Topology | None, asked: BedSettings, subject: str) -> Iterator[Bed]:
    """Yield the requested fabric: an existing one, or one for this run only."""
    require_testbed()
    if asked.fabric is not None:
        bed = bed_called(asked.fabric)
        if bed.cut:
            reroute(bed)
        yield bed
        return
    if own is None and asked.topology is None:
        raise UsageError(
            f"{subject} does not say what its links are; name the topology (--topology SPEC), or a "
            "fabric that exists (--fabric NAME)"
        )
    topology = own if asked.topology is None else topology_of(asked.topology)
    assert topology is not None
    with temporary_bed(topology, bytes_per_second(asked.rate)) as bed:
        yield bed


def require_same(bed: Bed, schedule: Schedule, subject: str) -> None:
    """Refuse a schedule for other links than the uncut ones of the fabric."""
    wanted, found = merged(schedule.problem.topology)[0], bed.plan.topology
    links = [set(rows(each.tail, each.head, each.capacity)) for each in (wanted, found)]
    cut = np.array(bed.cut, dtype=np.int64)
    links[1] -= set(rows(found.tail[cut], found.head[cut], found.capacity[cut]))
    if links[0] != links[1] or not np.array_equal(wanted.terminals, found.terminals):
        less = f" without {len(bed.cut)} links that are cut" if bed.cut else ""
        raise UsageError(
            f"{subject} is for {wanted.name}, and the fabric {bed.plan.name!r} {found.name}{less}; "
            "expected the same nodes, links and capacities: take another fabric, or have one made"
        )
