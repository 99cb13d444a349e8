"""Reports without a browser: the content of pages, limits and refusals."""

import base64
import json
import re
import shlex
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import alltoall
from alltoall.errors import FormatError, UsageError, VerificationError
from alltoall.ir.answer import find_bottleneck
from alltoall.reports.answers import busy_shares
from alltoall.reports.diagram import MOST_LINES, draw_topology
from alltoall.reports.frames import player_content
from alltoall.reports.headline import proof_content
from alltoall.reports.packed import packed_floats, packed_ints
from alltoall.reports.page import embedded
from alltoall.reports.pair_paths import flow_content, route_content, shown_sources
from alltoall.routes.baselines import tables
from command_line import Run
from hop_schedules import hop_schedule

KINDS = {"u8": "<u1", "u16": "<u2", "u32": "<u4", "f32": "<f4"}
NONE = np.zeros(0, dtype=np.int64)


def unpacked(packed: dict[str, str]) -> Any:
    """Return the numbers of an array in a page."""
    return np.frombuffer(base64.b64decode(packed["base64"]), KINDS[packed["kind"]])


def content_of(html: str) -> Any:
    """Return the content of a page."""
    found = re.search(r'<script type="text/plain" id="content">([A-Za-z0-9+/=]*)</script>', html)
    assert found is not None
    return json.loads(zlib.decompress(base64.b64decode(found[1])))


def saved(folder: Path) -> list[Path]:
    """Return files of a schedule, routes and a flow on a ring of six."""
    paths = [folder / f"{name}.json" for name in ("schedule", "routes", "flow")]
    alltoall.schedule("ring:6").save(paths[0])
    alltoall.route("ring:6", method="single").save(paths[1])
    alltoall.solve("ring:6").save(paths[2])
    return paths


def test_a_page_has_the_status_of_the_flow() -> None:
    """In the words of the verbs: an answer within the gap asked for is not called optimal."""
    for gap, words in ((1e-9, "optimal"), (0.05, "within the gap asked for")):
        flow = alltoall.solve("jellyfish:n=40,d=4,seed=1", method="first-order", gap=gap)
        facts = str(content_of(alltoall.report(flow).html))
        assert f"['status', '{words}']" in facts


def test_the_verb_makes_a_page(run: Run, tmp_path: Path) -> None:
    """It lists the content of the page, which has every file and all commands."""
    page = tmp_path / "page.html"
    outcome = run("report", *saved(tmp_path), "-o", page, "--json")
    assert outcome.code == 0, outcome.err
    found = outcome.json
    assert [(each["kind"], each["time"]) for each in found["answers"]] == [
        ("schedule", 4.5),
        ("routes", 5.0),
        ("flow", pytest.approx(4.5)),
    ]
    assert found["saved"] == [str(page)]
    assert found["bytes"] == page.stat().st_size
    content = content_of(page.read_text())
    assert content["title"] == "All-to-all on ring:6"
    assert [round(each["ratio"], 6) for each in content["views"]] == [1.0, 1.111111, 1.0]
    assert len(content["fabrics"]) == 1
    assert "saved" in run("report", tmp_path / "flow.json", "-o", page).out


@pytest.mark.parametrize(
    ("method", "rate", "answer", "versus"),
    [
        ("extp", "25Gbps", "9.03 GB/s per node, the proven maximum", "67 % more than "),
        ("extp", None, "9 shard times, the proven minimum", "67 % more throughput than "),
        ("sssp", "25Gbps", "5.42 GB/s per node, 40 % below the proven limit of 9.03 GB/s", ""),
        ("sssp", None, "15 shard times, 67 % above the proven limit of 9", ""),
        (
            "ecmp",
            "10Mbps",
            "0.00171 GB/s per node, 53 % below the proven limit of 0.00361 GB/s",
            "21 % less ",
        ),
    ],
)
def test_the_headline_compares_in_the_units_of_the_user(
    method: str, rate: str | None, answer: str, versus: str
) -> None:
    """The answer beside its bound and shortest-path routing, in numbers as people say them."""
    routes = alltoall.route("torus:3x3x3", f"{method}:layering=none")
    (shown,) = content_of(alltoall.report(routes, link_bandwidth=rate).html)["views"]
    assert shown["headline"]["answer"] == answer
    assert shown["headline"]["versus"].startswith(versus)
    assert ("shortest-path routing (" in shown["headline"]["versus"]) == bool(versus)
    roles = ["baseline"] * bool(versus) + ["own", "bound"]
    assert [role for role, _, _ in shown["headline"]["bars"]] == roles


