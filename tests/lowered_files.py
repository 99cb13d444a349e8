"""What tests ask of lowered files of any target."""

from typing import Any

from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, Options, targets_for
from alltoall.verification import verify_text
from simulator_files import READERS, check_traffic

EXECUTED = tuple(name for name in targets_for(Schedule) if name not in READERS)
"""Targets for schedules whose files `verify` executes on real bytes."""

SIMULATED = tuple(READERS)
"""Targets for schedules that are only written: their files are simulated here."""


def check_lowered(target: str, schedule: Schedule, **options: Any) -> None:
    """Lower a schedule; the file, parsed back and executed, has to do what the schedule does."""
    content = TARGETS[target].emit(schedule, Options(**options))
    if target in SIMULATED:
        check_traffic(READERS[target](content), schedule)
    else:
        assert verify_text(content, target, schedule)["correct"]
