"""`compare`: the numbers of what is called directly, best first, whatever fails on the way."""

import csv
import io
import json
import re
import statistics
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
from deadly import DeadlyProblem
from defusedxml import ElementTree

import alltoall
from alltoall.comparing import compare as comparing
from alltoall.comparing.compare import values_of
from alltoall.comparing.comparison import Comparison, Row
from alltoall.errors import UsageError
from command_line import Run
from dask_clusters import running_cluster

TORUS, KAUTZ = "torus:3x3", "genkautz:n=10,d=3"


def by_method(found: Comparison) -> dict[str, Row]:
    """Return the rows of one network by their method."""
    return {row.method: row for row in found.rows}


def test_one_network_by_the_usual_methods() -> None:
    """Each has the time of its own function, beside the bound that solve proves."""
    found = alltoall.compare(KAUTZ)
    rows = by_method(found)
    assert list(rows) == sorted(rows, key=lambda each: rows[each].time or 0.0)
    assert set(rows) == {"sssp", "ewsp", "single", "extp"}
    flow = alltoall.solve(KAUTZ)
    for method, row in rows.items():
        direct = alltoall.route(KAUTZ, method=method)
        assert row.time is not None
        assert row.bound == pytest.approx(flow.bound, rel=1e-3)
        assert row.time == pytest.approx(direct.time, rel=2e-3)
        assert row.share == pytest.approx((row.bound or 0) / row.time)
        assert row.gap == pytest.approx(row.time / (row.bound or 1) - 1)
        assert (row.nodes, row.links, row.reason) == (10, flow.problem.topology.links, None)
    assert rows["extp"].share == pytest.approx(1, abs=1e-3)
    assert found.rows[0].method in ("extp", "single")


def test_throughput_is_that_of_the_answer() -> None:
    """GB/s per node where it is known what a link is; seconds for shards of a size."""
    row = alltoall.compare(TORUS, "extp", link_bandwidth="100G", bytes=1 << 20).rows[0]
    assert row.throughput == pytest.approx(8 / 3 * 12.5)
    assert row.transfer == pytest.approx(3 * (1 << 20) / 12.5e9)
    assert alltoall.compare("dgx1", "sssp").rows[0].throughput is not None
    assert alltoall.compare(TORUS, "sssp").rows[0].throughput is None
    with pytest.raises(UsageError, match="link bandwidth"):
        alltoall.compare("dgx1", link_bandwidth="1G")


def test_flows_routes_and_schedules_side_by_side() -> None:
    """Any method of the three verbs; one that is none is refused with the list."""
    rows = by_method(alltoall.compare("ring:5", ["solve", "link", "ecmp", "schedule", "list"]))
    assert len(rows) == 5
    assert rows["solve"].time == pytest.approx(3)
    assert rows["schedule"].time == pytest.approx(alltoall.schedule("ring:5").time)
    with pytest.raises(UsageError, match="unknown method 'fastest'; expected one of solve"):
        alltoall.compare("ring:5", "fastest")


def test_several_networks_by_ours_and_shortest_paths(run: Run) -> None:
    """The answer holds the best against the next network, then comes a table."""
    found = alltoall.compare(["ring:9", TORUS])
    assert [row.method for row in found.rows[:2]] == ["solve", "sssp"]
    assert [row.network for row in found.rows] == [TORUS, TORUS, "ring:9", "ring:9"]
    said = run("compare", "ring:9", TORUS).out.splitlines()
    assert said[0] == "torus:3x3 takes 3 shard times, the proven minimum"
    assert said[1] == "233 % more than ring:9"
    assert said[3].split()[:2] == ["network", "method"]
    assert len(said) == 8
    assert repr(found).startswith("<Comparison of 4 rows: torus:3x3 takes 3 ")


