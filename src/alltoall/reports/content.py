"""What a page shows, as plain values: every file, the topologies that they share, what to do next.

Answers to one problem are compared with the best bound that any of them proves. The room in a page
is shared by all answers on it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from alltoall.check.flow import check_topology
from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.fabric import Rate
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.reports.answers import Answer, answer_content, check, topology_content
from alltoall.reports.drawn import Drawn, drawn
from alltoall.reports.next_commands import next_commands
from alltoall.reports.runs import Run

MOST_ENTRIES = 64
"""Files on one page; more bars than that nobody compares."""

COMPARED = ("name", "kind", "method", "topology", "time", "bound", "gap")
"""What the facts of a page have of every answer."""


@dataclass(frozen=True, eq=False)
class Entry:
    """Something on a page: its name, its file if it has one, and what builds its topology."""

    name: str
    noun: Answer | Topology | Run
    path: str | None
    spec: str | None


def content_of(
    entries: Sequence[Entry], title: str | None, rate: Rate | None, sources: Sequence[str]
) -> dict[str, Any]:
    """Check what is shown; return all that the page is made from."""
    if len(entries) > MOST_ENTRIES:
        raise UsageError(f"{len(entries)} files; expected at most {MOST_ENTRIES} on one page")
    fabrics = _fabrics(entries)
    shown = [each for each in entries if not isinstance(each.noun, Run)]
    sharing = max(1, sum(isinstance(each.noun, Answer) for each in shown))
    views = [_view(each, fabrics, rate, sources, sharing) for each in shown]
    _compare(views, shown)
    return {
        "title": title or _title(fabrics),
        "names": _short_names([each.name for each in entries]),
        "fabrics": [each.content() for each in fabrics],
        "views": views,
        "runs": [
            {"name": each.name, **each.noun.content()}
            for each in entries
            if isinstance(each.noun, Run)
        ],
    }


def facts_of(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of a page that its verb prints."""
    names = [fabric["name"] for fabric in content["fabrics"]]
    answers = [
        {"topology": names[view["fabric"]]} | {key: view[key] for key in COMPARED if key in view}
        for view in content["views"]
        if view["kind"] != "topology"
    ]
    return {
        "title": content["title"],
        "topologies": names,
        "answers": answers,
        "runs": len(content["runs"]),
        "next": [each["command"] for view in content["views"] for each in view["next"]],
    }


def _topology(noun: Answer | Topology) -> Topology:
    return noun if isinstance(noun, Topology) else noun.problem.topology


def _fabrics(entries: Sequence[Entry]) -> list[Drawn]:
    """Return the topologies of all entries, each once; other names make another one."""
    found: list[Drawn] = []
    for each in entries:
        if not isinstance(each.noun, Run) and _place(found, _topology(each.noun)) is None:
            found.append(drawn(_topology(each.noun)))
    return found


def _place(fabrics: Sequence[Drawn], topology: Topology) -> int | None:
    """Return which of the drawn topologies this one is."""
    for index, each in enumerate(fabrics):
        if each.topology == topology and each.topology.names == topology.names:
            return index
    return None


def _view(
    entry: Entry,
    fabrics: Sequence[Drawn],
    rate: Rate | None,
    sources: Sequence[str],
    sharing: int,
) -> dict[str, Any]:
    """Return what the page has of one flow, routes, schedule or topology."""
    noun = entry.noun
    assert not isinstance(noun, Run)
    topology = _topology(noun)
    place = _place(fabrics, topology) or 0
    said = {"name": entry.name, "fabric": place, "next": _next(entry, rate)}
    if isinstance(noun, Topology):
        check_topology(noun)
        return {**said, **topology_content(noun)}
    check(noun)
    asked = _positions(topology, sources)
    return {**said, **answer_content(noun, fabrics[place], asked, rate, sharing)}


def _positions(topology: Topology, sources: Sequence[str]) -> Ints:
    """Return the terminals of some names or numbers, each once."""
    nodes = [topology.node_of(each) for each in sources]
    lost = [node for node in nodes if topology.position[node] < 0]
    if lost:
        raise UsageError(
            f"node {topology.node_name(lost[0])} of {topology.name} is no terminal, so nothing "
            "begins there; expected a node that sends"
        )
    return np.unique(topology.position[np.array(nodes, dtype=np.int64)])


def _compare(views: Sequence[dict[str, Any]], shown: Sequence[Entry]) -> None:
    """Add to every answer which problem it solves, and the best bound that is proven of that."""
    problems: list[Problem] = []
    for view, entry in zip(views, shown, strict=True):
        if isinstance(entry.noun, Answer):
            known = [index for index, each in enumerate(problems) if each == entry.noun.problem]
            view["problem"] = known[0] if known else len(problems)
            problems += [] if known else [entry.noun.problem]
    for index in range(len(problems)):
        same = [view for view in views if view.get("problem") == index]
        best = max(view["bound"] or 0.0 for view in same)
        for view in same:
            view["ratio"] = view["time"] / best if best > 0 else None


def _title(fabrics: Sequence[Drawn]) -> str:
    if not fabrics:
        return "All-to-all: measured and predicted"
    if len(fabrics) == 1:
        return f"All-to-all on {fabrics[0].topology.name}"
    return f"All-to-all on {len(fabrics)} topologies"


def _short_names(names: Sequence[str]) -> dict[str, str]:
    """Return what files are called on the page: without folders, unless two are alike then."""
    short = [Path(name).name or name for name in names]
    return {
        name: brief if short.count(brief) == 1 else name
        for name, brief in zip(names, short, strict=True)
    }


def _next(entry: Entry, rate: Rate | None) -> list[dict[str, str]]:
    """Return the commands that go on from a file."""
    if entry.path is None or isinstance(entry.noun, Run):
        return []
    words = rate_in_words(rate) if isinstance(rate, float | int) else rate
    found = next_commands(entry.noun, entry.path, entry.spec, words)
    return [{"why": each.why, "command": str(each)} for each in found]
