"""The content of a page as plain values: every file, its topology, and next commands.

Answers to one problem are compared with the best bound that any of them proves. All answers share
the room in a page.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from alltoall.check.answers import check_answer
from alltoall.check.flow import check_topology
from alltoall.errors import UsageError
from alltoall.ir.arrays import Ints
from alltoall.ir.fabric import Rate
from alltoall.ir.names import short_names
from alltoall.ir.problem import Problem
from alltoall.ir.quantities import rate_in_words
from alltoall.ir.topology import Topology
from alltoall.reports.answers import Answer, answer_content, topology_content
from alltoall.reports.diagram import Diagram, draw_topology
from alltoall.reports.next_commands import next_commands
from alltoall.reports.runs import Run
from alltoall.routes.baselines.tables import shortest_path_time

MOST_ENTRIES = 64
"""Most files on one page."""

COMPARED = ("name", "kind", "method", "topology", "time", "bound", "gap")
"""The facts of a page about every answer."""


@dataclass(frozen=True, eq=False)
class Entry:
    """A subject of a page: its name, its file if any, and the SPEC that builds its topology."""

    name: str
    noun: Answer | Topology | Run
    path: str | None
    spec: str | None


def content_of(
    entries: Sequence[Entry], title: str | None, rate: Rate | None, sources: Sequence[str]
) -> dict[str, Any]:
    """Check all subjects and return the content of their page."""
    if len(entries) > MOST_ENTRIES:
        raise UsageError(f"{len(entries)} files; expected at most {MOST_ENTRIES} on one page")
    page = _Page(rate, sources, max(1, sum(isinstance(each.noun, Answer) for each in entries)))
    runs = [
        {"name": each.name, **each.noun.content()} for each in entries if isinstance(each.noun, Run)
    ]
    views = [page.view(each, each.noun) for each in entries if not isinstance(each.noun, Run)]
    _compare(views)
    names = [each.name for each in entries]
    subject = f"All-to-all on {len(page.diagrams)} topologies"
    if len(page.diagrams) < 2:
        only = [f"All-to-all on {each.topology.name}" for each in page.diagrams]
        subject = next(iter(only), "All-to-all: measured and predicted")
    return {
        "title": title or subject,
        "names": dict(zip(names, short_names(names), strict=True)),
        "fabrics": [each.content() for each in page.diagrams],
        "views": views,
        "runs": runs,
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


class _Page:
    """The topologies and problems of a page, each kept once."""

    def __init__(self, rate: Rate | None, sources: Sequence[str], sharing: int) -> None:
        self.rate, self.sources, self.sharing = rate, sources, sharing
        self.diagrams: list[Diagram] = []
        self.problems: list[tuple[Problem, float | None]] = []

    def view(self, entry: Entry, noun: Answer | Topology) -> dict[str, Any]:
        """Check an answer or a topology and return its part of the page."""
        shared = {"name": entry.name, "next": _next(entry, self.rate)}
        if isinstance(noun, Topology):
            check_topology(noun)
            return {**shared, "fabric": self._place(noun), **topology_content(noun)}
        check_answer(noun)
        topology = noun.problem.topology
        place, problem = self._place(topology), self._problem(noun.problem)
        content = answer_content(
            noun,
            self.diagrams[place],
            _positions(topology, self.sources),
            self.rate,
            self.problems[problem][1],
            self.sharing,
        )
        return {**shared, "fabric": place, "problem": problem, **content}

    def _place(self, topology: Topology) -> int:
        """Return the index of a topology's diagram; other node names need another diagram."""
        for index, each in enumerate(self.diagrams):
            if each.topology == topology and each.topology.names == topology.names:
                return index
        self.diagrams.append(draw_topology(topology))
        return len(self.diagrams) - 1

    def _problem(self, problem: Problem) -> int:
        """Return the index of a problem; its baseline is computed once."""
        for index, (each, _) in enumerate(self.problems):
            if each == problem:
                return index
        self.problems.append((problem, shortest_path_time(problem)))
        return len(self.problems) - 1


def _positions(topology: Topology, sources: Sequence[str]) -> Ints:
    """Return the terminals of names or numbers, each once."""
    nodes = [topology.node_of(each) for each in sources]
    lost = [node for node in nodes if topology.position[node] < 0]
    if lost:
        raise UsageError(
            f"node {topology.node_name(lost[0])} of {topology.name} is no terminal, so nothing "
            "begins there; expected a node that sends"
        )
    return np.unique(topology.position[np.array(nodes, dtype=np.int64)])


def _compare(views: Sequence[dict[str, Any]]) -> None:
    """Add to every answer its time over the best bound proven of its problem."""
    best: dict[int, float] = {}
    answers = [view for view in views if "problem" in view]
    for view in answers:
        best[view["problem"]] = max(best.get(view["problem"], 0.0), view["bound"] or 0.0)
    for view in answers:
        bound = best[view["problem"]]
        view["ratio"] = view["time"] / bound if bound > 0 else None


def _next(entry: Entry, rate: Rate | None) -> list[dict[str, str]]:
    """Return the next commands for a file."""
    if entry.path is None or isinstance(entry.noun, Run):
        return []
    words = rate_in_words(rate) if isinstance(rate, float | int) else rate
    return next_commands(entry.noun, entry.path, entry.spec, words)
