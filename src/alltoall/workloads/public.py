"""`alltoall.fft3d` and `alltoall.moe`: programs that an all-to-all decides, checked and timed."""

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.demand import Demand
from alltoall.ir.messages import Messages
from alltoall.ir.quantities import parse_seconds, rate_in_words
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.words import kind_in_words
from alltoall.loading import load
from alltoall.lp.settings import silent
from alltoall.runtime.mpiexec import find_mpi
from alltoall.runtime.parts import Given, all_parts, schedule_for
from alltoall.runtime.wrap import wrap
from alltoall.schedules.public import Solver
from alltoall.schedules.public import schedule as make_schedule
from alltoall.testbed.launch import on_nodes, ranks_on
from alltoall.testbed.namespaces import Bed
from alltoall.testbed.over_routes import prepared
from alltoall.testbed.public import bed_for, require_same
from alltoall.testbed.report import BedSettings, RanksPerHost
from alltoall.verification import predict
from alltoall.workloads.fft3d import GATHERED_POINTS
from alltoall.workloads.fft3d import needed_bytes as fft_bytes
from alltoall.workloads.launch import (
    LIBRARY,
    ExchangeSpec,
    Launch,
    WaySpec,
    library_way,
    require_memory,
    run_ranks,
    schedule_way,
)
from alltoall.workloads.moe import needed_bytes as moe_bytes
from alltoall.workloads.ranks import Turns
from alltoall.workloads.reports import FftReport, MoeReport, MoeRow, Predicted, fft_report
from alltoall.workloads.router import Router, rows_between, sent_table, skew_statistics
from alltoall.workloads.spectrum import Pencils, parse_grid, parse_pencils

BY_ROUTES = "alltoall.testbed.over_routes:ByRoutes"
"""Factory of an exchange along routes, in a rank on a testbed."""


def fft3d(
    grid: str | int | tuple[int, int, int],
    *,
    pencils: str | tuple[int, int] | None = None,
    schedule: Given | None = None,
    ranks: int | None = None,
    mpi: str | None = None,
    iterations: int = Turns.iterations,
    warmup: int = Turns.warmup,
    seed: int = 0,
    timeout: str | float = 600.0,
    rate: str | None = None,
    fabric: str | None = None,
    ranks_per_host: RanksPerHost | None = None,
    routes: Sequence[Routes | str | PathLike[str]] | None = None,
    progress: Callable[[str], None] = silent,
) -> FftReport:
    """Time a distributed 3D FFT over MPI ranks.

    Each rank has a slab of planes. 2D FFT and packing, all-to-all, and unpacking and 1D FFT are
    timed separately: medians of the slowest rank. The schedule and the library's own all-to-all
    take turns. Results up to 2 million points are compared with numpy's `fftn`, larger ones by
    random sums over all points, and every shard to the bit with the one sent. A wrong result, a
    dead rank or a timeout is a `VerificationError` (exit code 4).

    With pencils, ranks form a grid and exchange twice: in rows, then in columns, by schedules for
    all rows and all columns of the schedule's network. Time is that of computing, packing and the
    all-to-alls. Slabs stand beside them if the grid has as many planes.

    Example: alltoall workload fft3d --grid 216 --schedule torus.schedule.json

    Example: alltoall workload fft3d --grid 64 --schedule torus:4x4 --pencils 4x4

    >>> import alltoall
    >>> report = alltoall.fft3d("10x9x7", schedule="ring:4", iterations=1)
    >>> report.ranks, report.checked, [row.way for row in report.rows]
    (4, 'fftn', ['library', 'schedule'])

    """
    require_seed(seed)
    sides, turns = parse_grid(grid), Turns(iterations, warmup)
    if pencils and routes:
        raise UsageError("pencils and routes; expected one of them: routes are for slabs")
    given = None if schedule is None else schedule_for(schedule, progress)
    messages = None if given is None else _messages(given)
    size = None if pencils is None else parse_pencils(pencils)
    hosts = _hosts(messages, ranks_per_host, rate or fabric, routes)
    count = sum(hosts) or _ranks_of(messages, prod(size) if size and ranks is None else ranks)
    cut = Pencils(sides, *(size or (count,)))
    if cut.ranks != count:
        raise UsageError(
            f"pencils {cut.rows}x{cut.columns} for {count} ranks; expected as many ranks as rows "
            "times columns"
        )
    ways = _ways("mpi", "schedule", messages, hosts)
    if size and count > min(sides[:2]):
        ways = []
    under = [given] if isinstance(given, Schedule) else []
    needed = fft_bytes(Pencils(sides, count), GATHERED_POINTS) if ways else 0
    if size:
        needed += fft_bytes(cut, GATHERED_POINTS)
        slabs = [replace(way, name=f"{way.name}, slabs") for way in ways]
        schedules = _pencil_schedules(cut, given, hosts, progress)
        ways = [*_ways_of_pencils(cut, schedules, hosts), *slabs]
        under += schedules
    require_memory(needed, count, "take a smaller grid")
    # Over slow links it would take longer to gather a grid than all that is measured.
    gathered = GATHERED_POINTS if rate is None and fabric is None else 0
    parameters = {"grid": sides, "seed": seed, "gathered_points": gathered, "pencils": size}
    progress(f"{count} ranks at work")
    launch = Launch("fft3d", parameters, count, ways, turns, parse_seconds(timeout))
    with _where(given, mpi, rate, fabric, routes or (), hosts, under) as where:
        found = where.run(launch)
    return fft_report(cut, found, where.links)


