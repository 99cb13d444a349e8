"""Bandwidth-optimal all-to-all on direct-connect networks, with a proof in every answer.

>>> import a2aflow
>>> flow = a2aflow.solve("torus:3x3x3")
>>> round(flow.time, 6), round(flow.bound, 6)
(9.0, 9.0)

One function per verb, each from one noun to the next; docs/library.md goes through them:

    design      which network to build, certified beside every family of its size
    describe    what a topology is, and what it can carry at most
    solve       the best rate, as a `Flow` with its certificate
    route       weighted or single paths, as `Routes` with layers that cannot deadlock
    schedule    whole chunks in steps, as a `Schedule`
    lower       the files of runtimes and fabrics, proven before they are returned
    simulate    predicted times, message by message or as a fluid
    run         real bytes between processes, checked and timed
    wrap        the environment in which an unmodified MPI program uses schedules
    fft3d, moe  programs that an all-to-all decides, checked and timed
    verify      an independent check of any file or noun
    reproduce   figures of the paper, measured again
    report      a page to look at, of any of these
    load        any file, back as the noun that it stands for

A name is imported when it is used, so `import a2aflow` loads nothing, and `a2aflow.verify` no
solver: the command line has to hear Ctrl-C before it imports anything that takes long.
"""

import importlib as _importlib

__version__ = "0.1.0"

_WHERE = {
    "a2aflow.check.flow": ("check_flow", "check_topology"),
    "a2aflow.check.jobs": ("check_job_rates",),
    "a2aflow.check.routes": ("check_routes",),
    "a2aflow.check.schedule": ("check_schedule",),
    "a2aflow.check.template": ("TemplateReport",),
    "a2aflow.designs.candidate": ("Candidate",),
    "a2aflow.designs.design": ("Design",),
    "a2aflow.designs.public": ("design",),
    "a2aflow.errors": (
        "A2AFlowError",
        "InputError",
        "MissingComponentError",
        "TimeLimitError",
        "UsageError",
        "VerificationError",
    ),
    "a2aflow.extensions": ("register_method", "register_target"),
    "a2aflow.figures.public": ("reproduce",),
    "a2aflow.figures.run": ("Reproduced",),
    "a2aflow.flows.bounds": ("cable_bound", "cut_bound", "distance_bound", "regular_bound"),
    "a2aflow.flows.description": ("Description",),
    "a2aflow.flows.public": ("describe", "fair_rates", "find_flow", "solve"),
    "a2aflow.ir.bottleneck": ("Bottleneck",),
    "a2aflow.ir.certificate": ("Certificate",),
    "a2aflow.ir.demand": ("Demand",),
    "a2aflow.ir.fabric": ("Fabric",),
    "a2aflow.ir.flow": ("Flow", "Status"),
    "a2aflow.ir.jobs": ("Job", "JobRates"),
    "a2aflow.ir.problem": ("Problem",),
    "a2aflow.ir.provenance": ("Provenance",),
    "a2aflow.ir.routes": ("Routes",),
    "a2aflow.ir.schedule": ("Schedule",),
    "a2aflow.ir.summaries": ("summary_of",),
    "a2aflow.ir.topology": ("Topology",),
    "a2aflow.loading": ("load",),
    "a2aflow.lowering": ("Target",),
    "a2aflow.lowering.public": ("LoweredFiles", "lower"),
    "a2aflow.reports.page": ("Report",),
    "a2aflow.reports.public": ("report",),
    "a2aflow.routes.phases": ("Phases", "split_phases"),
    "a2aflow.routes.public": ("route",),
    "a2aflow.routes.search": ("FoundRoutes", "find_routes"),
    "a2aflow.runtime.public": ("run", "wrap"),
    "a2aflow.schedules.methods": ("find_schedule",),
    "a2aflow.schedules.public": ("Solver", "schedule", "sweep"),
    "a2aflow.schedules.sweep": ("Sweep",),
    "a2aflow.settings": ("DesignSettings", "RouteSettings", "ScheduleSettings", "SolveSettings"),
    "a2aflow.simulation.public": ("simulate",),
    "a2aflow.simulation.report": ("Simulation",),
    "a2aflow.topologies.families": ("Family", "register_family"),
    "a2aflow.topologies.formats": ("read_topology", "write_topology"),
    "a2aflow.topologies.formats.networkx_graph": ("from_networkx", "to_networkx"),
    "a2aflow.topologies.operators": (
        "drop_links",
        "drop_nodes",
        "remove_links",
        "remove_nodes",
        "scale_capacities",
        "set_capacities",
        "with_host_bandwidth",
    ),
    "a2aflow.topologies.spec": ("build",),
    "a2aflow.verification": ("Verified", "predict", "verify"),
    "a2aflow.workloads.public": ("fft3d", "moe"),
}
"""The public names of each module; the block below says the same to checkers of types."""

