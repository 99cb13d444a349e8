"""Pages in a real browser: they open, play, answer to keys, and names do nothing."""

import itertools
import json
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from selenium import webdriver
from selenium.webdriver.common.keys import Keys

import alltoall
from alltoall.check.flow import recompute_bound
from alltoall.ir.answer import Certificate
from alltoall.ir.arrays import starts_of
from browser import Opened, browser

PAINT = (
    "const of = getComputedStyle(document.querySelector('#histogram {mark}'));"
    "return of.stroke + of.fill"
)
"""Script: the colours of a mark in a chart."""

OUTSIDE = """
return [...document.querySelectorAll('.chart text')].filter((each) => {
  const [own, chart] = [each, each.closest('.chart')].map((of) => of.getBoundingClientRect());
  return own.width && (own.left < chart.left - 1 || own.right > chart.right + 1);
}).map((each) => each.textContent)"""
"""Script: texts that do not fit into their charts."""

TITLES = "return [...document.querySelectorAll('#%s title')].map((each) => each.textContent)"
"""Script: titles of the marks of a chart."""

STRUCK = """
const pen = drawing.canvas.getContext('2d');
const look = () => drawing.names.map(({ x, y, wide, high }) =>
  pen.getImageData(x - wide + 1, y - high + 1, 2 * wide - 2, 2 * high - 2).data.join());
draw();
const before = look();
drawLines = () => {};
draw();
const after = look();
return drawing.names.filter((_, at) => before[at] !== after[at]).map((each) => each.name)"""
"""Script: names whose pixels change if no line is drawn."""

HOSTILE = (
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 2'>",
    "\"'`${window.harmed = 3}` --><!--",
    "a&lt;b&amp;\\u003cscript\\u003e",
)
"""Names that would end their block or begin a tag if they were HTML."""


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """One browser for all tests here."""
    with browser(tmp_path_factory.mktemp("profile")) as started:
        yield started


