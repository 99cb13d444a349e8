"""The library does what the verbs do, from whatever a caller has, and returns nouns."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import alltoall
from alltoall.cli import testbed
from alltoall.cli.parser import command_for
from alltoall.cli.verbs import VERBS
from alltoall.errors import DemandError, FormatError, UsageError, VerificationError
from alltoall.ir.answer import Certificate
from alltoall.ir.program import Program
from alltoall.ir.quantities import parse_seconds
from alltoall.ir.summaries import summary_of
from alltoall.lowering.public import LoweredFiles
from alltoall.options import DRAWN, flag_of, option_of
from alltoall.routes.search import find_routes
from alltoall.settings import RouteSettings
from alltoall.topologies.formats import write_topology
from alltoall.topologies.operators import remove_links
from command_line import Run

RING = alltoall.topology("ring:4")
PROBLEM = alltoall.Problem.all_to_all(RING)
FLOW = alltoall.solve(PROBLEM)
SCHEDULE = alltoall.schedule(PROBLEM)
ROUTES = alltoall.route(PROBLEM)

PARTS = [(verb, part) for verb, about in VERBS.items() for part in about.parts or (None,)]

TO_PROBLEM = {"solve", "route", "schedule"}
"""Verbs that take the changes that `topology` makes."""

CONVERTED = {"--format", "--undirected", "--capacity-attribute", "--set-capacity"}
"""Changes that only `alltoall topology` makes, once and for all."""


def function_of(verb: str, part: str | None) -> Any:
    """Return the public function of a verb; those of a testbed are the verb's own."""
    if verb == "testbed":
        return getattr(testbed, {"exec": "execute"}.get(str(part), str(part)))
    return getattr(alltoall, part or verb)


def options_of(verb: str, part: str | None) -> dict[str, Any]:
    """Return the default of each option of a verb."""
    params = command_for(verb, part).params
    return {each.opts[0]: each.default for each in params if each.param_type_name == "option"}


def keywords_of(function: Any) -> dict[str, Any]:
    """Return the default of each keyword of a function, by the name of its option."""
    found = {}
    for keyword, parameter in inspect.signature(function).parameters.items():
        about = option_of(keyword, function.__name__)
        if about is not None and not about.argument:
            found[flag_of(keyword, about)] = parameter.default
    return found


def same(default: Any, other: Any) -> bool:
    """Whether two defaults mean the same, one of them as a text."""
    if isinstance(other, int | float) and isinstance(default, str):
        return parse_seconds(default) == other
    return bool(default == other) or (not default and not other) or str(default) == str(other)


@pytest.mark.parametrize(("verb", "part"), PARTS)
def test_options_and_keywords_are_the_same(verb: str, part: str | None) -> None:
    """Of one name and default; only where an answer goes is an option alone."""
    options, keywords = options_of(verb, part), keywords_of(function_of(verb, part))
    if verb in TO_PROBLEM:
        keywords = keywords_of(alltoall.topology) | keywords
        assert not CONVERTED & options.keys()
        keywords = {key: each for key, each in keywords.items() if key not in CONVERTED}
    alone = options.keys() - keywords.keys()
    assert alone <= {f"--{each}" for each in DRAWN} | ({"--to"} if verb == "topology" else set())
    for name, default in keywords.items():
        if default is not inspect.Parameter.empty:
            assert same(options[name], default), name


def givens(folder: Path) -> dict[str, Any]:
    """Return a ring of four nodes in all forms that a caller may have."""
    path, artefact = folder / "ring.edges", folder / "flow.json"
    write_topology(RING, path)
    FLOW.save(artefact)
    return {
        "SPEC": "ring:4",
        "path": path,
        "path as text": str(path),
        "graph": nx.cycle_graph(4),
        "topology": RING,
        "problem": PROBLEM,
        "flow": FLOW,
        "routes": ROUTES,
        "schedule": SCHEDULE,
    }


def test_a_problem_is_given_in_many_forms(tmp_path: Path) -> None:
    """They all mean the same problem."""
    for form, given in givens(tmp_path).items():
        assert alltoall.describe(given).links == 8, form
        assert alltoall.solve(given).time == pytest.approx(2.0), form


def test_what_is_no_topology_is_refused() -> None:
    """With a word on what is expected."""
    with pytest.raises(UsageError, match=r"a float in the place of a topology.*'torus:3x3x3'"):
        alltoall.solve(1.5)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'ring'"):
        alltoall.describe("rign:4")