def test_the_demand_and_groups_hold_for_all_networks() -> None:
    """As in the verbs of their own."""
    pair = alltoall.compare(TORUS, "solve", groups=[[0, 1, 2]]).rows[0]
    assert pair.time == pytest.approx(alltoall.solve(TORUS, groups=[[0, 1, 2]]).time)
    twice = [[2.0 * (i != j) for j in range(9)] for i in range(9)]
    assert alltoall.compare(TORUS, "solve", demand=twice).rows[0].time == pytest.approx(6)


def test_over_fills_in_values_and_seeds_share_a_line() -> None:
    """Each SPEC varies over the keys that it has; seeds have a median and a range."""
    given = ["genkautz:n={n},d=4", "jellyfish:n={n},d=4,seed={seed}"]
    found = alltoall.compare(given, "solve", over={"n": [8, 10], "seed": "1..3"})
    assert len(found.rows) == 2 + 2 * 3
    assert {tuple(row.over) for row in found.rows} == {("n",), ("n", "seed")}
    entries = {entry.network: entry for entry in found.entries()}
    assert set(entries) == {
        *("genkautz:n=8,d=4", "genkautz:n=10,d=4"),
        *("jellyfish:n=8,d=4,seed=1..3", "jellyfish:n=10,d=4,seed=1..3"),
    }
    times = [alltoall.solve(f"jellyfish:n=10,d=4,seed={seed}").time for seed in (1, 2, 3)]
    entry = entries["jellyfish:n=10,d=4,seed=1..3"]
    assert entry.value == pytest.approx(9 / statistics.median(times), rel=1e-2)
    assert (entry.least, entry.most) == pytest.approx((9 / max(times), 9 / min(times)), rel=1e-2)
    assert "is best at n = " in found.answer()
    assert found.svg().count("<polyline") == 2


def test_methods_vary_too() -> None:
    """A key may stand in a method; without a SPEC that has it, it is refused."""
    found = alltoall.compare("ring:{n}", "{how}", over={"n": 5, "how": "sssp,ecmp"})
    assert {row.method for row in found.rows} == {"sssp", "ecmp"}
    for over, said in (
        ({"n": "1..2", "k": [1]}, r"no SPEC has \{k\}"),
        ({}, r"\{n\} without values"),
        ({"n": "1.."}, "expected values with commas"),
        ({"n": ""}, "expected values with commas"),
        ({"n": "9..1"}, "0 values"),
        ({"time": 1}, "expected another name"),
        ({"n": "1..99999"}, "expected 1 to 10,000"),
    ):
        with pytest.raises(UsageError, match=said):
            alltoall.compare("ring:{n}", over=over)
    assert values_of({"n": range(2), "m": "1,x, 3..4"}) == {"n": (0, 1), "m": (1, "x", 3, 4)}


def test_a_point_that_fails_is_a_row_with_its_reason(run: Run) -> None:
    """Last in the table; where nothing else is left, it is an error."""
    found = run("compare", "ring:{n}", "jellyfish:n={n},d=3", "--over", "n=2,4", "--json")
    assert found.code == 0
    rows = found.json["rows"]
    assert [row["reason"] is None for row in rows] == [True] * 6 + [False] * 2
    assert "expected" in rows[-1]["reason"]
    refused = run("compare", "ring:{n}", "--over", "n=0,1")
    assert refused.code == 3
    assert "no point has an answer; the first: ring:0" in refused.err


def test_a_time_limit_is_for_each_point() -> None:
    """What came too late says so."""
    found = alltoall.compare([TORUS, "ring:3"], ["solve", "sssp"], time_limit=1e-9, threads=1)
    assert all(row.reason and "time limit of 1e-09 s" in row.reason for row in found.rows)