@pytest.fixture(scope="module")
def cube(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of a schedule, two kinds of routes and a flow of one problem."""
    topology = alltoall.topology("hypercube:3")
    found: list[alltoall.Flow | alltoall.Routes | alltoall.Schedule] = [
        alltoall.schedule(topology),
        alltoall.route(topology, method="extp"),
        alltoall.route(topology, method="sssp"),
        alltoall.solve(topology),
    ]
    path = tmp_path_factory.mktemp("page") / "cube.html"
    alltoall.report(found, link_bandwidth="25Gbps").save(path)
    return path


def test_a_page_opens_without_complaints_and_asks_for_nothing(
    chromium: webdriver.Chrome, cube: Path
) -> None:
    """Numbers, charts and a drawing are there; nothing but the file itself was requested."""
    page = Opened(chromium, cube)
    assert page.complaints() == []
    assert page.requests() == [cube.as_uri()]
    assert page.text("#answer") == "5.47 GB/s per node, the proven maximum"
    assert page.text("#proof").startswith("Proof: no routing can exceed 5.47 GB/s per node (")
    assert "optimal" in page.text("#numbers")
    assert page.script("return document.querySelectorAll('.chart svg').length") == 4
    page.wait(lambda: page.colours() > 10)
    assert page.text("#table tbody").count("hypercube:3") == 4


def test_a_schedule_is_played_by_keys(chromium: webdriver.Chrome, cube: Path) -> None:
    """Arrows step, Home shows all, space plays; the list says which chunk crosses which link."""
    page = Opened(chromium, cube)
    steps = page.script("return content.views[0].player.times.length")
    assert page.text("#step-info").startswith(f"All {steps} steps at once")
    assert not page.shown("#sends")
    page.press(Keys.ARROW_RIGHT)
    assert page.text("#step-info").startswith(f"Step 1 of {steps}: ")
    sends = page.script("return content.views[0].player.sends[0]")
    rows = page.script("return document.querySelectorAll('#sends tbody tr').length")
    assert rows == min(sends, 200) > 0
    page.press(Keys.ARROW_RIGHT)
    page.press(Keys.ARROW_LEFT)
    assert page.text("#step-info").startswith("Step 1 ")
    page.press(Keys.END)
    assert page.text("#step-info").startswith(f"Step {steps} ")
    page.press(Keys.HOME)
    assert page.text("#step-info").startswith("All ")
    page.press(Keys.SPACE)
    page.wait(lambda: page.text("#step-info").startswith(f"Step {steps} "))
    page.wait(lambda: page.text("#play") == "Play")
    page.press(Keys.ARROW_LEFT, at="#step")
    assert page.text("#step-info").startswith(f"Step {steps - 1} of")
    assert page.complaints() == []


HALO = """
const { canvas } = drawing;
const { x, y } = places(canvas.clientWidth, canvas.clientHeight);
const radius = radiusOf(canvas.clientWidth, canvas.clientHeight) + 3.5;
draw();
const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
const pixel = (across, down) => {
  const at = 4 * (Math.round(down) * canvas.width + Math.round(across));
  return all.slice(at, at + 4).join();
};
return fabric().names.map((_, node) => [...Array(24).keys()].map((at) => pixel(
  x[node] + radius * Math.cos(at * Math.PI / 12),
  y[node] + radius * Math.sin(at * Math.PI / 12))).join());"""
"""Script: pixels on a circle around every node."""


@pytest.fixture(scope="module")
def barbell(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a page of two cliques of four nodes, joined by one cable."""
    clique = list(itertools.combinations(range(4), 2))
    other = [(a + 4, b + 4) for a, b in clique]
    topology = alltoall.Topology.from_edges("barbell", 8, [*clique, *other, (3, 4)])
    path = tmp_path_factory.mktemp("page") / "barbell.html"
    alltoall.report(alltoall.solve(topology)).save(path)
    return path


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_cut_that_proves_the_bound_is_marked(
    chromium: webdriver.Chrome, barbell: Path, theme: str
) -> None:
    """Four nodes within it have a halo, the others none; the legend names it and switches it."""
    media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    page = Opened(chromium, barbell)
    assert page.text("#mark-proof") == "proving cut: 1 link around 4 nodes"
    for kind in ("as-matrix", "as-network"):
        page.script(f"document.getElementById('{kind}').click(); draw()")
    assert page.complaints() == []
    marked = page.script(HALO)
    page.script("document.getElementById('mark-proof').click()")
    plain = page.script(HALO)
    changed = [node for node, (a, b) in enumerate(zip(marked, plain, strict=True)) if a != b]
    inside = page.script("return [...numbers(view().proof, 'nodes')]")
    assert inside in ([0, 1, 2, 3], [4, 5, 6, 7])
    assert set(inside) <= set(changed) <= {*inside, 3, 4}
    assert page.script("return document.getElementById('mark-proof').ariaPressed") == "false"
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_the_answer_stands_first(
    chromium: webdriver.Chrome, cube: Path, barbell: Path, tmp_path: Path
) -> None:
    """In GB/s beside shortest paths and the proven maximum; else in shard times; else the size."""
    page = Opened(chromium, cube)
    titles = page.script(TITLES % "headline-bars")
    assert titles[-2:] == ["tsmcf: 5.469 GB/s per node", "proven maximum: 5.469 GB/s per node"]
    assert titles[0].startswith("shortest-path routing: ")
    top = "return document.getElementById('%s').getBoundingClientRect().top"
    assert page.script(top % "headline") < page.script(top % "network") < 600
    page.select("#view", "sssp, routes 3")
    assert page.text("#answer").endswith(" below the proven limit of 5.47 GB/s")
    assert page.text("#versus") == ""
    assert len(page.script(TITLES % "headline-bars")) == 2
    page = Opened(chromium, barbell)
    assert page.text("#answer") == "16 shard times, the proven minimum"
    assert page.text("#versus") == "as much as shortest-path routing (16 shard times)"
    alone = tmp_path / "ring.html"
    alltoall.report(alltoall.topology("ring:4")).save(alone)
    page = Opened(chromium, alone)
    assert page.text("#answer") == "4 nodes, 8 links"
    assert not page.shown("#headline-bars")
    assert page.complaints() == []


def test_every_control_is_reached_by_the_tab_key(chromium: webdriver.Chrome, cube: Path) -> None:
    """The order of the focus goes through all that can be used."""
    page = Opened(chromium, cube)
    seen = set()
    for _ in range(40):
        page.within.switch_to.active_element.send_keys(Keys.TAB)
        seen.add(page.script("return document.activeElement.id"))
    assert {"view", "as-matrix", "zoom-in", "drawing", "step", "play", "source"} <= seen


def test_the_routes_of_a_pair(chromium: webdriver.Chrome, cube: Path) -> None:
    """Weights of a pair add up to its demand; routes and paths begin and end where they must."""
    page = Opened(chromium, cube)
    page.select("#view", "extp, routes 2")
    assert not page.shown("#player")
    page.select("#source", "0")
    page.select("#destination", "7")
    assert page.text("#pairs h2") == "Routes of a pair"
    rows = page.script(
        "return [...document.querySelectorAll('#paths tbody tr')].map("
        "row => [...row.cells].map(cell => cell.textContent))"
    )
    assert sum(Fraction(weight) for weight, _, _, _ in rows) == 1
    for _, layer, way, hops in rows:
        nodes = way.split(" → ")
        assert (nodes[0], nodes[-1], len(nodes) - 1, layer.isdigit()) == ("0", "7", int(hops), True)
    page.select("#view", "decomposed, flow 4")
    page.select("#source", "0")
    page.select("#destination", "7")
    assert page.text("#pairs h2") == "Paths of a pair"
    rows = page.script(
        "return [...document.querySelectorAll('#paths tbody tr')].map("
        "row => [...row.cells].map(cell => cell.textContent))"
    )
    assert sum(float(weight) for weight, _, _ in rows) == pytest.approx(1, abs=1e-3)
    assert all(way.startswith("0 → ") and way.endswith(" → 7") for _, way, _ in rows)
    page.select("#view", "tsmcf, schedule 1")
    page.select("#source", "0")
    page.select("#destination", "7")
    assert page.text("#pairs h2") == "Chunks of a pair"
    assert page.text("#paths tbody tr td:nth-child(2)").startswith("0 -1→ ")


def test_a_pair_is_chosen_in_the_drawing(chromium: webdriver.Chrome, cube: Path) -> None:
    """A click on a node, then on another one; and a chosen link is described."""
    page = Opened(chromium, cube)
    for node in (0, 7):
        page.script(
            "const c = document.getElementById('drawing'), b = c.getBoundingClientRect();"
            f"const p = places(c.clientWidth, c.clientHeight), n = {node};"
            "const at = { clientX: b.left + p.x[n], clientY: b.top + p.y[n], bubbles: true };"
            "c.dispatchEvent(new PointerEvent('pointerdown', at));"
            "c.dispatchEvent(new PointerEvent('pointerup', at));"
        )
    assert page.script("return [chosen.source, chosen.destination]") == [0, 7]
    assert page.text("#info").startswith("Node 7: terminal, 3 links out")
    page.script("document.getElementById('as-matrix').click(); choose({ node: null, line: 0 })")
    assert page.text("#info").startswith("Link 0 → 1: capacity 1, ")
    assert page.complaints() == []


def test_hostile_names_do_nothing(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """Names of nodes, topologies, files and notes are shown as they are, and are nothing else."""
    topology = alltoall.Topology.from_edges(
        HOSTILE[0],
        4,
        [(0, 1), (1, 2), (2, 3), (3, 0)],
        names=HOSTILE,
        notes=[HOSTILE[1]],
    )
    files = [tmp_path / f"{HOSTILE[1].replace('/', '')}.json", tmp_path / "other.json"]
    alltoall.schedule(topology).save(files[0])
    alltoall.route(topology).save(files[1])
    path = tmp_path / "page.html"
    alltoall.report(files, title=HOSTILE[0] + HOSTILE[1]).save(path)
    page = Opened(chromium, path)
    page.select("#source", HOSTILE[0])
    page.select("#destination", HOSTILE[2])
    page.press(Keys.ARROW_RIGHT)
    page.script("choose({ node: 1 })")
    assert page.text("h1") == HOSTILE[0] + HOSTILE[1]
    assert HOSTILE[2] in page.text("#paths")
    assert page.script("return window.harmed === undefined")
    assert page.script("return document.images.length") == 0
    assert page.script("return document.scripts.length") == 2
    assert page.complaints() == []
    assert page.requests() == [path.as_uri()]


def few_routes(topology: alltoall.Topology, group: list[int]) -> alltoall.Routes:
    """Return shortest routes among a few terminals, with the bound that equal lengths prove."""
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(zip(topology.tail.tolist(), topology.head.tolist(), strict=True))
    link = {
        ends: index for index, ends in enumerate(zip(topology.tail, topology.head, strict=True))
    }
    pairs = list(itertools.permutations(group, 2))
    ways = [nx.shortest_path(graph, *pair) for pair in pairs]
    links = [[link[ends] for ends in itertools.pairwise(way)] for way in ways]
    problem = alltoall.Problem(topology, alltoall.Demand.of_groups(topology.nodes, [group]))
    lengths = np.ones(topology.links)
    return alltoall.Routes(
        source=np.array([source for source, _ in pairs]),
        destination=np.array([destination for _, destination in pairs]),
        start=starts_of([len(each) for each in links]),
        link=np.concatenate(links),
        problem=problem,
        weight=np.ones(len(pairs)),
        certificate=Certificate(lengths, recompute_bound(problem, lengths)[0]),
        method="shortest",
    )


def test_a_thousand_nodes_open(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """A matrix comes first, nodes are chosen from lists, and elements stay few."""
    topology, path = alltoall.topology("genkautz:n=1000,d=4"), tmp_path / "page.html"
    alltoall.report([topology, few_routes(topology, [0, 40, 80])]).save(path)
    page = Opened(chromium, path)
    assert page.complaints() == []
    assert page.script("return [drawing.matrix, fabric().names.length]") == [True, 1000]
    page.select("#view", page.script("return document.getElementById('view').options[1].text"))
    assert "1,000 nodes" in page.text("#numbers")
    page.select("#source", "40")
    page.select("#destination", "80")
    assert page.text("#paths tbody tr td:nth-child(3)").startswith("40 → ")
    assert page.script("return document.querySelectorAll('*').length") < 5_000


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("name", ["cube", "barbell"])
def test_a_page_fits_the_screen(
    chromium: webdriver.Chrome, name: str, width: int, request: pytest.FixtureRequest
) -> None:
    """On a phone and on a desk nothing is wider than the window, nor a text than its chart."""
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 800}
    chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page = Opened(chromium, request.getfixturevalue(name))
    assert page.script("return document.documentElement.scrollWidth") <= width
    assert page.script(OUTSIDE) == []
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_every_mark_of_a_chart_says_what_it_means(
    chromium: webdriver.Chrome, tmp_path: Path
) -> None:
    """Titles show under the mouse; a click on a step goes there."""
    schedule, path = alltoall.schedule("hypercube:3"), tmp_path / "page.html"
    predicted = alltoall.simulate(schedule, link_bandwidth="1Gbps", bytes="1K:4K")
    (tmp_path / "sim.json").write_text(json.dumps(predicted.to_json()))
    routes = alltoall.route("hypercube:3", method="sssp")
    alltoall.report([schedule, routes, tmp_path / "sim.json"]).save(path)
    page = Opened(chromium, path)
    titles = {
        chart: page.script(TITLES % chart) for chart in ("histogram", "steps", "bars", "curves")
    }
    assert len(titles["histogram"]) == 20
    assert re.fullmatch(r"24 links, busy 95 to 100 % of the time", titles["histogram"][-1])
    assert titles["steps"][0].startswith("Step 1: time ")
    assert titles["bars"][0] == "hypercube:3: 1 times the bound"
    assert len(titles["curves"]) == 6
    assert titles["curves"][0].startswith("sim.json: throughput, 1 KiB: 0.")
    page.script(
        "document.querySelectorAll('#steps .bar')[1].dispatchEvent(new MouseEvent('click'))"
    )
    assert page.text("#step-info").startswith("Step 2 of ")
    assert page.complaints() == []


def test_names_are_never_struck_through(chromium: webdriver.Chrome, tmp_path: Path) -> None:
    """Beside its node each name has a place of its own, which no line crosses."""
    path = tmp_path / "page.html"
    alltoall.report(alltoall.solve("dgxh100:hosts=2,outside=rail")).save(path)
    page = Opened(chromium, path)
    page.wait(lambda: bool(page.script("return drawing.names.length")))
    names = page.script("return drawing.names")
    assert {"host0", "host1", "gpu0"} <= {each["name"] for each in names}
    for one, other in itertools.combinations(names, 2):
        apart = abs(one["x"] - other["x"]) >= one["wide"] + other["wide"] - 1e-6
        assert apart or abs(one["y"] - other["y"]) >= one["high"] + other["high"] - 1e-6
    assert page.script(STRUCK) == []


def test_dark_and_light(chromium: webdriver.Chrome, cube: Path) -> None:
    """The page and its charts take the colours that the reader's system prefers."""
    papers, paints = [], []
    for theme in ("light", "dark"):
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        page = Opened(chromium, cube)
        papers.append(page.script("return getComputedStyle(document.body).backgroundColor"))
        for mark in (".grid", ".bar:last-of-type rect:last-of-type"):
            paints.append(page.script(PAINT.format(mark=mark)))
    assert papers[0] != papers[1]
    assert len(set(paints)) == len(paints) == 4
    chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
