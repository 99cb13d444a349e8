"""The public names, and the modules that they are imported from when used."""

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

__all__: list[str]
__version__: str
_MODULE_OF: dict[str, str]
