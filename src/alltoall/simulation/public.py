"""`alltoall.simulate`: predicted times of a schedule or routes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from alltoall.check.flow import recompute_bound
from alltoall.errors import FormatError, InputError, UsageError
from alltoall.flows.public import find_flow
from alltoall.ir.arrays import Floats, frozen
from alltoall.ir.demand import Demand
from alltoall.ir.fabric import Fabric, Rate, link_rate
from alltoall.ir.files.node_tables import read_node_values
from alltoall.ir.messages import Messages
from alltoall.ir.problem import Problem
from alltoall.ir.program import Program
from alltoall.ir.quantities import bytes_per_second, parse_seconds, parse_size, parse_sizes
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import kind_in_words
from alltoall.loading import load
from alltoall.lowering.public import PHASE_LOSS
from alltoall.lp.settings import silent
from alltoall.routes.phases import split_phases
from alltoall.simulation.alpha_beta import (
    SHARINGS,
    SYNCS,
    messages_of_schedule,
)
from alltoall.simulation.fluid import FluidSettings
from alltoall.simulation.lowered import messages_of_lowered, messages_of_program
from alltoall.simulation.report import (
    FLUID,
    SHARED,
    STEPPED,
    Asked,
    JobPart,
    JobRow,
    Row,
    Simulation,
    jobs_together,
    messages_alone,
    routes_alone,
)
from alltoall.topologies.background import GivenBackground, without_background
from alltoall.topologies.given import Given, topology_of
from alltoall.verification import verify

Subject: TypeAlias = Schedule | Routes | Messages | Program
"""What can be simulated."""


Seconds: TypeAlias = str | float
"""A number of seconds, or a text such as `2us`."""

Starts: TypeAlias = ArrayLike | str | PathLike[str] | None
"""When terminals begin: seconds of each, or a file of lines of a node and its seconds."""


def simulate(
    subject: Subject | str | PathLike[str] | None = None,
    *,
    link_bandwidth: Rate | None = None,
    bytes: str | int | Sequence[int] = "1M",
    latency: Seconds = 0.0,
    overhead: Seconds = 0.0,
    injection: Rate | None = None,
    start: Starts = None,
    sync: str = "dataflow",
    sharing: str = "due",
    weights: str = "equal",
    flows: int = 1,
    chunk_bytes: str | int | None = None,
    phases: int | None = None,
    phase_loss: float | None = None,
    resolution: float | None = None,
    topology: Given | None = None,
    jobs: Sequence[Routes | str | PathLike[str]] | None = None,
    background: GivenBackground = None,
    progress: Callable[[str], None] = silent,
) -> Simulation:
    """Predict the time of a schedule or routes, a row for each size.

    The file is verified first. A schedule is simulated message by message (alpha-beta model):
    terminals store and forward messages, and links carry them in the order of their steps. Routes
    are a fluid: each flow has its max-min fair rate at every moment. No time is below the
    certified `bound_seconds`. Routes of several jobs share the links uncoordinated, and a file
    beside them is their joint schedule or routes.

    >>> import alltoall
    >>> found = alltoall.simulate(alltoall.schedule("ring:4"), link_bandwidth=1e9, latency="1us")
    >>> round(found.seconds * 1e3, 6), round(found.bound_seconds * 1e3, 6)
    (2.099152, 2.097152)

    """
    fluid = FluidSettings(
        weights, flows, None if chunk_bytes is None else parse_size(chunk_bytes), resolution
    )
    found = load(subject) if isinstance(subject, str | PathLike) else subject
    if not isinstance(found, Subject | None):
        raise UsageError(
            f"{kind_in_words(found)} cannot be simulated; expected a saved schedule, saved "
            "routes, the messages of a schedule (lower --to messages), or MSCCL XML"
        )
    parts = tuple(map(job_of, jobs or ()))
    if phase_loss is not None and phases is None:
        raise UsageError("a loss of phases without phases; add --phases, or leave --phase-loss out")
    _require_use(found, bool(parts), (sync, sharing), fluid, phases, topology)
    place = _joint_place(found, parts, topology).less(background)
    fabric = fabric_of(place.problem.topology, link_bandwidth, latency, overhead, injection)
    asked = Asked(
        fabric=fabric,
        sizes=sizes_of(bytes),
        begin=starts_of_terminals(start, fabric.topology),
        demand=place.problem.demand,
        bound=place.bound,
        fluid=fluid,
        progress=progress,
    )
    together: tuple[Row, ...] = ()
    each_job: tuple[JobRow, ...] = ()
    if parts:
        bounds = [place_of(part.routes, None).less(background).bound for part in parts]
        together, each_job = jobs_together(parts, bounds, asked)
    resolution = None  # of the fluid, if there is one
    if isinstance(found, Routes):
        split = [found]
        if phases is not None:
            phase = split_phases(
                found, phases or None, PHASE_LOSS if phase_loss is None else phase_loss
            )
            split = [found.select(np.flatnonzero(phase == at)) for at in range(phase.max() + 1)]
        model, rows = FLUID, routes_alone(split, asked)
        resolution = fluid.resolution_for(found.count)
    elif found is not None:
        model = f"{SHARED[sharing]}, {STEPPED[sync]}"
        if isinstance(found, Schedule):
            messages = messages_of_schedule(found)
        elif isinstance(found, Program):
            messages = messages_of_program(found, fabric.topology)
        else:
            messages = messages_of_lowered(found, fabric.topology)
        rows = messages_alone(messages, sync, sharing, asked)
    else:
        model, rows = FLUID, together
        resolution = fluid.resolution_for(sum(part.routes.count for part in parts))
    return Simulation(
        topology=fabric.topology.name,
        terminals=asked.demand.terminals,
        link_rates=(float(fabric.link_rates.min()), float(fabric.link_rates.max())),
        model=model,
        rows=rows,
        resolution=resolution,
        together=together,
        jobs=each_job,
    )


@dataclass(frozen=True)
class Place:
    """A problem with its verified bound, and the link lengths that prove it, if any."""

    problem: Problem
    bound: float
    lengths: Floats | None = None

    def less(self, background: GivenBackground) -> "Place":
        """Return the problem on links less the background, with the bound recomputed."""
        if background is None:
            return self
        topology = without_background(self.problem.topology, background)
        problem = Problem(topology, self.problem.demand)
        if self.lengths is None:
            return Place(problem, find_flow(problem).bound)
        bound, trouble = recompute_bound(problem, self.lengths)
        return Place(problem, self.bound if trouble else max(self.bound, bound), self.lengths)


def job_of(given: Routes | str | PathLike[str]) -> JobPart:
    """Return the routes of a job from FILE, or FILE@TIME with its start time."""
    if isinstance(given, Routes):
        return JobPart(given.problem.topology.name, given, 0.0)
    name, at, start = str(given).rpartition("@")
    path, begins = (name, _seconds(start, Path(name))) if at and name else (str(given), 0.0)
    if not 0 <= begins < np.inf:
        raise UsageError(f"job {given} begins at {begins:g}; expected seconds of 0 or more")
    routes = load(path)
    if not isinstance(routes, Routes):
        raise UsageError(
            f"{path}: {kind_in_words(routes)} as one of several jobs; expected saved routes, "
            "whose flows can share links"
        )
    return JobPart(path, routes, begins)


def _joint_place(found: Subject | None, parts: Sequence[JobPart], given: Given | None) -> Place:
    """Return the problem of the subject, or of all jobs together."""
    if not parts:
        if found is None:
            raise UsageError("nothing to simulate; expected a file, or several jobs (--job FILE)")
        return place_of(found, given)
    first = parts[0].routes.problem.topology
    for part in parts[1:]:
        _require_same(part.routes.problem.topology, first, part.name)
    tables = [part.routes.problem.demand.table() for part in parts]
    total = Demand(len(first.terminals), np.sum(tables, axis=0))
    if found is None:
        flow = find_flow(Problem(first, total))
        return Place(flow.problem, flow.bound, flow.certificate.lengths)
    place = place_of(found, given)
    _require_same(place.problem.topology, first, "the joint file")
    if not np.allclose(place.problem.demand.table(), total.table(), rtol=1e-9, atol=0):
        raise InputError(
            "the joint file carries another demand than all jobs together; expected their sum"
        )
    return place


def _require_same(topology: Topology, first: Topology, where: str) -> None:
    same = all(
        np.array_equal(getattr(topology, key), getattr(first, key))
        for key in ("tail", "head", "capacity", "terminals")
    )
    if not same:
        raise InputError(
            f"{where} is on {topology.name}, and the first job on {first.name}, with other links "
            "or terminals; expected jobs on one topology"
        )


def place_of(subject: Subject, topology: Given | None) -> Place:
    """Verify the subject; return its problem and proven bound."""
    if isinstance(subject, Schedule | Routes):
        bound = float(verify(subject).facts["bound"])
        return Place(subject.problem, bound, subject.certificate.lengths)
    if topology is None:
        raise UsageError("messages do not say which links they take; give the topology too")
    demand = subject.demand if isinstance(subject, Messages) else subject.chunks.demand()
    problem = Problem(topology_of(topology), demand)
    facts = verify(subject, topology=problem.topology).facts
    return Place(problem, float(facts["bound"]))


def fabric_of(
    topology: Topology,
    link_bandwidth: Rate | None,
    latency: Seconds,
    overhead: Seconds,
    injection: Rate | None,
) -> Fabric:
    """Return a topology in bytes and seconds."""
    rate = link_rate(topology, link_bandwidth)
    if rate is None:
        raise UsageError(
            "no link bandwidth; add what a link of capacity 1 carries, such as 100G "
            "(--link-bandwidth), or give capacities their units in an edge list"
        )
    limit = bytes_per_second(injection) if isinstance(injection, str) else injection
    delay, cost = parse_seconds(latency), parse_seconds(overhead)
    try:
        return Fabric(topology, rate, np.asarray(delay, np.float64), limit, cost)
    except InputError as error:
        raise UsageError(str(error)) from None


def sizes_of(sizes: str | int | Sequence[int]) -> tuple[int, ...]:
    """Return the requested sizes, at least one and all positive."""
    if isinstance(sizes, str):
        return parse_sizes(sizes)
    found = (sizes,) if isinstance(sizes, int) else tuple(sizes)
    if not found or min(found) < 1:
        raise UsageError(f"sizes {list(found)}; expected at least one, each of 1 byte or more")
    return found


def starts_of_terminals(given: Starts, topology: Topology) -> Floats:
    """Return the start time of each terminal, 0 by default."""
    terminals = len(topology.terminals)
    if given is None:
        return np.zeros(terminals)
    if isinstance(given, str | PathLike):
        path = Path(given)
        given = [_seconds(each, path) for each in read_node_values(path, topology)]
    begin = frozen(given, np.float64)
    if begin.shape != (terminals,) or not np.all((begin >= 0) & np.isfinite(begin)):
        raise InputError(
            f"start times {begin.tolist() if begin.size < 9 else '...'}; expected seconds of 0 or "
            f"more for each of the {terminals} terminals"
        )
    return begin


def _seconds(text: str, path: Path) -> float:
    try:
        return parse_seconds(text)
    except UsageError as error:
        raise FormatError(f"{path}: {error}") from None


def _require_use(
    subject: Subject | None,
    several: bool,
    stepped: tuple[str, str],
    fluid: FluidSettings,
    phases: int | None,
    topology: Given | None,
) -> None:
    """Raise if a setting has no meaning for the kind of subject."""
    asked = zip(("sync", "sharing"), stepped, (SYNCS, SHARINGS), strict=True)
    for kind, given, known in asked:
        if given not in known:
            raise UsageError(f"{kind} {given!r}; expected one of {', '.join(known)}")
    flowing, stepping = (
        isinstance(subject, Routes),
        isinstance(subject, Schedule | Messages | Program),
    )
    if not stepping and stepped != (SYNCS[0], SHARINGS[0]):
        raise UsageError("sync or sharing with routes, which have no steps; leave it out")
    if several and phases is not None:
        raise UsageError("phases with several jobs, which nobody coordinates; leave them out")
    if not flowing and not several and (fluid != FluidSettings() or phases is not None):
        raise UsageError(
            "weights, flows, chunk bytes, phases or a resolution with a schedule; expected routes, "
            "whose flows share links"
        )
    if not isinstance(subject, Messages | Program) and topology is not None:
        raise UsageError("a topology with what says its own; it is for lowered messages, leave it")