def test_a_baseline_that_takes_long_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is made without it."""
    monkeypatch.setattr(tables, "MOST_PAIRS", 10)
    (shown,) = content_of(alltoall.report(alltoall.solve("ring:5")).html)["views"]
    assert shown["headline"]["versus"] == ""
    assert [role for role, _, _ in shown["headline"]["bars"]] == ["own", "bound"]


def test_the_proof_is_marked_on_the_lines_and_nodes_of_its_links() -> None:
    """A cut by its links and one side; some links by themselves; all links alike by no mark."""
    cube = draw_topology(alltoall.topology("hypercube:3"))
    face = np.array([0, 1, 2, 3])
    tail, head = (np.isin(ends, face) for ends in (cube.topology.tail, cube.topology.head))
    fullness = np.ones(cube.topology.links)
    for lengths, text, nodes in (
        ((tail & ~head).astype(float), "proving cut: 4 links around 4 nodes", face.tolist()),
        (np.eye(cube.topology.links)[5], "bound proven by 1 link of 24", None),
        (fullness, "total hops / total capacity", None),
    ):
        content = proof_content(find_bottleneck(cube.topology, fullness, lengths), cube)
        assert content is not None
        assert text in content["text"]
        packed = content.get("nodes")
        assert (None if packed is None else unpacked(packed).tolist()) == nodes
        if "lines" in content:
            assert unpacked(content["lines"]).tolist() == np.flatnonzero(lengths).tolist()
    groups = draw_topology(alltoall.topology("complete:300"))
    assert groups.groups_within(np.arange(4)).tolist() == [0]


def test_equal_files_make_equal_pages(tmp_path: Path) -> None:
    """A page has no time of its own in it."""
    files = saved(tmp_path)
    assert alltoall.report(files).html == alltoall.report(files).html


def test_what_to_run_next_runs(run: Run, tmp_path: Path) -> None:
    """Every command on a page does what it says; none writes over what is there."""
    files = saved(tmp_path)
    topology = tmp_path / "my topology.json"
    alltoall.topology("ring:6").save(topology)
    found = alltoall.report([*files, topology]).facts["next"]
    assert {shlex.split(each)[1] for each in found} == {
        *("verify", "simulate", "run", "lower", "route", "schedule", "solve")
    }
    for command in found:
        words = shlex.split(command)
        assert words[0] == "alltoall"
        if "-o" in words:
            assert not Path(words[words.index("-o") + 1]).exists(), command
    for command in found:
        outcome = run(*shlex.split(command)[1:])
        assert outcome.code == 0, f"{command}: {outcome.err}"


@pytest.mark.parametrize(
    ("spec", "rate"),
    [
        ("ring:4", "--link-bandwidth 25Gbps "),
        ("switch:n=4,rate=400", "--link-bandwidth 1Gbps "),
        ("cluster:hosts=2,gpus=2,inside=nvswitch:3600,nics=2x400,outside=ring", ""),
    ],
)
def test_capacities_that_are_rates_are_not_taken_for_links(
    spec: str, rate: str, tmp_path: Path
) -> None:
    """A NIC of 400 is one of 400 Gbit/s, not of as many links; a cluster says so itself."""
    path = tmp_path / "schedule.json"
    alltoall.schedule(spec).save(path)
    found = alltoall.report(path).facts["next"]
    assert any(f"simulate {path} {rate}--bytes" in each for each in found), found


def test_a_spec_is_only_told_if_it_builds_the_topology(tmp_path: Path) -> None:
    """A topology with a link less, or one that lies about its name, gets no command by name."""
    broken = alltoall.topology("ring:6", remove_links=["0-1"])
    path = tmp_path / "flow.json"
    alltoall.solve(broken).save(path)
    assert [each.split()[1] for each in alltoall.report(path).facts["next"]] == ["verify"]
    liar = alltoall.Topology.from_edges("complete:2000", 3, [(0, 1), (1, 2), (2, 0)])
    alltoall.solve(liar).save(path)
    assert [each.split()[1] for each in alltoall.report(path).facts["next"]] == ["verify"]


def test_runs_and_simulations(run: Run, tmp_path: Path) -> None:
    """The JSON of `run` and `simulate` becomes curves by size."""
    schedule, page = saved(tmp_path)[0], tmp_path / "page.html"
    calls = {
        "run.json": ("run", schedule, "--bytes", "1K:2K", "--iterations", 1, "--json"),
        "sim.json": ("simulate", schedule, "--link-bandwidth", "1Gbps", "--bytes", "1K", "--json"),
    }
    for name, words in calls.items():
        (tmp_path / name).write_text(run(*words).out)
    assert run("report", schedule, *(tmp_path / name for name in calls), "-o", page).code == 0
    measured, predicted = content_of(page.read_text())["runs"]
    assert (measured["bytes"], predicted["bytes"]) == ([1024, 2048], [1024])
    assert [each["name"] for each in predicted["curves"]] == ["throughput", "certified bound"]
    assert predicted["title"] == "predicted, alpha-beta, dataflow"
    assert predicted["curves"][0]["values"][0] == pytest.approx(5 / 4.5 * 1e9 / 8, rel=1e-6)
    only = alltoall.report(tmp_path / "sim.json")
    assert only.facts["answers"] == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"rows": []}', "no rows"),
        ('{"rows": [3]}', "row 0 is 3; expected an object"),
        ('{"rows": [{"bytes": 1}]}', "no throughput in its rows"),
        ('{"rows": [{"bytes": 1, "throughput": -1}]}', "throughput is -1; expected a positive"),
        ('{"rows": [{"bytes": "x", "throughput": 1}]}', 'bytes is "x"; expected an integer'),
        ('{"rows": [{"bytes": 1, "throughput": NaN}]}', "NaN is not JSON"),
    ],
)
def test_runs_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    """The message names the row and its fault."""
    path = tmp_path / "run.json"
    path.write_text(text)
    with pytest.raises(FormatError, match=re.escape(said)):
        alltoall.report(path)


def test_what_is_false_is_not_reported(run: Run, tmp_path: Path) -> None:
    """A flow that claims a better bound than it proves ends with the exit code of a check."""
    path = saved(tmp_path)[2]
    whole = json.loads(path.read_text())
    whole["bound"] *= 1.5
    path.write_text(json.dumps(whole))
    page = tmp_path / "page.html"
    assert run("report", path, "-o", page).code == 4
    assert not page.exists()
    with pytest.raises(VerificationError):
        alltoall.report(path)


PAGES: dict[str, Callable[[], list[alltoall.Topology | alltoall.Routes | alltoall.Schedule]]] = {
    "a small network": lambda: [
        alltoall.schedule("torus:3x3x3"),
        alltoall.route("torus:3x3x3", method="extp"),
        alltoall.route("torus:3x3x3", method="sssp"),
    ],
    "routes that are random": lambda: [alltoall.route("jellyfish:n=160,d=4,seed=1", method="ecmp")],
    "many routes": lambda: [alltoall.route("torus:7x7x7", method="ecmp:layering=none")],
    "many sends": lambda: [hop_schedule(alltoall.topology("torus:5x5x5"), 2)],
    "many links": lambda: [alltoall.topology("jellyfish:n=1600,d=12,seed=1")],
}
"""Subjects of pages that could become large."""


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_small(name: str) -> None:
    """It goes into a mail and opens at once, whatever it shows."""
    assert len(alltoall.report(PAGES[name]()).html.encode()) < 400_000


def test_what_cannot_be_shown_is_refused(run: Run, tmp_path: Path) -> None:
    """Nothing, a missing file, a demand, and a source that sends nothing."""
    with pytest.raises(UsageError, match="nothing to report on"):
        alltoall.report([])
    assert run("report", tmp_path / "none.json").code == 3
    alltoall.Demand(4).save(tmp_path / "demand.json")
    with pytest.raises(UsageError, match="a demand; expected a flow"):
        alltoall.report(tmp_path / "demand.json")
    star = alltoall.Topology.from_edges("star", 4, [(0, 1), (0, 2), (0, 3)], terminals=[1, 2, 3])
    with pytest.raises(UsageError, match="node 0 of star is no terminal"):
        alltoall.report(alltoall.route(star), sources=[0])
    with pytest.raises(UsageError, match="there is no node"):
        alltoall.report(alltoall.route(star), sources=["nobody"])
    with pytest.raises(UsageError, match="at most 64"):
        alltoall.report([star] * 65)


def test_nothing_in_a_name_can_end_the_block() -> None:
    """Nothing but letters and digits stand there; and all of it comes back."""
    names = ["</script>", "<!--", "&lt;", "\u2028\u2029", "'\"\\", "é漢"]
    text = embedded({"names": names})
    assert re.fullmatch("[A-Za-z0-9+/=]*", text)
    assert json.loads(zlib.decompress(base64.b64decode(text)))["names"] == names


def test_the_policy_names_the_scripts() -> None:
    """A page lets nothing run but its own scripts, and nothing be fetched."""
    html = alltoall.report(alltoall.topology("ring:4"), title="<b>").html
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)
    assert policy is not None
    assert re.fullmatch(
        r"default-src 'none'; script-src 'sha256-\S+'; style-src 'sha256-\S+'; "
        "base-uri 'none'; form-action 'none'",
        policy[1],
    )
    assert "<title>&lt;b&gt;</title>" in html
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", html.partition("<script>")[0])


@pytest.mark.parametrize(("most", "kind"), [(255, "u8"), (256, "u16"), (65536, "u32")])
def test_arrays_are_as_small_as_they_can_be(most: int, kind: str) -> None:
    """And come back as they were."""
    values = np.array([0, 7, most])
    assert packed_ints(values)["kind"] == kind
    assert unpacked(packed_ints(values)).tolist() == values.tolist()
    assert unpacked(packed_floats(np.array([0.5, 1 / 3]))) == pytest.approx([0.5, 1 / 3])


def test_shares_are_those_of_the_time() -> None:
    """The fullest link of a flow or of routes is busy all the time, and none for longer."""
    for answer in (alltoall.solve("ring:5"), alltoall.route("mesh:3x3", method="sssp")):
        assert busy_shares(answer).max() == pytest.approx(1.0)
    schedule = alltoall.schedule("mesh:2x3")
    assert 0 < busy_shares(schedule).max() <= 1 + 1e-12


def test_a_large_topology_is_drawn_by_groups() -> None:
    """A line is as full as the fullest of its links, and there are few of them."""
    large = draw_topology(alltoall.topology("complete:300"))
    assert not large.whole
    assert large.lines <= MOST_LINES
    load = np.arange(large.topology.links, dtype=np.float64)
    assert large.fullest(load).max() == load.max()
    content = large.content()
    assert len(content["names"]) == len(unpacked(content["x"])) == large.groups
    assert content["names"][0] == "0 … 2"


def test_halves_of_hosts_are_drawn_in_one_place() -> None:
    """A torus of hosts and their NIC halves looks like a torus, with lines both ways."""
    torus = alltoall.topology("torus:3x3")
    content = draw_topology(alltoall.topology(torus, host_bandwidth=2)).content()
    host = unpacked(content["host"])
    assert (len(host), len(set(host.tolist()))) == (27, 9)
    assert content["bothWays"]
    assert np.count_nonzero(unpacked(content["aroundX"]) + unpacked(content["aroundY"])) == 12
    assert not draw_topology(alltoall.topology("genkautz:n=20,d=2")).content()["bothWays"]


def test_frames_are_the_steps_of_a_schedule() -> None:
    """Times, sends and shares of each step; with less room, of several steps together."""
    schedule = alltoall.schedule("ring:6")
    whole = draw_topology(schedule.problem.topology)
    frames = player_content(schedule, whole, 1000)
    assert frames["times"] == pytest.approx(schedule.step_times().tolist())
    assert sum(frames["sends"]) == schedule.sends == unpacked(frames["count"]).sum()
    for frame, (begin, end) in enumerate(
        zip(frames["start"][:-1], frames["start"][1:], strict=True)
    ):
        share = np.zeros(whole.lines)
        share[unpacked(frames["line"])[begin:end]] = unpacked(frames["share"])[begin:end]
        expected = schedule.loads()[frame] / schedule.step_times()[frame]
        assert share == pytest.approx(expected, abs=1e-6)
    few = player_content(schedule, whole, 12)
    assert few["stepsEach"] > 1
    assert sum(few["times"]) == pytest.approx(schedule.time)
    assert few["first"][0] == 1
    assert few["last"][-1] == schedule.steps


def test_ways_of_some_sources_where_there_is_no_room_for_all() -> None:
    """Evenly among all, or those that are asked for; never more than there is room for."""
    hops = np.full(100, 10)
    assert len(shown_sources(hops, NONE, 1000)) == 100
    some = shown_sources(hops, NONE, 99)
    assert hops[some].sum() <= 99
    assert len(some) >= 5
    assert shown_sources(hops, np.array([3, 4]), 99).tolist() == [3, 4]
    with pytest.raises(UsageError, match="ask for fewer sources"):
        shown_sources(hops, np.arange(20), 99)
    routes = alltoall.route("ring:6", method="single")
    content = route_content(routes, np.array([2]), 1000)
    assert set(unpacked(content["source"])) == {2}
    assert unpacked(content["hops"]).sum() == len(unpacked(content["link"]))
    assert not content["all"]


def test_layers_that_change_on_the_way_are_shown() -> None:
    """A page has the layer of every hop, and says that they cannot deadlock."""
    routes = alltoall.route("torus:5x5", "deadlock-free:layers=2,change")
    assert routes.hop_layer is not None
    (shown,) = content_of(alltoall.report(routes).html)["views"]
    assert shown["paths"]["layer"] is None
    assert unpacked(shown["paths"]["hopLayer"]).tolist() == routes.hop_layer.tolist()
    assert "cannot deadlock in its layers" in dict(shown["facts"])["checked"]


@pytest.mark.parametrize("method", ["decomposed", "link"])
@pytest.mark.parametrize("spec", ["torus:4x4", "fattree:4", "genkautz:n=12,d=3"])
def test_the_paths_of_a_flow_carry_it(spec: str, method: str) -> None:
    """Weights of every pair add up to its demand, and links carry no more than in the flow."""
    flow = alltoall.solve(spec, method=method)
    topology = flow.problem.topology
    content = flow_content(flow, NONE, 1_000_000)
    assert content is not None
    assert content["all"]
    count = len(topology.terminals)
    source, destination, hops = (
        unpacked(content[key]) for key in ("source", "destination", "hops")
    )
    weight, link = unpacked(content["weight"]).astype(np.float64), unpacked(content["link"])
    total = np.bincount(source * np.int64(count) + destination, weight, count * count)
    assert total.reshape(count, count) == pytest.approx(1 - np.eye(count), abs=1e-5)
    load = np.bincount(link, np.repeat(weight, hops), topology.links)
    assert np.all(load <= topology.capacity * flow.time * (1 + 1e-5))
    begin = np.cumsum(hops) - hops
    assert np.array_equal(topology.tail[link[begin]], topology.terminals[source])
    assert np.array_equal(topology.head[link[begin + hops - 1]], topology.terminals[destination])


def test_a_page_has_the_paths_of_as_many_sources_as_fit() -> None:
    """Or of those that were asked for."""
    flow = alltoall.solve("torus:4x4")
    content = flow_content(flow, NONE, 100)
    assert content is not None
    assert not content["all"]
    assert 0 < len(unpacked(content["link"])) <= 100
    assert set(unpacked(content["source"]).tolist()) == set(content["sources"])
    asked = flow_content(flow, np.array([3]), 100)
    assert asked is not None
    assert set(unpacked(asked["source"]).tolist()) == {3}


def test_a_page_never_takes_the_place_of_what_it_shows(run: Run, tmp_path: Path) -> None:
    """Not under another name of the same file either."""
    flow = tmp_path / "flow.json"
    alltoall.solve("ring:4").save(flow)
    (tmp_path / "link.json").symlink_to(flow)
    before = flow.read_bytes()
    for output in (flow, tmp_path / "link.json"):
        outcome = run("report", flow, "-o", output)
        assert outcome.code == 2
        assert "name another" in outcome.err
    assert flow.read_bytes() == before


def test_titles_and_names(tmp_path: Path) -> None:
    """Files of one name are told apart by their folders."""
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        alltoall.solve("ring:4").save(tmp_path / folder / "flow.json")
    files = [tmp_path / "a/flow.json", tmp_path / "b/flow.json"]
    names = content_of(alltoall.report(files).html)["names"]
    assert len(set(names.values())) == 2
    assert content_of(alltoall.report(files[0]).html)["names"][str(files[0])] == "flow.json"
    two = alltoall.report([files[0], alltoall.topology("ring:5")])
    assert two.facts["title"] == "All-to-all on 2 topologies"