def _hosts(
    messages: Messages | None, given: RanksPerHost | None, place: str | None, routes: object
) -> tuple[int, ...]:
    """Return how many ranks each host has; none if each has one."""
    if given is None:
        return ()
    if messages is None or place is None or routes:
        raise UsageError(
            "ranks per host, and no schedule for hosts, no testbed that has them, or routes; "
            "expected --schedule, and --rate or --fabric"
        )
    return ranks_on(given, len(messages.ranks))


def _ways(on: str, name: str, messages: Messages | None, hosts: Sequence[int]) -> list[WaySpec]:
    """Return the library's way, and that of a schedule, which on hosts is put under the library."""
    library = library_way(on)
    if messages is None:
        return [library]
    ours = replace(library, name=name) if hosts else schedule_way(on, name, [messages])
    return [library, ours]


def _pencil_schedules(
    cut: Pencils,
    given: Schedule | Messages | None,
    hosts: Sequence[int],
    progress: Callable[[str], None],
) -> list[Schedule]:
    """Return schedules for all rows and all columns of ranks, on the network of a schedule."""
    if given is None:
        return []
    if not isinstance(given, Schedule):
        raise UsageError(
            "messages and pencils; expected a schedule or a SPEC, on whose network schedules for "
            "rows and columns are made"
        )
    each = hosts[0] if hosts else 1
    if any(ranks != each for ranks in hosts) or cut.columns % each:
        raise UsageError(
            f"pencils {cut.rows}x{cut.columns} of {','.join(map(str, hosts))} ranks per host; "
            "expected as many ranks on each host, of which a row of ranks has all or none"
        )
    found = []
    for name in ("rows", "columns"):
        progress(f"scheduling all {name}")
        words = f"{name}:shape={cut.rows}x{cut.columns // each}"
        found.append(make_schedule(given.problem.topology, groups=[words], progress=progress))
    return found


def _ways_of_pencils(
    cut: Pencils, schedules: Sequence[Schedule], hosts: Sequence[int]
) -> list[WaySpec]:
    """Return the library's exchanges in rows and columns, and those by a schedule for each."""
    grid = np.arange(cut.ranks).reshape(cut.rows, cut.columns)
    groups = [grid.tolist(), grid.T.tolist()]
    own = library_way("mpi").exchanges[0]
    ways = [WaySpec(LIBRARY, [replace(own, options={"groups": each}) for each in groups])]
    if hosts:
        ways.append(replace(ways[0], name="schedule"))
    elif schedules:
        ways.append(schedule_way("mpi", "schedule", [all_parts(each) for each in schedules]))
    return ways


