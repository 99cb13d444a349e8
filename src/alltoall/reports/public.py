"""`alltoall.report`: files and nouns as one HTML page."""

import re
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import TypeAlias

from alltoall.errors import AlltoallError, UsageError
from alltoall.ir.fabric import Rate
from alltoall.ir.flow import Flow
from alltoall.ir.problem import Problem
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.ir.topology import Topology
from alltoall.ir.words import kind_in_words
from alltoall.loading import load
from alltoall.reports.content import Entry, content_of, facts_of
from alltoall.reports.page import Report, page_of
from alltoall.reports.runs import read_run
from alltoall.topologies.spec import build

Subject: TypeAlias = str | PathLike[str] | Flow | Routes | Schedule | Topology | Problem
"""A file, or the noun in it."""


def report(
    subjects: Subject | Sequence[Subject],
    *,
    title: str | None = None,
    link_bandwidth: Rate | None = None,
    sources: Sequence[str | int] | None = None,
) -> Report:
    """Show files as one page: numbers, proof, network, loads.

    The page is one HTML file that works offline: the answer beside shortest-path routing and the
    proven maximum, the network with link loads and the cut that proves the bound, a player of
    schedules, the paths of every pair, a comparison of all answers to one problem, and the next
    commands. All files are verified first.

    >>> import alltoall
    >>> page = alltoall.report(alltoall.solve("torus:3x3"))
    >>> page.save("torus.html")
    >>> [(each["kind"], round(each["time"], 6)) for each in page.facts["answers"]]
    [('flow', 3.0)]

    """
    given = (
        list(subjects)
        if isinstance(subjects, Sequence) and not isinstance(subjects, str)
        else [subjects]
    )
    if not given:
        raise UsageError("nothing to report on; expected a flow, routes, a schedule, or a file")
    entries = [_entry(each, index) for index, each in enumerate(given)]
    content = content_of(entries, title, link_bandwidth, [str(each) for each in sources or ()])
    return Report(page_of(content), facts_of(content))


def _entry(subject: Subject, index: int) -> Entry:
    """Return a subject with its name on the page."""
    if not isinstance(subject, str | PathLike):
        noun = subject.topology if isinstance(subject, Problem) else subject
        return Entry(f"{type(noun).__name__.lower()} {index + 1}", noun, None, _spec(noun))
    path = Path(subject)
    run = read_run(path)
    if run is not None:
        return Entry(str(path), run, str(path), None)
    found = load(path)
    if isinstance(found, Problem):
        found = found.topology
    if not isinstance(found, Flow | Routes | Schedule | Topology):
        raise UsageError(
            f"{path}: {kind_in_words(found)}; expected a flow, routes, a schedule, a topology, "
            "or the JSON of `alltoall run` or `simulate`"
        )
    return Entry(str(path), found, str(path), _spec(found))


def _spec(noun: Flow | Routes | Schedule | Topology) -> str | None:
    """Return the SPEC in the name of a topology, if it builds that topology."""
    topology = noun if isinstance(noun, Topology) else noun.problem.topology
    # Any file can claim any name: never build a larger topology than it has.
    if any(int(each) > topology.nodes for each in re.findall(r"[0-9]+", topology.name)):
        return None
    try:
        return topology.name if build(topology.name) == topology else None
    except AlltoallError:
        return None
