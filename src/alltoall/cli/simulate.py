"""`alltoall simulate`: predicted times of a schedule or routes."""

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import columns, show
from alltoall.ir.quantities import rate_in_words
from alltoall.simulation.public import simulate
from alltoall.simulation.report import JobRow, Row, Simulation

HEADER = ("shard B", "time us", "bound us", "fraction", "GB/s", "at most")
JOB_HEADER = ("shard B", "alone us", "together us", "bound us", "slowdown", "")


def _tell(found: Simulation, call: VerbCall) -> None:
    show({"file": call.given["subject"], **found.to_json()}, call.json, {"": table(found)})


def table(found: Simulation) -> list[str]:
    """Return the table of predicted times."""
    rates = sorted({rate_in_words(rate) for rate in found.link_rates})
    fine = f", resolution {found.resolution:g}" if found.resolution else ""
    return [
        f"# {found.topology}: {found.terminals} terminals, links of {' to '.join(rates)}; "
        f"{found.model}{fine}",
        "# the bound is certified: no all-to-all takes less; GB/s is what a terminal sends",
        *columns([HEADER, *map(_cells, found.rows)]),
        *(_table_of_jobs(found) if found.jobs else ()),
    ]


def _table_of_jobs(found: Simulation) -> list[str]:
    """Return the times of several jobs, and the saving of coordination."""
    lines = ["# jobs that share the links, each by its own routes, nobody coordinates them"]
    if found.rows != found.together:
        pairs = zip(found.together, found.rows, strict=True)
        ratios = ", ".join(f"{each.seconds / joint.seconds:.4f}" for each, joint in pairs)
        lines.append(f"# above is the joint one; uncoordinated all take {ratios} times as long")
    return [*lines, *columns([JOB_HEADER, *map(_job_cells, found.jobs)], words=[-1])]


def _job_cells(row: JobRow) -> list[str]:
    times = [f"{each * 1e6:.2f}" for each in (row.alone, row.together, row.bound_seconds)]
    return [str(row.bytes), *times, f"{row.slowdown:.4f}", row.job]


def _cells(row: Row) -> list[str]:
    times = [f"{seconds * 1e6:.2f}" for seconds in (row.seconds, row.bound_seconds)]
    rates = [f"{rate / 1e9:.3f}" for rate in (row.throughput, row.bound_throughput)]
    return [str(row.bytes), *times, f"{row.fraction:.4f}", *rates]


simulate_verb = verb_of(simulate, _tell, "json")
