"""`alltoall warmup`: compile every kernel now, so that no later call has to.

Kernels are compiled for the types that they are first called with, and kept on disk. So every
method that has kernels does a small job here, as it would for a user. The jobs are shared out over
processes, as many as there are cores: the compiler itself takes one at a time.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

from numba.core import event
from numba.core.dispatcher import Dispatcher

from alltoall.cli.options import AsJson
from alltoall.cli.progress import progress
from alltoall.cli.show import show
from alltoall.designs.design import find_design, wanted_regular
from alltoall.flows import METHODS, SolveSettings, solve
from alltoall.flows.description import describe_problem
from alltoall.flows.exact import by_source
from alltoall.flows.program import whole_program
from alltoall.flows.sweeps import Sweeps
from alltoall.flows.workers import Local, run_all
from alltoall.ir.problem import Problem
from alltoall.paths.kernels import COMPILE
from alltoall.routes import ROUTERS, route
from alltoall.routes.deadlock_free.best import solve_deadlock_free
from alltoall.routes.layers.assign import LAYERINGS, assign_layers
from alltoall.routes.phases import split_phases
from alltoall.routes.renew import renew_routes
from alltoall.routes.whole_chunks import bounded_chunks, limit_routes
from alltoall.schedules.methods import find_schedule
from alltoall.schedules.resolve import warm_up
from alltoall.settings import PATH_SETS, DesignSettings, RouteSettings, ScheduleSettings
from alltoall.simulation.public import simulate
from alltoall.topologies.operators import drop_links
from alltoall.topologies.spec import build

NETWORKS = ("jellyfish:n=8,d=3,seed=1", "genkautz:n=16,d=2", "torus:3x3", "ring:5")
"""One on which no solver is done at once; one of one-way links, which needs several layers and
paths that are not disjoint; one that every router takes; and one whose shortest ways close cycles,
so that one layer is not enough."""

CHANGING = RouteSettings(layer_change=True)
"""Routes in one order of all channels, at whatever size."""

BY_DESTINATION = RouteSettings(destination_based=True)
"""Routes that tables by destination hold."""

Job = Callable[[], object]


def warmup_verb(as_json: AsJson = False) -> None:
    """Compile all kernels, which otherwise happens when they are first needed.

    They are kept beside the installed package, or in NUMBA_CACHE_DIR, or in the user's own cache
    where the package cannot be written to.

    Example: alltoall warmup
    """
    names = list(small_jobs())
    before = time.monotonic()
    with progress() as report:
        settings = SolveSettings(report=report)
        done = run_all(do_job, names, len(names), settings, Local.PROCESSES, "compiling")
        compiled = sum(done)
    seconds = time.monotonic() - before
    summary = {"kernels": len(kernels()), "compiled": compiled, "seconds": round(seconds, 3)}
    show(summary, as_json, {"kernels": _in_words(summary)})


def do_job(name: str) -> int:
    """Do one of the jobs; return how many kernels had to be compiled for it."""
    with event.install_recorder(COMPILE) as recorder:
        small_jobs()[name]()
    return sum(each.is_start for _, each in recorder.buffer)


def _in_words(summary: dict[str, Any]) -> str:
    if not summary["compiled"]:
        return f"all {summary['kernels']} were compiled before"
    return f"{summary['kernels']}, ready; compiled in {summary['seconds']:.1f} s"


def kernels() -> dict[str, Dispatcher]:
    """Return every kernel of the modules imported so far, by its full name."""
    modules = [module for name, module in sys.modules.items() if name.startswith("alltoall.")]
    found = (each for module in modules for each in vars(module).values())
    return {
        f"{each.py_func.__module__}.{each.py_func.__name__}": each
        for each in found
        if isinstance(each, Dispatcher)
    }


def small_jobs() -> dict[str, Job]:
    """Return a small job for each method that has kernels."""
    problem, one_way, even, ring = (Problem.all_to_all(build(spec)) for spec in NETWORKS)
    return {
        # The longest first, so that no core waits in the end.
        "solve to a coarse gap": partial(solve, problem, "first-order", SolveSettings(gap=1e-3)),
        "solve by sweeps": partial(_sweep, problem),
        "topology": partial(describe_problem, problem),
        "topology of one-way links": partial(describe_problem, one_way),
        **{f"solve by {name}": partial(solve, problem, name) for name in METHODS},
        **{f"route by {name}": partial(route, even, name) for name in ROUTERS},
        **{f"route on {paths} paths": partial(_route_on, one_way, paths) for paths in PATH_SETS},
        "layers, chunks and phases": partial(_refine, one_way),
        "routes without deadlock": partial(solve_deadlock_free, problem, 1, RouteSettings()),
        "routes that change layer": partial(solve_deadlock_free, one_way, 2, CHANGING),
        "routes that change layer on a ring": partial(solve_deadlock_free, ring, 1, CHANGING),
        "routes after a failure": partial(_route_again, problem),
        "routes by destination": partial(route, one_way, "single", BY_DESTINATION),
        "routes by destination in one layer": partial(
            route, problem, "deadlock-free", BY_DESTINATION
        ),
        "schedule": partial(find_schedule, problem, "tsmcf", ScheduleSettings(max_chunks=2)),
        "schedule by list": partial(find_schedule, problem, "list", ScheduleSettings(chunks=1)),
        "solve again": partial(warm_up, problem.topology),
        "simulate": partial(_simulate, even),
        "design": partial(find_design, wanted_regular(8, 3, True), DesignSettings()),
    }


def _simulate(problem: Problem) -> None:
    simulate(route(problem, "native"), link_bandwidth=1.0, sizes=1)
    found = find_schedule(problem, "list", ScheduleSettings(chunks=1))
    simulate(found.schedule, link_bandwidth=1.0, sizes=1, sharing="fair")


def _route_on(problem: Problem, paths: str) -> None:
    route(problem, "pmcf", RouteSettings(paths=paths))


def _sweep(problem: Problem) -> None:
    Sweeps(whole_program(problem, by_source(problem)), SolveSettings(gap=1e-3), None).run()


def _route_again(problem: Problem) -> None:
    last = route(problem, "single")
    fewer = replace(problem, topology=drop_links(problem.topology, 1, seed=0))
    renew_routes(fewer, last, SolveSettings())


def _refine(problem: Problem) -> None:
    settings = RouteSettings()
    routes = route(problem, "single", settings)
    for name in LAYERINGS:
        assign_layers(routes, name)
    limit_routes(routes, 1, settings)
    bounded_chunks(routes, 2, settings)
    split_phases(routes, None, 0.05)