def moe(
    tokens: int = 1024,
    *,
    hidden: int = 256,
    experts_per_rank: int = 2,
    top_k: int = 2,
    skew: float = 1.0,
    seed: int = 0,
    on: str = "mpi",
    schedule: Given | None = None,
    resolve: bool = False,
    ranks: int | None = None,
    mpi: str | None = None,
    iterations: int = Turns.iterations,
    warmup: int = Turns.warmup,
    timeout: str | float = 600.0,
    rate: str | None = None,
    fabric: str | None = None,
    ranks_per_host: RanksPerHost | None = None,
    routes: Sequence[Routes | str | PathLike[str]] | None = None,
    progress: Callable[[str], None] = silent,
) -> MoeReport:
    """Time a mixture-of-experts layer: dispatch, experts, combine.

    A seeded router of a given skew decides how much ranks send each other. The library's own
    uneven all-to-all is timed against the schedule as a template, and with `resolve` against
    schedules for the actual counts. Every rank compares its result to the bit with one computed
    alone. A wrong result, a dead rank or a timeout is a `VerificationError` (exit code 4).

    Example: alltoall workload moe --tokens 4096 --skew 0.8 --schedule hypercube:3 --resolve

    >>> import alltoall
    >>> report = alltoall.moe(64, hidden=8, schedule="ring:4", iterations=1)
    >>> [(row.way, row.error) for row in report.rows], report.skew["rank_max_over_mean"] > 1
    ([('library', 0.0), ('template', 0.0)], True)

    """
    require_seed(seed)
    turns, limit = Turns(iterations, warmup), parse_seconds(timeout)
    given = None if schedule is None else schedule_for(schedule, progress)
    template = None if given is None else _messages(given)
    hosts = _hosts(template, ranks_per_host, rate or fabric, routes)
    if hosts and resolve:
        raise UsageError("ranks per host and --resolve; expected one of them")
    count = sum(hosts) or _ranks_of(template, ranks)
    router = Router(count, tokens, hidden, experts_per_rank, top_k, skew, seed)
    require_memory(moe_bytes(router), count, "take fewer tokens, or fewer numbers of each")
    table = sent_table(router)
    demands = _demands(rows_between(router, table))
    known: dict[str, dict[str, Any]] = {}
    ways = _ways(on, "template", template, hosts)
    if template is not None and not hosts:
        known["template"] = _predictions([given, given], demands)
    prepared = None
    if resolve:
        prepared, schedules, seconds = _resolved(given, demands, progress)
        ways.append(schedule_way(on, "resolved", [all_parts(each) for each in schedules]))
        known["resolved"] = _predictions(schedules, demands) | {"solve_seconds": seconds}
    progress(f"{count} ranks at work")
    launch = Launch("moe", router.plain(), count, ways, turns, limit, on)
    under = [given] if isinstance(given, Schedule) else []
    with _where(given, mpi, rate, fabric, routes or (), hosts, under) as where:
        found = where.run(launch)
    rows = tuple(MoeRow(**row, **known.get(row["way"], {})) for row in found["rows"])
    return MoeReport(
        runtime=found["runtime"],
        on=on,
        links=where.links,
        ranks=count,
        tokens=tokens,
        hidden=hidden,
        experts_per_rank=experts_per_rank,
        top_k=top_k,
        skew={"sigma": skew, **skew_statistics(router, table)},
        rows=rows,
        speedups={row.way: rows[0].seconds / row.seconds for row in rows[1:]},
        prepare_seconds=prepared,
    )


class Where(NamedTuple):
    """Where ranks run: the emulated links, if any, and the function that runs them."""

    links: str | None
    run: Callable[[Launch], dict[str, Any]]


@contextmanager
def _where(
    given: Schedule | Messages | None,
    mpi: str | None,
    rate: str | None,
    fabric: str | None,
    routes: Sequence[Routes | str | PathLike[str]],
    hosts: Sequence[int],
    schedules: Sequence[Schedule],
) -> Iterator[Where]:
    """Yield the place of a workload: this machine, or a testbed."""
    if rate is None and fabric is None:
        if routes:
            raise UsageError("routes without a testbed to keep them on their paths; give --rate")
        yield Where(None, lambda launch: run_ranks(launch, mpi))
        return
    schedule = given if isinstance(given, Schedule) else None
    topology = None if schedule is None else schedule.problem.topology
    with bed_for(topology, BedSettings(rate or BedSettings.rate, fabric), "the workload") as bed:
        if schedule is not None:
            require_same(bed, schedule, "the schedule")
        speed = rate_in_words(bed.plan.bytes_per_second)
        links = f"{bed.plan.topology.name}, links of {speed}"
        steered = {_called(each, index): _routes(each) for index, each in enumerate(routes)}
        under = _under(schedules, mpi) if hosts else {}
        yield Where(links, lambda launch: _on_bed(launch, bed, mpi, steered, hosts, under))


def _under(schedules: Sequence[Schedule], mpi: str | None) -> dict[str, str]:
    """Return what puts schedules for hosts under the library's all-to-all."""
    if not schedules:
        raise UsageError("ranks per host by messages; expected the schedule, which names hosts")
    return wrap(schedules, launcher=str(find_mpi(mpi).mpiexec))


def _called(routes: Routes | str | PathLike[str], index: int) -> str:
    """Name an exchange along routes by its file, without the suffix."""
    if isinstance(routes, Routes):
        return f"routes {index + 1}"
    return Path(routes).name.partition(".")[0]