@pytest.mark.parametrize("kind", ["solve", "route", "schedule"])
def test_saved_answers_are_verified(kind: str, tmp_path: Path) -> None:
    """Their time is recomputed, and what is false is the reason of a failed row."""
    answer = getattr(alltoall, kind)(TORUS)
    best = tmp_path / "best.json"
    answer.save(best)
    worse = alltoall.route(TORUS, method="sssp")
    found = alltoall.compare([best, worse])
    assert [row.network for row in found.rows] == ["best.json", TORUS]
    assert found.rows[0].time == pytest.approx(answer.time)
    assert found.rows[1].method == "routes, sssp"
    assert found.rows[1].share == pytest.approx(0.75)
    forged = json.loads(best.read_text())
    forged["bound"], forged["gap"] = 100.0, forged["time"] / 100 - 1
    best.write_text(json.dumps(forged))
    found = alltoall.compare([best, worse])
    assert found.rows[-1].network == "best.json"
    assert "100" in (found.rows[-1].reason or "")
    assert found.rows[-1].time is None
    assert found.rows[0].bound == pytest.approx(3)


def test_measured_runs_stand_beside_what_was_proven(run: Run, tmp_path: Path) -> None:
    """At the largest size or the one asked for; the maximum is ours, not the file's."""
    rows: list[dict[str, Any]] = [
        {"bytes": size, "throughput": rate, "bound_throughput": 1e30, "native_throughput": 5e9}
        for size, rate in ((1024, 1e9), (2048, 20e9))
    ]
    path = tmp_path / "run.json"
    path.write_text(json.dumps({"topology": TORUS, "runtime": "mpi", "rows": rows}))
    found = alltoall.compare([path, TORUS], "extp", link_bandwidth="100G")
    assert [(row.network, row.method) for row in found.rows] == [
        (TORUS, "extp"),
        ("run.json", "measured"),
        ("run.json", "measured, the library's own"),
    ]
    assert [row.throughput for row in found.rows] == pytest.approx([100 / 3, 20, 5])
    assert found.rows[1].share == pytest.approx(0.6)
    assert run("compare", path, "--bytes", "1K").out.startswith(
        "measured, the library's own reaches 5 GB/s per node"
    )
    assert "not measured with shards of 4096 bytes" in run("compare", path, "--bytes", 4096).err


def test_whatever_stands_for_a_network() -> None:
    """Graphs, topologies, problems, generators of them."""
    ring = alltoall.topology("ring:5")
    problem = alltoall.Problem.all_to_all(ring)
    subjects: list[Any] = [nx.cycle_graph(5), ring, problem, iter([ring])]
    for given in subjects:
        found = alltoall.compare(given, "sssp")
        assert [row.time for row in found.rows] == [pytest.approx(3)]


def test_files_of_every_kind(tmp_path: Path) -> None:
    """Each is read back by another reader, and has all rows."""
    found = alltoall.compare([TORUS, "ring:4"], ["extp", "sssp"], link_bandwidth="10G")
    for suffix in ("csv", "json", "svg", "html"):
        found.save(tmp_path / f"x.{suffix}")
    lines = list(csv.DictReader(io.StringIO((tmp_path / "x.csv").read_text())))
    value = json.loads((tmp_path / "x.json").read_text())
    for row, line, each in zip(found.rows, lines, value["rows"], strict=True):
        assert (row.network, row.method) == (line["network"], line["method"])
        assert each["throughput_GBps"] == float(line["throughput_GBps"]) == row.throughput
    drawing = ElementTree.fromstring((tmp_path / "x.svg").read_text())
    bars = drawing.findall(".//{http://www.w3.org/2000/svg}rect")
    assert len(bars) == 4
    widths = [float(bar.attrib["width"]) for bar in bars]
    rates = [row.throughput or 0.0 for row in found.rows]
    assert [width / widths[0] for width in widths] == pytest.approx(
        [rate / rates[0] for rate in rates], rel=1e-2
    )
    page = (tmp_path / "x.html").read_text()
    assert page.count("<tr>") == 5
    assert not re.search(r"(src|href)=", page)
    assert "<svg" in found._repr_html_()
    frame = found.to_frame()
    assert list(frame["network"]) == [row.network for row in found.rows]
    found.plot(tmp_path / "y.svg")
    assert (tmp_path / "y.svg").read_text() == (tmp_path / "x.svg").read_text()
    for name in ("x.png", "x"):
        with pytest.raises(UsageError, match="ends in"):
            found.save(tmp_path / name)
    with pytest.raises(UsageError, match=r"ends in \.svg"):
        found.plot(tmp_path / "x.html")


