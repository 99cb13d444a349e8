"""The checker of each kind of answer."""

from collections.abc import Callable
from typing import Any

from alltoall.check.flow import TOLERANCE, FlowReport, check_flow
from alltoall.check.routes import RoutesReport, check_routes
from alltoall.check.schedule import ScheduleReport, check_schedule
from alltoall.ir.flow import Flow
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule

CHECKERS: dict[type, Callable[[Any, float], FlowReport | RoutesReport | ScheduleReport]] = {
    Flow: check_flow,
    Routes: check_routes,
    Schedule: check_schedule,
}


def check_answer(
    answer: Flow | Routes | Schedule, tolerance: float = TOLERANCE
) -> FlowReport | RoutesReport | ScheduleReport:
    """Check an answer by the checker of its kind; raise if it is wrong."""
    kind = next(kind for kind in CHECKERS if isinstance(answer, kind))
    return CHECKERS[kind](answer, tolerance)