def test_a_demand_is_given_in_many_forms(tmp_path: Path) -> None:
    """A demand, its matrix, its rows, or a file; a problem's own demand can be replaced."""
    matrix = np.ones((4, 4)) - np.eye(4)
    matrix[0, 2] = 5.0
    path = tmp_path / "demand.txt"
    np.savetxt(path, matrix)
    times = [
        alltoall.solve(given, demand=demand).time
        for given in ("ring:4", PROBLEM)
        for demand in (alltoall.Demand(4, matrix), matrix, matrix.tolist(), path, str(path))
    ]
    assert times == pytest.approx([times[0]] * len(times))
    assert times[0] > alltoall.solve("ring:4").time
    skewed = alltoall.Problem(RING, alltoall.Demand(4, matrix))
    assert alltoall.solve(skewed).time == pytest.approx(times[0])
    assert alltoall.solve(alltoall.solve(skewed)).time == pytest.approx(times[0])
    with pytest.raises(DemandError, match="a dict in the place of a demand"):
        alltoall.solve("ring:4", demand={"a": 1})  # type: ignore[arg-type]


def test_groups_are_given_in_many_forms(tmp_path: Path, run: Run) -> None:
    """By numbers or names, or in a file; they say all that a demand could."""
    path = tmp_path / "groups.txt"
    path.write_text("0,1\n2,3\n")
    expected = run("solve", "ring:4", "--group", "0,1", "--group", "2,3", "--json").json["time"]
    for groups in ([(0, 1), (2, 3)], [["0", "1"], ["2", "3"]], path, str(path)):
        assert alltoall.solve("ring:4", groups=groups).time == pytest.approx(expected)
    with pytest.raises(UsageError, match="demand and groups"):
        alltoall.solve("ring:4", groups=[(0, 1)], demand=np.ones((4, 4)) - np.eye(4))


def test_host_bandwidth_is_that_of_the_operator() -> None:
    """Whatever the problem is given as, and it keeps its demand."""
    expected = alltoall.solve(alltoall.topology(RING, host_bandwidth=1.0)).time
    for given in ("ring:4", RING, PROBLEM):
        assert alltoall.solve(alltoall.topology(given, host_bandwidth=1.0)).time == pytest.approx(
            expected
        )
    assert expected > FLOW.time


def test_progress_and_stop_reach_the_search() -> None:
    """A search reports, and ends with an answer and a status that says why."""
    said: list[str] = []
    alltoall.schedule("bipartite:4x4", progress=said.append)
    assert any("chunks per shard" in each for each in said)
    flow = alltoall.solve("jellyfish:n=16,d=3,seed=1", method="first-order", stop=lambda: True)
    assert flow.status is alltoall.Status.INTERRUPTED
    assert flow.bound <= flow.time
    found = find_routes(PROBLEM, "ecmp", RouteSettings(chunks=1))
    assert found.status is alltoall.Status.GAP_NOT_REACHED


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("single:slack=2", "method single: no setting 'slack'"),
        ("pmcf:slak=2", "did you mean 'slack'"),
        ("pmcf:paths=bounded,slack=some", "expected slack= hops"),
        ("pmcf:slack=2", "slack without paths=bounded"),
        ("pmcf:paths=bounded,k=2", "k without paths=k-shortest"),
        ("deadlock-free:layering=lash", "layering= with method deadlock-free"),
    ],
)
def test_a_setting_that_would_be_ignored_is_refused(method: str, expected: str) -> None:
    """The known ones are listed."""
    with pytest.raises(UsageError, match=expected):
        alltoall.route("ring:4", method)


def test_the_short_form_of_deadlock_freedom() -> None:
    """One layer is what was asked for."""
    routes = alltoall.route("ring:5", "deadlock-free:layers=1")
    assert (routes.method, routes.layers) == ("deadlock-free", 1)


def test_what_a_search_learnt_is_reachable() -> None:
    """Status, curves, notes and seconds come with the answer."""
    assert SCHEDULE.learnt["loss_by_chunks"] == {"1": 0.0}
    assert ROUTES.learnt["status"] == "optimal"
    assert FLOW.learnt["shortest_path_time"] >= FLOW.time
    assert ROUTES.seconds is not None
    assert ROUTES.notes == ()


def test_throughput_needs_a_unit() -> None:
    """The rate of a capacity-1 link comes from the file, the family, or the caller."""
    assert FLOW.throughput is None
    problem = alltoall.problem("ring:4", link_bandwidth="8Gbps")
    assert alltoall.solve(problem).throughput == pytest.approx(3 / FLOW.time)


def test_a_summary_is_what_the_verb_prints(run: Run) -> None:
    """Same names in the same order; only the seconds are the verb's own."""
    for answer, verb in ((FLOW, "solve"), (ROUTES, "route"), (SCHEDULE, "schedule")):
        printed = run(verb, "ring:4", "--json").json
        said = summary_of(answer)
        assert [name for name in printed if name in said] == list(said)
        assert printed["time"] == pytest.approx(said["time"])
        assert printed["topology"] == said["topology"] == "ring:4"