def test_names_are_no_html() -> None:
    """Names of nodes and networks are a file's, and are shown as text."""
    name = "<script>alert(1)</script>&"
    topology = alltoall.Topology.from_edges(name, 3, [(0, 1), (1, 2)])
    found = alltoall.compare([topology, "ring:3"])
    assert "<script" not in found.html()
    ElementTree.fromstring(found.svg())


def test_many_points_run_in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same rows as in this one."""
    given = [TORUS, KAUTZ, "ring:5"]
    here = alltoall.compare(given, threads=1)
    monkeypatch.setattr(comparing, "APART_VARIABLES", 0)
    messages: list[str] = []
    there = alltoall.compare(given, threads=2, progress=messages.append)
    assert [(row.network, row.method, row.time, row.bound) for row in here.rows] == [
        (row.network, row.method, row.time, row.bound) for row in there.rows
    ]
    assert messages[0] == "compare: 0 of 6"
    assert messages[-1] == "compare: 6 of 6"


@pytest.mark.parametrize("dies", ["once", "always"])
def test_a_dead_worker_costs_its_own_point_at_most(
    dies: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed once, the point runs again; killed twice, that is the reason in its row."""
    monkeypatch.setattr(comparing, "APART_VARIABLES", 0)
    problem = alltoall.Problem.all_to_all(alltoall.topology("ring:6"))
    note = str(tmp_path / "died") if dies == "once" else ""
    deadly = DeadlyProblem(problem.topology, problem.demand, note)
    found = alltoall.compare([deadly, "ring:3", "ring:4", "ring:5"], "solve", threads=2)
    assert len(found.rows) == 4
    assert found.missing == 0
    if dies == "once":
        assert all(row.reason is None for row in found.rows)
        assert (tmp_path / "died").exists()
    else:
        assert [row.network for row in found.rows if row.reason] == ["ring:6"]
        assert "died twice, killed (signal 9)" in (found.rows[-1].reason or "")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """Give the address of a scheduler with two workers, which may die once each."""
    pytest.importorskip("distributed")
    where = (Path(alltoall.__file__).parents[1], Path(__file__).parent)
    with running_cluster(tmp_path, failures=0, sources=where) as found:
        yield found.address


def test_points_run_on_a_cluster(cluster: str) -> None:
    """With the same rows; a point that kills its worker is reported."""
    here = alltoall.compare([TORUS, KAUTZ])
    there = alltoall.compare([TORUS, KAUTZ], cluster=cluster)
    assert [(row.network, row.method, row.time) for row in here.rows] == [
        (row.network, row.method, row.time) for row in there.rows
    ]
    problem = alltoall.Problem.all_to_all(alltoall.topology("ring:6"))
    deadly = DeadlyProblem(problem.topology, problem.demand)
    found = alltoall.compare([TORUS, deadly], "solve", cluster=cluster)
    assert [row.reason is None for row in found.rows] == [True, False]
    assert "its workers died" in (found.rows[-1].reason or "")