def _routes(given: Routes | str | PathLike[str]) -> Routes:
    found = given if isinstance(given, Routes) else load(Path(given))
    if not isinstance(found, Routes):
        raise UsageError(f"{given}: {kind_in_words(found)}; expected saved routes")
    return found


def _on_bed(
    launch: Launch,
    bed: Bed,
    mpi: str | None,
    routes: Mapping[str, Routes],
    hosts: Sequence[int],
    under: dict[str, str],
) -> dict[str, Any]:
    """Run a workload on a testbed: the library's by shortest paths, others by links."""
    if launch.on != "mpi":
        raise UsageError(f"a workload over {launch.on} on a testbed; expected --on mpi")
    rows: list[Any] = []
    found: dict[str, Any] = {}
    for scheduled in (False, True):
        ways = [way for way in launch.ways if way.name.startswith(LIBRARY) != scheduled]
        if ways:
            place = on_nodes(bed, scheduled, hosts, under if scheduled else {})
            found = run_ranks(replace(launch, ways=ways), mpi, place)
            rows += found["rows"]
    for name, each in routes.items():
        with tempfile.TemporaryDirectory(prefix="alltoall-") as folder:
            options = prepared(bed, each, Path(folder))
            way = WaySpec(name, [ExchangeSpec(BY_ROUTES, options)])
            found = run_ranks(replace(launch, ways=[way]), mpi, on_nodes(bed, scheduled=True))
        rows += found["rows"]
    return {**found, "rows": rows}


def _predictions(
    schedules: Sequence[Schedule | Messages | None], demands: Sequence[Demand]
) -> dict[str, Any]:
    """Predict the times of schedules there and back; messages, without links, have none."""
    both = zip(("predicted_dispatch", "predicted_combine"), schedules, demands, strict=False)
    found: dict[str, Any] = {}
    for key, schedule, demand in both:
        if isinstance(schedule, Schedule):
            report = predict(schedule, demand)
            found[key] = Predicted(
                report.template_time, report.template_bound, report.template_loss
            )
    return found


def _resolved(
    given: Schedule | Messages | None, demands: Sequence[Demand], progress: Callable[[str], None]
) -> tuple[float, list[Schedule], float]:
    """Return the preparation time, the schedules of both directions, and their solve time."""
    if not isinstance(given, Schedule) or not demands:
        raise UsageError(
            "nothing to solve again; expected a schedule, which has the topology to solve on "
            "(messages have none), and tokens that go to other ranks"
        )
    started = time.perf_counter()
    progress("getting ready to solve")
    solver = Solver(given.problem.topology)
    prepared = time.perf_counter()
    progress("solving")
    schedules = [solver.schedule(each) for each in demands]
    return prepared - started, schedules, time.perf_counter() - prepared


def _demands(rows: Ints) -> list[Demand]:
    """Return the demands there and back for the rows between ranks, in shards of mean size."""
    between = np.where(np.eye(len(rows), dtype=np.bool_), 0, rows)
    if not between.any():
        return []
    shards = between / (between.sum() / (len(rows) * (len(rows) - 1)))
    return [Demand(len(rows), shards), Demand(len(rows), shards.T)]


def _messages(work: Schedule | Messages) -> Messages:
    """Return messages that all pairs of ranks can send by."""
    found = all_parts(work)
    counts = found.chunks.counts
    if counts is not None and np.count_nonzero(counts == 0) > np.count_nonzero(
        np.diag(counts) == 0
    ):
        raise UsageError(
            "the schedule has no chunks for some pairs of ranks, and in a workload all pairs may "
            "have something to send; expected a schedule of the uniform all-to-all"
        )
    return found


def _ranks_of(messages: Messages | None, ranks: int | None) -> int:
    if messages is None:
        if ranks is None or ranks < 1:
            raise UsageError(
                f"{'no' if ranks is None else ranks} ranks and no schedule; expected a schedule, "
                "or how many ranks are to use the library's own all-to-all"
            )
        return ranks
    found = len(messages.ranks)
    if ranks is not None and ranks != found:
        raise UsageError(
            f"a schedule for {found} ranks, one per terminal, and {ranks} were asked for; leave "
            f"out the number, or ask for {found}"
        )
    return found


def require_seed(seed: int) -> None:
    """Refuse a seed that no generator takes."""
    if not 0 <= seed < 2**63:
        raise UsageError(f"seed {seed}; expected 0 or more, below 2**63")
