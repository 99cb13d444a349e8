"""`alltoall report`: files as one HTML page."""

from typing import Any

from alltoall.cli.options import VerbCall, verb_of
from alltoall.cli.show import Lines, deliver
from alltoall.ir.words import counted
from alltoall.reports.page import Report
from alltoall.reports.public import report


def _tell(page: Report, call: VerbCall) -> None:
    summary = page.summary()
    deliver(summary, call.json, _lines(summary), {call.path("output"): lambda: page.html})


def _lines(summary: dict[str, Any]) -> Lines:
    answers = [
        f"{each['time']:.9g} by {each['method']}, {each['name']}" for each in summary["answers"]
    ]
    lines: Lines = {
        "page": summary["title"],
        "topology": summary["topologies"],
        "time": answers,
        "runs": counted(summary["runs"], "run") if summary["runs"] else "",
        "size": f"{summary['bytes'] / 1000:.0f} KB",
    }
    return {label: text for label, text in lines.items() if text}


report_verb = verb_of(report, _tell, "json", output="report.html")
