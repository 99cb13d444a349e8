"""A failure drill: cut a cable during an all-to-all, and continue on the other links."""

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from alltoall.errors import VerificationError
from alltoall.testbed.namespaces import Bed, counted, cut, reroute
from alltoall.testbed.report import BedReport, Recovery

LOOK_SECONDS = 0.1
"""Polling interval for the first bytes."""

Run = Callable[[Bed], BedReport]


def drill(
    bed: Bed, ends: tuple[int, int], moved: int, first: Run, solve: Callable[[], Run]
) -> BedReport:
    """Cut a cable once `first` has sent so many bytes; return the report of the new answer.

    `solve` is called after the cut and returns the work for the remaining links.
    """
    said: list[str] = []
    ended: list[float] = []

    def under_way() -> None:
        try:
            first(bed)
        except VerificationError as error:
            said.append("; ".join((*error.violations, *error.quoted)))
        ended.append(time.monotonic())

    runner = threading.Thread(target=under_way, daemon=True)
    before = sum(counted(bed).sent.values())
    runner.start()
    while runner.is_alive() and sum(counted(bed).sent.values()) - before < moved:
        time.sleep(LOOK_SECONDS)
    began = time.monotonic()
    left = cut(bed, ends)
    again = solve()
    solved = time.monotonic()
    runner.join()
    reroute(left)
    installed = time.monotonic()
    report = again(left)
    complete = time.monotonic()
    if not said:
        names = " and ".join(bed.plan.topology.node_name(node) for node in ends)
        raise VerificationError(
            f"the run on {bed.plan.topology.name}",
            [f"it was over before the cable between {names} was cut; take larger shards"],
        )
    recovery = Recovery(
        cable="-".join(bed.plan.topology.node_name(node) for node in ends),
        said=said[0],
        ended=ended[0] - began,
        solved=solved - began,
        installed=installed - began,
        complete=complete - began,
    )
    return replace(report, recovery=recovery)