@pytest.mark.parametrize(("how", "apart"), [("stop", True), ("interrupt", False)])
def test_a_stop_keeps_what_is_done_and_a_second_call_goes_on(
    how: str, apart: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rows that were done are not computed again, and the file then has all."""
    path, given = tmp_path / "x.json", [f"ring:{n}" for n in range(3, 9)]
    monkeypatch.setattr(comparing, "APART_VARIABLES", 0 if apart else 10**9)
    whole = alltoall.compare(given, "solve", threads=2)
    stopped = False

    def stop_at_two(message: str) -> None:
        nonlocal stopped
        if message.startswith("compare: 2 of"):
            stopped = True
            if how == "interrupt":
                raise KeyboardInterrupt

    some = alltoall.compare(
        *(given, "solve"), threads=2, output=path, progress=stop_at_two, stop=lambda: stopped
    )
    assert len(some.rows) == 2
    assert some.missing == 4
    assert len(json.loads(path.read_text())["rows"]) == 2
    ran: list[str] = []
    rest = alltoall.compare(given, "solve", threads=2, output=path, progress=ran.append)
    assert next(each for each in ran if each.startswith("compare: ")) == "compare: 2 of 6"
    assert [(row.network, row.time) for row in rest.rows] == [
        (row.network, row.time) for row in whole.rows
    ]
    assert len(json.loads(path.read_text())["rows"]) == 6
    more = alltoall.compare([*given, "ring:9"], "solve", output=path)
    assert len(more.rows) == 7


def test_another_comparison_is_not_gone_on_from(tmp_path: Path) -> None:
    """Nor is any other file lost; what failed is tried again."""
    path = tmp_path / "x.json"
    alltoall.compare([TORUS, "ring:4"], output=path)
    for arguments in ({"gap": 0.01}, {"demand": [[i != j for j in range(9)] for i in range(9)]}):
        with pytest.raises(UsageError, match="of another comparison"):
            alltoall.compare(TORUS, output=path, **arguments)
    with pytest.raises(UsageError, match="of another comparison"):
        alltoall.compare("ring:5", output=path)
    failed = tmp_path / "failed.json"
    alltoall.compare(["ring:3", "ring:4"], time_limit=1e-9, output=failed)
    assert all(row.reason is None for row in alltoall.compare(["ring:3", "ring:4"]).rows)
    other = tmp_path / "y.json"
    other.write_text('{"format": "alltoall.topology/1"}')
    with pytest.raises(UsageError, match="is no comparison"):
        alltoall.compare(TORUS, output=other)
    assert other.read_text() == '{"format": "alltoall.topology/1"}'


def test_what_cannot_be_compared_is_refused(run: Run, tmp_path: Path) -> None:
    """With the exit code of its kind, before any work."""
    demand, saved = tmp_path / "demand.json", tmp_path / "routes.json"
    alltoall.Demand(3).save(demand)
    alltoall.route("ring:3").save(saved)
    for words, code, said in (
        (("tours:3x3",), 2, "tours"),
        ((tmp_path / "none.json",), 3, "no such file"),
        ((demand,), 2, "a demand; expected a network"),
        ((saved, "--method", "sssp"), 2, "without a network"),
        ((TORUS, "-o", tmp_path / "x.png"), 2, "ends in .csv, .json, .svg, .html"),
        ((saved, "-o", saved), 2, "the output would replace"),
        ((TORUS, "--over", "n"), 2, "expected KEY=VALUES"),
        ((TORUS, "--gap", 2), 2, "gap 2"),
        ((TORUS, "--threads", 0), 2, "0 workers"),
        ((TORUS, "--cluster", "here"), 2, "such as tcp://"),
    ):
        refused = run("compare", *words)
        assert refused.code == code, (words, refused.err)
        assert said in refused.err
    with pytest.raises(UsageError, match="nothing to compare"):
        alltoall.compare([])


def test_the_verb_saves_and_prints(run: Run, tmp_path: Path) -> None:
    """Files by their suffix; JSON on standard output has the rows and no more."""
    path = tmp_path / "x.html"
    outcome = run("compare", TORUS, "--link-bandwidth", "100G", "-o", path)
    assert outcome.out.endswith(f"saved  {path}\n")
    assert "<table>" in path.read_text()
    found = run("compare", TORUS, "--json").json
    assert {"answer", "rows", "summary", "missing", "seconds"} <= set(found)
    assert "points" not in found