def test_lowered_files_are_texts_by_name(tmp_path: Path) -> None:
    """One file is saved under any name, several under their own."""
    lowered = alltoall.lower(SCHEDULE, to="msccl:channels=2")
    assert lowered.target == lowered.facts["format"] == "msccl"
    lowered.save(tmp_path / "one.xml")
    assert (tmp_path / "one.xml").read_text() == lowered.text
    assert lowered.summary()["bytes"] == len(lowered.text)
    several = LoweredFiles("two", {"a.txt": "1", "b.txt": "2"}, {})
    several.save(tmp_path / "folder")
    assert [(tmp_path / "folder" / name).read_text() for name in several.files] == ["1", "2"]
    table = alltoall.lower(ROUTES, to="routes", name="fabric.json")
    assert list(table.files) == ["fabric.json"]
    with pytest.raises(UsageError, match="target 'msccl' for routes"):
        alltoall.lower(ROUTES, to="msccl")


def test_every_file_is_loaded_as_what_it_stands_for(tmp_path: Path) -> None:
    """The content tells; and what is loaded, or never was a file, can be verified."""
    kinds: dict[str, type] = {}
    for name, noun in (("flow.json", FLOW), ("routes.npz", ROUTES), ("schedule.json", SCHEDULE)):
        noun.save(tmp_path / name)
        kinds[name] = type(noun)
    write_topology(RING, tmp_path / "ring.graphml")
    for to in ("msccl", "mscclpp", "oneccl"):
        alltoall.lower(SCHEDULE, to=to).save(tmp_path / to)
    alltoall.lower(ROUTES, to="routes").save(tmp_path / "table")
    kinds |= {"ring.graphml": alltoall.Topology, "msccl": Program, "oneccl": Program}
    for name, kind in kinds.items():
        found = alltoall.load(tmp_path / name)
        assert isinstance(found, kind), name
        assert alltoall.verify(found).valid
        assert alltoall.verify(str(tmp_path / name)).valid
    assert alltoall.verify(alltoall.load(tmp_path / "table")).facts["routes"] == ROUTES.count
    assert alltoall.verify(alltoall.load(tmp_path / "mscclpp"), topology="ring:4").facts["gap"] < 1
    PROBLEM.demand.save(tmp_path / "demand.json")
    PROBLEM.save(tmp_path / "problem.json")
    assert alltoall.load(tmp_path / "problem.json") == PROBLEM
    assert alltoall.verify(tmp_path / "problem.json").kind == "topology"
    with pytest.raises(UsageError, match="a demand claims nothing by itself"):
        alltoall.verify(tmp_path / "demand.json")
    (tmp_path / "nothing").write_text("")
    with pytest.raises(FormatError, match="the file is empty"):
        alltoall.load(tmp_path / "nothing")


def test_what_is_wrong_is_raised(tmp_path: Path) -> None:
    """A program that sends where no link leads, and a tolerance of everything."""
    path = tmp_path / "ring.xml"
    alltoall.lower(SCHEDULE, to="msccl").save(path)
    cut = remove_links(alltoall.topology("complete:4"), [(0, 1)])
    with pytest.raises(VerificationError, match="no link or path"):
        alltoall.verify(path, topology=cut)
    with pytest.raises(UsageError, match="tolerance 2"):
        alltoall.verify(FLOW, tolerance=2)


def test_a_schedule_is_run_from_a_noun_or_a_file(tmp_path: Path) -> None:
    """A row per size, whichever way the sizes are said."""
    SCHEDULE.save(tmp_path / "ring.json")
    for subject in (SCHEDULE, tmp_path / "ring.json"):
        for sizes, expected in (("1K:2K", [1024, 2048]), (100, [100]), ((3, 5), [3, 5])):
            report = alltoall.run(subject, bytes=sizes, iterations=1, warmup=0)
            assert [row.bytes for row in report.rows] == expected
    with pytest.raises(UsageError, match="3 were asked for"):
        alltoall.run(SCHEDULE, ranks=3)


@pytest.mark.parametrize(
    ("forged", "words"),
    [
        (lambda flow: replace(flow, rate=flow.rate * 1.01), "not conserved"),
        (lambda flow: replace(flow, amount=flow.amount * 1.01), "more than their capacity"),
        (lambda flow: replace(flow, certificate=Certificate(np.ones(8), 2.1)), "claims the bound"),
    ],
)
def test_solve_checks_its_own_answer(
    monkeypatch: pytest.MonkeyPatch, run: Run, forged: Any, words: str
) -> None:
    """In Python and as a verb."""
    monkeypatch.setattr("alltoall.flows.public.solve_problem", lambda *_: forged(FLOW))
    with pytest.raises(VerificationError, match=words):
        alltoall.solve("ring:4")
    found = run("solve", "ring:4")
    assert (found.code, words in found.err) == (4, True)
