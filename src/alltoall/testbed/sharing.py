"""Several jobs on one fabric: each alone, all uncoordinated at once, and by one joint schedule."""

import tempfile
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import replace
from math import ceil
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any

from alltoall.errors import VerificationError
from alltoall.runtime.launch import RunSettings
from alltoall.runtime.metered import Reading
from alltoall.testbed.launch import BedWork, run_on_bed, sent_otherwise, told
from alltoall.testbed.namespaces import Bed, counted
from alltoall.testbed.report import SharedJob, SharedReport


def share(
    bed: Bed, works: Sequence[BedWork], joint: BedWork, settings: RunSettings, through: str
) -> SharedReport:
    """Run jobs of one size on a fabric, and their joint schedule; raise as for one job."""
    alone = [run_on_bed(bed, work, settings, through, native=False) for work in works]
    own = [report.rows[0].seconds for report in alone]
    # All are to be under way for about as long, so that none is timed on a fabric that is idle.
    times = [ceil(settings.iterations * max(own) / each) for each in own]
    before = counted(bed)
    readings = _together(bed, works, times, settings, through)
    after = counted(bed)
    wrong = sent_otherwise(
        bed, list(zip(works, readings, strict=True)), settings.warmup, before, after
    )
    if violations := [*(each for found in readings for each in found.violations), *wrong]:
        raise VerificationError(_subject(bed, works), violations)
    jointly = run_on_bed(bed, joint, settings, through, native=False)
    jobs = tuple(
        SharedJob(work.name, seconds, median(reading.seconds), len(reading.seconds))
        for work, seconds, reading in zip(works, own, readings, strict=True)
    )
    together, after_all = max(job.together_seconds for job in jobs), jointly.rows[0].seconds
    size = settings.sizes[0]
    same = ("fabric", "topology", "ranks", "rate", "runtime", "links_emulated", "rows")
    return SharedReport(
        **{key: getattr(jointly, key) for key in same},
        bytes=size,
        jobs=jobs,
        together_seconds=together,
        joint_seconds=after_all,
        ratio=together / after_all,
        bound_seconds=joint.bound * size / jointly.rate,
        counters_ok=True,
        steal=max(
            *(report.rows[0].steal for report in (*alone, jointly)),
            *(max(reading.steal) for reading in readings),
        ),
        retransmits=after.retransmits - before.retransmits,
        drops=after.drops - before.drops,
    )


def _together(
    bed: Bed, works: Sequence[BedWork], times: Sequence[int], settings: RunSettings, through: str
) -> list[Reading]:
    """Run jobs at once, each repeated as given; all end if one fails."""
    failed = Event()
    subject = _subject(bed, works)

    def watch() -> str | None:
        return "another job has failed" if failed.is_set() else None

    with (
        tempfile.TemporaryDirectory(prefix="alltoall-") as folder,
        ThreadPoolExecutor(len(works)) as pool,
    ):
        gates = [Path(folder) / f"{job}.ready" for job in range(len(works))]

        def run(job: int) -> dict[str, Any]:
            repeated = replace(settings, iterations=times[job])
            first = [gates[job], *gates[:job], *gates[job + 1 :]]
            return told(bed, works[job], repeated, through, "ours", subject, first, watch)

        jobs = [pool.submit(run, job) for job in range(len(works))]
        try:
            # The first failure is the reason of the others.
            for each in wait(jobs, return_when=FIRST_EXCEPTION).done:
                each.result()
        except BaseException:
            failed.set()
            raise
        return [Reading(**each.result()["readings"][0]) for each in jobs]


def _subject(bed: Bed, works: Sequence[BedWork]) -> str:
    names = ", ".join(work.name for work in works)
    return f"the run of {names} together on {bed.plan.topology.name}"
