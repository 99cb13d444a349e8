"""`alltoall run`: real bytes between real processes, checked and timed."""

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import columns, show
from alltoall.ir.quantities import rate_in_words
from alltoall.runtime.bench import Report, Row
from alltoall.runtime.launch import RunSettings
from alltoall.runtime.public import USUAL, run
from alltoall.testbed.report import BedReport, BedRow, SharedReport

HEADER = ("shard B", "size B", "time us", "min us", "max us", "algbw GB/s", "busbw GB/s")
NATIVE_HEADER = ("time us", "algbw GB/s", "busbw GB/s", "ratio")
"""The columns of OSU (shard, time, min, max) and of nccl-tests (size, time, algbw, busbw)."""

BED_HEADER = ("shard B", "time s", "MB/s", "bound MB/s", "fraction", "steal", "resent")
BED_NATIVE = ("time s", "MB/s", "ratio")
"""The columns of a run on a testbed."""

SHARED_HEADER = ("alone s", "together s", "repeated", "file")
"""The columns of jobs that share a testbed."""

UNEQUAL = "# a short job was repeated beside a longer one, so together more bytes moved at a time"

NOT_EMULATED = (
    "ranks share this machine's memory and no link is emulated: this times software, not a topology"
)
"""Caveat printed above timing tables."""


def _tell(report: Report | BedReport | SharedReport, call: VerbCall) -> None:
    given = call.given
    usual = USUAL.get(given["on"], RunSettings()).iterations
    asked = {key: given[key] for key in ("on", "sync", "iterations")}
    if given["iterations"] is None:
        asked["iterations"] = usual
    if isinstance(report, SharedReport):
        lines = shared_table(report)
    else:
        lines = bed_table(report) if isinstance(report, BedReport) else table(report)
    facts = {"schedule": given["subject"], "valid": True, **asked, **report.to_json()}
    show(facts, call.json, {"": lines})


def bed_table(report: BedReport) -> list[str]:
    """Return the table of a run on a testbed."""
    beside = ("of load",) if report.rows[0].load_fraction is not None else ()
    header = (*BED_HEADER, *(BED_NATIVE if report.native else beside))
    lines = [
        f"# {report.ranks} ranks on {report.topology}, links of {rate_in_words(report.rate)}; "
        f"{report.runtime}",
        "# every byte is as it must be, and as many crossed every link as should have",
        "# median time of the slowest rank; fraction of the certified bound (N-1) f b"
        + (f"; right of the bar is {report.native}" if report.native else ""),
        *columns([header, *map(_bed_cells, report.rows)], bar=len(BED_HEADER)),
    ]
    found = report.recovery
    if found is not None:
        lines += [
            f"# {found.cable} was cut; after {found.ended:.1f} s the run under way had ended: "
            f"{found.said}",
            f"# solved for the rest after {found.solved:.1f} s, installed after "
            f"{found.installed:.1f} s, all-to-alls complete and checked after "
            f"{found.complete:.1f} s",
        ]
    return lines


def shared_table(report: SharedReport) -> list[str]:
    """Return the table of jobs that share a testbed."""
    saved = 1 - 1 / report.ratio
    rows = [
        (f"{job.alone_seconds:.4f}", f"{job.together_seconds:.4f}", str(job.iterations), job.file)
        for job in report.jobs
    ]
    return [
        f"# {report.ranks} ranks of each job on {report.topology}, links of "
        f"{rate_in_words(report.rate)}, shards of {report.bytes} B; {report.runtime}",
        "# every byte is as it must be, and as many crossed every link as should have",
        "# median time of the slowest rank, of each job alone, and while all run as they are",
        *([UNEQUAL] if len({job.iterations for job in report.jobs}) > 1 else []),
        *columns([SHARED_HEADER, *rows], words=[-1]),
        f"# together {report.together_seconds:.4f} s, the slowest; by one joint schedule "
        f"{report.joint_seconds:.4f} s, {abs(saved):.1%} {'less' if saved >= 0 else 'more'}; "
        f"certified bound {report.bound_seconds:.4f} s",
        f"# steal {report.steal:.1%}; together {report.retransmits} resent, {report.drops} dropped",
    ]


def _bed_cells(row: BedRow) -> list[str]:
    rates = [f"{rate / 1e6:.3f}" for rate in (row.throughput, row.bound_throughput)]
    cells = [str(row.bytes), f"{row.seconds:.4f}", *rates, f"{row.fraction:.3f}"]
    cells += [f"{row.steal:.1%}", str(row.retransmits)]
    if row.load_fraction is not None:
        return [*cells, f"{row.load_fraction:.3f}"]
    if row.native_seconds is None or row.native_throughput is None:
        return cells
    native = [f"{row.native_seconds:.4f}", f"{row.native_throughput / 1e6:.3f}"]
    return [*cells, *native, f"{row.ratio:.2f}"]


def table(report: Report) -> list[str]:
    """Return the table of a run."""
    beside = f"; right of the bar is {report.native}" if report.native else ""
    header = (*HEADER, *(NATIVE_HEADER if report.native else ()))
    return [
        f"# {report.ranks} ranks, {report.runtime}; every byte of every size is as it must be",
        f"# {NOT_EMULATED}",
        f"# times of the slowest rank; busbw is the paper's throughput, (N-1) shard/time{beside}",
        *columns([header, *map(_cells, report.rows)], bar=len(HEADER)),
    ]


def _cells(row: Row) -> list[str]:
    ours, native = row.ours, row.native
    cells = [str(row.bytes), str(row.size)]
    cells += [f"{seconds * 1e6:.1f}" for seconds in (ours.mean, ours.least, ours.most)]
    cells += [f"{rate / 1e9:.3f}" for rate in (ours.algbw, ours.busbw)]
    if native is None:
        return cells
    rates = [f"{rate / 1e9:.3f}" for rate in (native.algbw, native.busbw)]
    return [*cells, f"{native.mean * 1e6:.1f}", *rates, f"{row.ratio:.2f}"]


run_verb = verb_of(run, _tell, "json")
