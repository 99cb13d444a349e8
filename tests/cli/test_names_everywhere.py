"""Where nodes have names, no text, table or file name of any verb has their numbers instead."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.ir.fabric import Fabric
from alltoall.ir.routes import Routes
from alltoall.ir.schedule import Schedule
from alltoall.lowering import TARGETS, targets_for
from alltoall.routes import ROUTERS
from alltoall.topologies.formats import write_topology
from command_line import Outcome, Run

NAMES = ("gpu-18", "gpu-20", "gpu-05", "gpu-06", "gpu-07", "leaf:a/b")
"""Numbers in names that are not those of the nodes, and a name that no file can have."""

CABLES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (5, 0), (5, 2)]

INDEX = re.compile(r"\b(?:node|terminal|link|cable|switch)s?[ -]\d|(?<![\w-])\d+ ?-[->] ?\d")
"""A number where a name belongs."""


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """Return a file of a named topology with a switch."""
    path = tmp_path / "lab.json"
    write_topology(topology(), path)
    return path


def topology() -> alltoall.Topology:
    """Return five GPUs in a ring, and a switch between two of them."""
    return alltoall.Topology.from_edges("lab", 6, CABLES, range(5), names=NAMES)


def check(found: Outcome, *codes: int) -> str:
    """Return what a call said; raise if there are numbers in it that should be names."""
    said = found.out + found.err
    assert found.code in codes, said
    assert not INDEX.search(said), INDEX.findall(said)
    return said


def test_the_pattern_finds_what_it_should() -> None:
    """The words that were printed before, and none of those that are right."""
    for wrong in (
        "link 3 (a -> b)",
        "worst, link-18-20",
        "node 4",
        "3 -> 4",
        "terminals 1",
        "3--4",
    ):
        assert INDEX.search(wrong), wrong
    for right in ("cable gpu-05 -- gpu-06", "link gpu-05 -> gpu-06", "7 links", "node gpu-18"):
        assert not INDEX.search(right), right


ANSWERS = [
    ("topology",),
    ("solve",),
    ("solve", "--remove-link", "gpu-18 -- gpu-20"),
    ("solve", "--remove-node", "gpu-06"),
    ("solve", "--drop-links", "1"),
    ("solve", "--drop-nodes", "1"),
    ("topology", "--set-capacity", "gpu-18->gpu-20=2"),
    ("solve", "--host-bandwidth", "1"),
    ("solve", "--group", "gpu-18,gpu-05"),
    *(("route", "--method", method) for method in ROUTERS.known if method != "dor"),
    ("schedule",),
    ("schedule", "--method", "list"),
]


@pytest.mark.parametrize("words", ANSWERS, ids=" ".join)
def test_answers_have_names(run: Run, lab: Path, words: tuple[str, ...]) -> None:
    """For people, and in the JSON."""
    verb, *options = words
    check(run(verb, lab, *options), 0)
    check(run(verb, lab, *options, "--json"), 0)


REFUSED = [
    ("solve", "--remove-link", "gpu-18 -- gpu-05"),
    ("solve", "--remove-link", "gpu-18 -- gpu-99"),
    ("solve", "--remove-node", "gpu-99"),
    ("solve", "--remove-node", "leaf:a/b", "--remove-node", "gpu-05", "--remove-node", "gpu-07"),
    ("solve", "--group", "gpu-18,leaf:a/b"),
    ("solve", "--group", "gpu-18,gpu-18"),
    ("solve", "--demand", "negative.json"),
    ("solve", "--demand", "own.json"),
    ("solve", "--demand", "switch.json"),
    ("solve", "--background", "full.csv"),
]


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_errors_have_names(
    run: Run, lab: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    """Whatever is wrong with the problem."""
    monkeypatch.chdir(lab.parent)
    demands: dict[str, list[list[Any]]] = {
        "negative": [["gpu-18", "gpu-20", -1]],
        "own": [["gpu-18", "gpu-18", 1]],
        "switch": [["gpu-18", "leaf:a/b", 1]],
    }
    for name, entries in demands.items():
        obj = {"format": "alltoall.demand/1", "entries": entries}
        Path(f"{name}.json").write_text(json.dumps(obj))
    Path("full.csv").write_text("gpu-18,gpu-20,1\n")
    verb, *options = words
    said = check(run(verb, lab, *options), 2, 3)
    assert any(name in said for name in NAMES), said


def test_wrong_answers_have_names(run: Run, lab: Path, tmp_path: Path) -> None:
    """What a check finds in flows, routes and schedules that are none."""
    flow, routes = alltoall.solve(topology()), alltoall.route(topology())
    schedule = alltoall.schedule(topology())
    half = routes.weight * np.where(np.arange(routes.count) == 0, 0.5, 1.0)
    wrong: dict[str, Any] = {
        "more": replace(flow, amount=flow.amount * 2),
        "less": replace(flow, amount=flow.amount * 0.5),
        "half": replace(routes, weight=half, denominator=None),
        "other": replace(routes, link=(routes.link + 1) % topology().links),
        "sent": replace(schedule, link=(schedule.link + 1) % topology().links),
        "early": replace(schedule, step=np.zeros_like(schedule.step)),
    }
    for name, answer in wrong.items():
        answer.save(tmp_path / f"{name}.json")
        check(run("verify", tmp_path / f"{name}.json"), 3, 4)


@pytest.mark.parametrize("kind", [Schedule, Routes])
def test_what_lowering_says_has_names(run: Run, lab: Path, tmp_path: Path, kind: type) -> None:
    """Of every target that takes it, or refuses it."""
    verb = ("schedule",) if kind is Schedule else ("route", "--method", "single")
    answer = tmp_path / "answer.json"
    assert run(verb[0], lab, *verb[1:], "-o", answer).code == 0
    for to in targets_for(kind):
        check(run("lower", answer, "--to", to, "-o", tmp_path / to), 0, 3)
        if TARGETS[to].read is not None and (tmp_path / to).is_file():
            check(run("verify", tmp_path / to, "--topology", lab), 0, 4)


@pytest.mark.parametrize("verb", ["route", "schedule"])
def test_files_of_failures_are_named_after_nodes(run: Run, lab: Path, verb: str) -> None:
    """Every failure is the cable or node that it names, and so is its file."""
    saved, folder = lab.parent / "healthy.json", lab.parent / "over"
    check(run(verb, lab, "-o", saved), 0)
    check(run("failures", saved, "--nodes", "1", "-o", folder), 0)
    rows = run("failures", saved, "--json").json["rows"]
    assert {row["failure"] for row in rows} == {
        f"link {NAMES[u]}-{NAMES[v]}" for u, v in map(sorted, CABLES)
    }
    safe = [name.replace(":", "%3A").replace("/", "%2F") for name in NAMES]
    stems = {path.stem for path in folder.iterdir()} - {"index"}
    assert stems <= {f"link-{safe[u]}-{safe[v]}" for u, v in map(sorted, CABLES)} | {
        f"node-{name}" for name in safe
    }
    for path in folder.iterdir():
        if path.stem != "index":
            check(run("verify", path), 0)


def test_frames_have_names() -> None:
    """Of topologies, problems, flows, routes, schedules and bottlenecks."""
    flow = alltoall.solve(topology())
    for noun in (
        *(topology(), flow.problem, flow, flow.bottleneck()),
        *(alltoall.route(topology()), alltoall.schedule(topology())),
        Fabric(topology(), 1e9),
    ):
        columns = noun._columns()
        ends = [columns[key] for key in ("tail", "head", "source", "destination") if key in columns]
        assert ends
        assert {end for column in ends for end in column} <= set(NAMES)


def test_without_names_numbers_stay() -> None:
    """There is nothing else to call them."""
    plain = replace(topology(), names=None)
    assert plain.link_name(0) == "link 0 (0 -> 1)"
    assert plain._columns()["tail"] is plain.tail