MYPY = False  # What checkers of types take for true; `typing` has it too, but is slow to import.
if MYPY:
    from a2aflow.check.flow import check_flow as check_flow
    from a2aflow.check.flow import check_topology as check_topology
    from a2aflow.check.jobs import check_job_rates as check_job_rates
    from a2aflow.check.routes import check_routes as check_routes
    from a2aflow.check.schedule import check_schedule as check_schedule
    from a2aflow.check.template import TemplateReport as TemplateReport
    from a2aflow.designs.candidate import Candidate as Candidate
    from a2aflow.designs.design import Design as Design
    from a2aflow.designs.public import design as design
    from a2aflow.errors import A2AFlowError as A2AFlowError
    from a2aflow.errors import InputError as InputError
    from a2aflow.errors import MissingComponentError as MissingComponentError
    from a2aflow.errors import TimeLimitError as TimeLimitError
    from a2aflow.errors import UsageError as UsageError
    from a2aflow.errors import VerificationError as VerificationError
    from a2aflow.extensions import register_method as register_method
    from a2aflow.extensions import register_target as register_target
    from a2aflow.figures.public import reproduce as reproduce
    from a2aflow.figures.run import Reproduced as Reproduced
    from a2aflow.flows.bounds import cable_bound as cable_bound
    from a2aflow.flows.bounds import cut_bound as cut_bound
    from a2aflow.flows.bounds import distance_bound as distance_bound
    from a2aflow.flows.bounds import regular_bound as regular_bound
    from a2aflow.flows.description import Description as Description
    from a2aflow.flows.public import describe as describe
    from a2aflow.flows.public import fair_rates as fair_rates
    from a2aflow.flows.public import find_flow as find_flow
    from a2aflow.flows.public import solve as solve
    from a2aflow.ir.bottleneck import Bottleneck as Bottleneck
    from a2aflow.ir.certificate import Certificate as Certificate
    from a2aflow.ir.demand import Demand as Demand
    from a2aflow.ir.fabric import Fabric as Fabric
    from a2aflow.ir.flow import Flow as Flow
    from a2aflow.ir.flow import Status as Status
    from a2aflow.ir.jobs import Job as Job
    from a2aflow.ir.jobs import JobRates as JobRates
    from a2aflow.ir.problem import Problem as Problem
    from a2aflow.ir.provenance import Provenance as Provenance
    from a2aflow.ir.routes import Routes as Routes
    from a2aflow.ir.schedule import Schedule as Schedule
    from a2aflow.ir.summaries import summary_of as summary_of
    from a2aflow.ir.topology import Topology as Topology
    from a2aflow.loading import load as load
    from a2aflow.lowering import Target as Target
    from a2aflow.lowering.public import LoweredFiles as LoweredFiles
    from a2aflow.lowering.public import lower as lower
    from a2aflow.reports.page import Report as Report
    from a2aflow.reports.public import report as report
    from a2aflow.routes.phases import Phases as Phases
    from a2aflow.routes.phases import split_phases as split_phases
    from a2aflow.routes.public import route as route
    from a2aflow.routes.search import FoundRoutes as FoundRoutes
    from a2aflow.routes.search import find_routes as find_routes
    from a2aflow.runtime.public import run as run
    from a2aflow.runtime.public import wrap as wrap
    from a2aflow.schedules.methods import find_schedule as find_schedule
    from a2aflow.schedules.public import Solver as Solver
    from a2aflow.schedules.public import schedule as schedule
    from a2aflow.schedules.public import sweep as sweep
    from a2aflow.schedules.sweep import Sweep as Sweep
    from a2aflow.settings import DesignSettings as DesignSettings
    from a2aflow.settings import RouteSettings as RouteSettings
    from a2aflow.settings import ScheduleSettings as ScheduleSettings
    from a2aflow.settings import SolveSettings as SolveSettings
    from a2aflow.simulation.public import simulate as simulate
    from a2aflow.simulation.report import Simulation as Simulation
    from a2aflow.topologies.families import Family as Family
    from a2aflow.topologies.families import register_family as register_family
    from a2aflow.topologies.formats import read_topology as read_topology
    from a2aflow.topologies.formats import write_topology as write_topology
    from a2aflow.topologies.formats.networkx_graph import from_networkx as from_networkx
    from a2aflow.topologies.formats.networkx_graph import to_networkx as to_networkx
    from a2aflow.topologies.operators import drop_links as drop_links
    from a2aflow.topologies.operators import drop_nodes as drop_nodes
    from a2aflow.topologies.operators import remove_links as remove_links
    from a2aflow.topologies.operators import remove_nodes as remove_nodes
    from a2aflow.topologies.operators import scale_capacities as scale_capacities
    from a2aflow.topologies.operators import set_capacities as set_capacities
    from a2aflow.topologies.operators import with_host_bandwidth as with_host_bandwidth
    from a2aflow.topologies.spec import build as build
    from a2aflow.verification import Verified as Verified
    from a2aflow.verification import predict as predict
    from a2aflow.verification import verify as verify
    from a2aflow.workloads.public import fft3d as fft3d
    from a2aflow.workloads.public import moe as moe
del MYPY

_MODULE_OF = {name: module for module, names in _WHERE.items() for name in names}
__all__ = sorted(_MODULE_OF)  # noqa: PLE0605


def __getattr__(name: str) -> object:
    """Import a public name when it is first used."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found = getattr(_importlib.import_module(_MODULE_OF[name]), name)
    return found


def __dir__() -> list[str]:
    """List what is public, whether imported yet or not."""
    return sorted({*globals(), *_MODULE_OF})
