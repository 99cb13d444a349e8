"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.

>>> import alltoall
>>> flow = alltoall.solve("torus:3x3x3")
>>> round(flow.time, 6), round(flow.bound, 6)
(9.0, 9.0)

    topology, problem    the network, and who sends to whom on it
    solve                the best rate, with its proof
    compare              networks and methods side by side
    design               which network to build
    describe             the facts of a topology, and bounds that need no solver
    route, schedule      routes for fabrics that forward; chunks in steps for hosts that do
    failures             the cost of every failure, and routes or schedules ready for it
    lower                files of runtimes and fabrics, proven before they are returned
    run, wrap            real bytes between ranks; an unmodified MPI program
    simulate             predicted times
    fft3d, moe           real workloads, checked and timed
    verify               an independent check of any file or answer
    report, reproduce    an HTML page; the figures of the paper
    load                 any file, as the noun that it holds
    Solver, fair_rates   one demand after the other; several jobs at once

Names are imported when used, so `import alltoall` loads nothing, and `alltoall.verify` no solver:
the command line must react to Ctrl-C before it imports anything slow.
"""

import importlib as _importlib

__version__ = "0.1.0"

_WHERE = {
    "alltoall.comparing.compare": ("compare",),
    "alltoall.comparing.comparison": ("Comparison",),
    "alltoall.comparing.failures": ("failures",),
    "alltoall.designs.design": ("Design",),
    "alltoall.designs.public": ("design",),
    "alltoall.errors": (
        "AlltoallError",
        "InputError",
        "MissingComponentError",
        "TimeLimitError",
        "UsageError",
        "VerificationError",
    ),
    "alltoall.extensions": ("register_method", "register_target"),
    "alltoall.figures.public": ("reproduce",),
    "alltoall.flows.public": ("describe", "fair_rates", "solve"),
    "alltoall.ir.demand": ("Demand",),
    "alltoall.ir.flow": ("Flow", "Status"),
    "alltoall.ir.jobs": ("Job",),
    "alltoall.ir.problem": ("Problem",),
    "alltoall.ir.routes": ("Routes",),
    "alltoall.ir.schedule": ("Schedule",),
    "alltoall.ir.topology": ("Topology",),
    "alltoall.loading": ("load",),
    "alltoall.lowering.public": ("lower",),
    "alltoall.reports.public": ("report",),
    "alltoall.routes.public": ("route",),
    "alltoall.runtime.public": ("run",),
    "alltoall.runtime.wrap": ("wrap",),
    "alltoall.schedules.public": ("Solver", "schedule"),
    "alltoall.simulation.public": ("simulate",),
    "alltoall.topologies.families": ("register_family",),
    "alltoall.topologies.public": ("problem", "topology"),
    "alltoall.verification": ("verify",),
    "alltoall.workloads.public": ("fft3d", "moe"),
}
"""The public names of each module; the block below says the same to checkers of types."""

MYPY = False  # What checkers of types take for true; `typing` has it too, but is slow to import.
if MYPY:
    from alltoall.comparing.compare import compare as compare
    from alltoall.comparing.comparison import Comparison as Comparison
    from alltoall.comparing.failures import failures as failures
    from alltoall.designs.design import Design as Design
    from alltoall.designs.public import design as design
    from alltoall.errors import AlltoallError as AlltoallError
    from alltoall.errors import InputError as InputError
    from alltoall.errors import MissingComponentError as MissingComponentError
    from alltoall.errors import TimeLimitError as TimeLimitError
    from alltoall.errors import UsageError as UsageError
    from alltoall.errors import VerificationError as VerificationError
    from alltoall.extensions import register_method as register_method
    from alltoall.extensions import register_target as register_target
    from alltoall.figures.public import reproduce as reproduce
    from alltoall.flows.public import describe as describe
    from alltoall.flows.public import fair_rates as fair_rates
    from alltoall.flows.public import solve as solve
    from alltoall.ir.demand import Demand as Demand
    from alltoall.ir.flow import Flow as Flow
    from alltoall.ir.flow import Status as Status
    from alltoall.ir.jobs import Job as Job
    from alltoall.ir.problem import Problem as Problem
    from alltoall.ir.routes import Routes as Routes
    from alltoall.ir.schedule import Schedule as Schedule
    from alltoall.ir.topology import Topology as Topology
    from alltoall.loading import load as load
    from alltoall.lowering.public import lower as lower
    from alltoall.reports.public import report as report
    from alltoall.routes.public import route as route
    from alltoall.runtime.public import run as run
    from alltoall.runtime.wrap import wrap as wrap
    from alltoall.schedules.public import Solver as Solver
    from alltoall.schedules.public import schedule as schedule
    from alltoall.simulation.public import simulate as simulate
    from alltoall.topologies.families import register_family as register_family
    from alltoall.topologies.public import problem as problem
    from alltoall.topologies.public import topology as topology
    from alltoall.verification import verify as verify
    from alltoall.workloads.public import fft3d as fft3d
    from alltoall.workloads.public import moe as moe
del MYPY

_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Import a public name when it is first used; a function then checks its arguments."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_importlib.import_module(_MODULE_OF[name]), name)
    if type(found) is type(__getattr__):
        found = _importlib.import_module("alltoall.ir.arguments").export(found, name)
        found.__doc__ = _importlib.import_module("alltoall.options").documented(found)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted({*globals(), *_MODULE_OF})
