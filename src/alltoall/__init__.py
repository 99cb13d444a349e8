"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.

>>> import alltoall
>>> flow = alltoall.solve("torus:3x3x3")
>>> round(flow.time, 6), round(flow.bound, 6)
(9.0, 9.0)

One function per verb, each from one noun to the next; docs/python.md goes through them:

    design      which network to build, certified beside every family of its size
    describe    what a topology is, and what it can carry at most
    solve       the best rate, as a `Flow` with its certificate
    route       weighted or single paths, as `Routes` with layers that cannot deadlock
    schedule    whole chunks in steps, as a `Schedule`
    failures    what each failure costs, and routes or a schedule ready for it
    lower       the files of runtimes and fabrics, proven before they are returned
    simulate    predicted times, message by message or as a fluid
    run         real bytes between processes, checked and timed
    wrap        the environment in which an unmodified MPI program uses schedules
    fft3d, moe  programs that an all-to-all decides, checked and timed
    verify      an independent check of any file or noun
    reproduce   figures of the paper, measured again
    report      a page to look at, of any of these
    load        any file, back as the noun that it stands for

A name is imported when it is used, so `import alltoall` loads nothing, and `alltoall.verify` no
solver: the command line has to hear Ctrl-C before it imports anything that takes long.
"""

import importlib as _importlib

__version__ = "0.1.0"

_WHERE = {
    "alltoall.check.flow": ("check_flow", "check_topology"),
    "alltoall.check.jobs": ("check_job_rates",),
    "alltoall.check.routes": ("check_routes",),
    "alltoall.check.schedule": ("check_schedule",),
    "alltoall.check.template": ("TemplateReport",),
    "alltoall.comparing.failures": ("FailureReport", "FailureRow", "failures"),
    "alltoall.designs.candidate": ("Candidate",),
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
    "alltoall.figures.run": ("Reproduced",),
    "alltoall.flows.bounds": ("cable_bound", "cut_bound", "distance_bound", "regular_bound"),
    "alltoall.flows.description": ("Description",),
    "alltoall.flows.public": ("describe", "fair_rates", "find_flow", "solve"),
    "alltoall.ir.answer": ("Bottleneck", "Certificate"),
    "alltoall.ir.demand": ("Demand",),
    "alltoall.ir.fabric": ("Fabric",),
    "alltoall.ir.flow": ("Flow", "Status"),
    "alltoall.ir.jobs": ("Job", "JobRates"),
    "alltoall.ir.problem": ("Problem",),
    "alltoall.ir.noun": ("Provenance",),
    "alltoall.ir.routes": ("Routes",),
    "alltoall.ir.schedule": ("Schedule",),
    "alltoall.ir.summaries": ("summary_of",),
    "alltoall.ir.topology": ("Topology",),
    "alltoall.loading": ("load",),
    "alltoall.lowering": ("Target",),
    "alltoall.lowering.public": ("LoweredFiles", "lower"),
    "alltoall.reports.page": ("Report",),
    "alltoall.reports.public": ("report",),
    "alltoall.routes.phases": ("Phases", "split_phases"),
    "alltoall.routes.public": ("route",),
    "alltoall.routes.search": ("FoundRoutes", "find_routes"),
    "alltoall.runtime.public": ("run", "wrap"),
    "alltoall.schedules.methods": ("Sweep", "find_schedule"),
    "alltoall.schedules.public": ("Solver", "schedule", "sweep"),
    "alltoall.settings": ("DesignSettings", "RouteSettings", "ScheduleSettings", "SolveSettings"),
    "alltoall.simulation.public": ("simulate",),
    "alltoall.simulation.report": ("Simulation",),
    "alltoall.topologies.families": ("Family", "register_family"),
    "alltoall.topologies.formats": ("read_topology", "write_topology"),
    "alltoall.topologies.formats.networkx_graph": ("from_networkx", "to_networkx"),
    "alltoall.topologies.operators": (
        "drop_links",
        "drop_nodes",
        "remove_links",
        "remove_nodes",
        "scale_capacities",
        "set_capacities",
        "with_host_bandwidth",
    ),
    "alltoall.topologies.spec": ("build",),
    "alltoall.verification": ("Verified", "predict", "verify"),
    "alltoall.workloads.public": ("fft3d", "moe"),
}
"""The public names of each module; the block below says the same to checkers of types."""

MYPY = False  # What checkers of types take for true; `typing` has it too, but is slow to import.
if MYPY:
    from alltoall.check.flow import check_flow as check_flow
    from alltoall.check.flow import check_topology as check_topology
    from alltoall.check.jobs import check_job_rates as check_job_rates
    from alltoall.check.routes import check_routes as check_routes
    from alltoall.check.schedule import check_schedule as check_schedule
    from alltoall.check.template import TemplateReport as TemplateReport
    from alltoall.comparing.failures import FailureReport as FailureReport
    from alltoall.comparing.failures import FailureRow as FailureRow
    from alltoall.comparing.failures import failures as failures
    from alltoall.designs.candidate import Candidate as Candidate
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
    from alltoall.figures.run import Reproduced as Reproduced
    from alltoall.flows.bounds import cable_bound as cable_bound
    from alltoall.flows.bounds import cut_bound as cut_bound
    from alltoall.flows.bounds import distance_bound as distance_bound
    from alltoall.flows.bounds import regular_bound as regular_bound
    from alltoall.flows.description import Description as Description
    from alltoall.flows.public import describe as describe
    from alltoall.flows.public import fair_rates as fair_rates
    from alltoall.flows.public import find_flow as find_flow
    from alltoall.flows.public import solve as solve
    from alltoall.ir.answer import Bottleneck as Bottleneck
    from alltoall.ir.answer import Certificate as Certificate
    from alltoall.ir.demand import Demand as Demand
    from alltoall.ir.fabric import Fabric as Fabric
    from alltoall.ir.flow import Flow as Flow
    from alltoall.ir.flow import Status as Status
    from alltoall.ir.jobs import Job as Job
    from alltoall.ir.jobs import JobRates as JobRates
    from alltoall.ir.noun import Provenance as Provenance
    from alltoall.ir.problem import Problem as Problem
    from alltoall.ir.routes import Routes as Routes
    from alltoall.ir.schedule import Schedule as Schedule
    from alltoall.ir.summaries import summary_of as summary_of
    from alltoall.ir.topology import Topology as Topology
    from alltoall.loading import load as load
    from alltoall.lowering import Target as Target
    from alltoall.lowering.public import LoweredFiles as LoweredFiles
    from alltoall.lowering.public import lower as lower
    from alltoall.reports.page import Report as Report
    from alltoall.reports.public import report as report
    from alltoall.routes.phases import Phases as Phases
    from alltoall.routes.phases import split_phases as split_phases
    from alltoall.routes.public import route as route
    from alltoall.routes.search import FoundRoutes as FoundRoutes
    from alltoall.routes.search import find_routes as find_routes
    from alltoall.runtime.public import run as run
    from alltoall.runtime.public import wrap as wrap
    from alltoall.schedules.methods import Sweep as Sweep
    from alltoall.schedules.methods import find_schedule as find_schedule
    from alltoall.schedules.public import Solver as Solver
    from alltoall.schedules.public import schedule as schedule
    from alltoall.schedules.public import sweep as sweep
    from alltoall.settings import DesignSettings as DesignSettings
    from alltoall.settings import RouteSettings as RouteSettings
    from alltoall.settings import ScheduleSettings as ScheduleSettings
    from alltoall.settings import SolveSettings as SolveSettings
    from alltoall.simulation.public import simulate as simulate
    from alltoall.simulation.report import Simulation as Simulation
    from alltoall.topologies.families import Family as Family
    from alltoall.topologies.families import register_family as register_family
    from alltoall.topologies.formats import read_topology as read_topology
    from alltoall.topologies.formats import write_topology as write_topology
    from alltoall.topologies.formats.networkx_graph import from_networkx as from_networkx
    from alltoall.topologies.formats.networkx_graph import to_networkx as to_networkx
    from alltoall.topologies.operators import drop_links as drop_links
    from alltoall.topologies.operators import drop_nodes as drop_nodes
    from alltoall.topologies.operators import remove_links as remove_links
    from alltoall.topologies.operators import remove_nodes as remove_nodes
    from alltoall.topologies.operators import scale_capacities as scale_capacities
    from alltoall.topologies.operators import set_capacities as set_capacities
    from alltoall.topologies.operators import with_host_bandwidth as with_host_bandwidth
    from alltoall.topologies.spec import build as build
    from alltoall.verification import Verified as Verified
    from alltoall.verification import predict as predict
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
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    """List what is public, whether imported yet or not."""
    return sorted({*globals(), *_MODULE_OF})
